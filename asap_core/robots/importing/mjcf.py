"""Reader of MJCF through MuJoCo's own compiler, so that defaults, includes and frames mean what they mean there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.robots.importing.tree import Geometry, ModelTree, TreeBody, TreeJoint
from asap_core.rotations import Array, quat_to_matrix

if TYPE_CHECKING:
    import mujoco

_STANDING = ("stand", "home", "default", "init")
"""Parts of the names of key frames that hold a standing pose."""


def read_mjcf(path: Path) -> ModelTree:
    """Read the first robot of an MJCF file: the first tree under the world.

    Raises:
        InputFileError: MuJoCo cannot compile it, it holds no body, or a joint of another kind than free or hinge.
    """
    model, changes = _compile(path)
    if model.nbody < 2:
        raise InputFileError(path, "found no body, expected a robot")
    roots = [body for body in range(1, model.nbody) if model.body_parentid[body] == 0]
    bodies = [body for body in range(1, model.nbody) if model.body_rootid[body] == roots[0]]
    changes += [f"body {_name(model.body(body))} and what hangs on it: a second tree, left out" for body in roots[1:]]
    drives, pose = _drives(model), _standing_pose(model)
    tree = tuple(_body(path, model, body, drives, pose) for body in bodies)
    return ModelTree(path, tree, tuple(changes))


def _compile(path: Path) -> tuple[mujoco.MjModel, list[str]]:
    import mujoco

    try:
        spec = mujoco.MjSpec.from_file(str(path))
        changes = _without_missing_meshes(path, spec)
        return spec.compile(), changes
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise InputFileError(path, f"MuJoCo cannot read it: {error}") from None


def _without_missing_meshes(path: Path, spec: Any) -> list[str]:
    """Geometries of meshes whose files are absent are removed, and said."""
    import mujoco

    folder = path.parent / (spec.meshdir or "")
    absent = {mesh.name or Path(mesh.file).stem: mesh for mesh in spec.meshes if mesh.file}
    absent = {name: mesh for name, mesh in absent.items() if not (folder / mesh.file).is_file()}
    if not absent:
        return []
    for geom in list(spec.geoms):
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH and geom.meshname in absent:
            spec.delete(geom)
    for mesh in absent.values():
        spec.delete(mesh)
    first = next(iter(absent.values()))
    return [f"{len(absent)} meshes are left out, their files are missing, the first {folder / first.file}"]


def _body(path: Path, model: mujoco.MjModel, body: int, drives: dict[int, Any], pose: Array | None) -> TreeBody:
    parent = int(model.body_parentid[body])
    inertia_rot = quat_to_matrix(model.body_iquat[body])
    joint = _hinge(path, model, body, drives, pose)
    geometries = [_geometry(model, geom) for geom in range(model.ngeom) if model.geom_bodyid[geom] == body]
    return TreeBody(
        name=_name(model.body(body)),
        parent=None if parent == 0 else _name(model.body(parent)),
        pos=model.body_pos[body].copy(),
        quat=model.body_quat[body].copy(),
        joint=joint,
        mass=float(model.body_mass[body]),
        com=model.body_ipos[body].copy(),
        inertia=inertia_rot @ np.diag(model.body_inertia[body]) @ inertia_rot.T,
        geometries=tuple(geometry for geometry in geometries if geometry is not None),
    )


def _hinge(
    path: Path, model: mujoco.MjModel, body: int, drives: dict[int, Any], pose: Array | None
) -> TreeJoint | None:
    import mujoco

    joints = range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
    moving = [j for j in joints if model.jnt_type[j] != mujoco.mjtJoint.mjJNT_FREE]
    if not moving:
        return None
    first, name = moving[0], _name(model.body(body))
    if len(moving) > 1 or model.jnt_type[first] != mujoco.mjtJoint.mjJNT_HINGE:
        raise InputFileError(path, f"body {name}: expected at most one joint, a hinge; split it into one body a hinge")
    if np.abs(model.jnt_pos[first]).max() > 1e-6:
        found = np.round(model.jnt_pos[first], 6).tolist()
        raise InputFileError(path, f"body {name}: its joint is {found} m from its origin, expected it at the origin")
    limited = bool(model.jnt_limited[first])
    torque = float(model.jnt_actfrcrange[first, 1]) if model.jnt_actfrclimited[first] else None
    kp, kd, force = drives.get(first, (None, None, None))
    return TreeJoint(
        name=_name(model.joint(first)),
        axis=model.jnt_axis[first].copy(),
        lower=float(model.jnt_range[first, 0]) if limited else None,
        upper=float(model.jnt_range[first, 1]) if limited else None,
        torque=torque or force,
        kp=kp,
        kd=kd,
        default=None if pose is None else float(pose[model.jnt_qposadr[first]]),
    )


def _geometry(model: mujoco.MjModel, geom: int) -> Geometry | None:
    import mujoco

    kinds = {
        mujoco.mjtGeom.mjGEOM_MESH: "mesh",
        mujoco.mjtGeom.mjGEOM_BOX: "box",
        mujoco.mjtGeom.mjGEOM_SPHERE: "sphere",
        mujoco.mjtGeom.mjGEOM_CAPSULE: "capsule",
        mujoco.mjtGeom.mjGEOM_CYLINDER: "cylinder",
    }
    kind = kinds.get(mujoco.mjtGeom(model.geom_type[geom]))
    if kind is None:
        return None
    vertices = None
    if kind == "mesh":
        mesh = model.geom_dataid[geom]
        start = model.mesh_vertadr[mesh]
        vertices = np.array(model.mesh_vert[start : start + model.mesh_vertnum[mesh]], dtype=float)
    return Geometry(
        kind=kind,  # type: ignore[arg-type]
        pos=model.geom_pos[geom].copy(),
        quat=model.geom_quat[geom].copy(),
        size=model.geom_size[geom].copy(),
        collides=bool(model.geom_contype[geom] or model.geom_conaffinity[geom]),
        vertices=vertices,
    )


def _drives(model: mujoco.MjModel) -> dict[int, tuple[float | None, float | None, float | None]]:
    """Per driven joint: kp and kd of a position servo (None for a motor) and the torque limit, if there is one."""
    import mujoco

    drives: dict[int, tuple[float | None, float | None, float | None]] = {}
    for actuator in range(model.nu):
        if model.actuator_trntype[actuator] != mujoco.mjtTrn.mjTRN_JOINT:
            continue
        joint = int(model.actuator_trnid[actuator, 0])
        gain, bias = float(model.actuator_gainprm[actuator, 0]), model.actuator_biasprm[actuator]
        servo = bias[1] < 0
        limit: float | None = None
        if model.actuator_forcelimited[actuator]:
            limit = float(model.actuator_forcerange[actuator, 1])
        elif not servo and model.actuator_ctrllimited[actuator]:
            limit = float(model.actuator_ctrlrange[actuator, 1]) * gain * float(model.actuator_gear[actuator, 0])
        drives[joint] = (gain if servo else None, -float(bias[2]) or None if servo else None, limit)
    return drives


def _standing_pose(model: mujoco.MjModel) -> Array | None:
    names = [_name(model.key(key)) for key in range(model.nkey)]
    standing = [key for key, name in enumerate(names) if any(part in name.lower() for part in _STANDING)]
    return model.key_qpos[standing[0]].copy() if standing else None


def _name(item: Any) -> str:
    return str(item.name)
