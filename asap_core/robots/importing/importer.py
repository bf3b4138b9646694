"""`import_model`: a URDF or MJCF becomes a `RobotProfile`, with a report of everything that was added or changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from asap_core.errors import InputFileError
from asap_core.files import is_folder
from asap_core.robots.importing.drives import Drives, choose_drives
from asap_core.robots.importing.inertias import checked_bodies
from asap_core.robots.importing.meshes import fit_shape, sole_points, surface_points
from asap_core.robots.importing.mjcf import read_mjcf
from asap_core.robots.importing.roles import Roles, find_roles
from asap_core.robots.importing.tree import ModelTree, TreeBody, moved_onto, rest_poses
from asap_core.robots.importing.urdf import read_urdf
from asap_core.robots.profile import Link, Quat, RobotProfile, Shape, Vector, VirtualLink
from asap_core.rotations import Array, quat_to_matrix

_SUFFIXES = (".urdf", ".xml", ".mjcf")
_SOLE_RADIUS = 0.005
"""Spheres at the corners of the soles, m."""
_LEVEL_TOLERANCE = 1e-3
_SMPL = {"hip": "Hip", "knee": "Knee", "foot": "Ankle", "shoulder": "Shoulder", "elbow": "Elbow", "hand": "Hand"}


@dataclass
class ImportReport:
    """What the profile holds that the file does not say, in words."""

    changes: list[str] = field(default_factory=list)
    """Altered or left out."""
    chosen: list[str] = field(default_factory=list)
    """Added, for the user to check."""
    roles: dict[str, str] = field(default_factory=dict)


def import_model(path: Path | str, name: str, roles: dict[str, str] | None = None) -> tuple[RobotProfile, ImportReport]:
    """Read a humanoid that faces +x with z up at zero joint angles.

    Args:
        path: `.urdf`, or `.xml`/`.mjcf` of MuJoCo; meshes are looked for beside it and above it.
        name: of the profile.
        roles: role -> link, where the names do not tell.

    Raises:
        InputFileError: unreadable, no humanoid, or a role that cannot be assigned.
    """
    path = Path(path)
    if is_folder(path):
        raise InputFileError(path, "a folder, expected a file")
    if path.suffix.lower() not in _SUFFIXES:
        raise InputFileError(path, f"suffix: found {path.suffix!r}, expected one of {', '.join(_SUFFIXES)}")
    tree = read_urdf(path) if path.suffix.lower() == ".urdf" else read_mjcf(path)
    report = ImportReport(changes=list(tree.changes))
    moving, welded = split_welded(tree)
    if len(moving) < 2:
        raise InputFileError(path, "found no hinge, expected a humanoid with legs and arms")
    assigned = find_roles(path, moving, roles or {})
    report.chosen += [f"role {role}: {assigned.bodies[role]}, by its place in the tree" for role in assigned.guessed]
    points = _surfaces(moving, welded, report)
    moving = checked_bodies(path, moving, points, report.changes)
    _check_level(path, moving, assigned)
    drives = choose_drives(moving, assigned, report.chosen)
    return _profile(path, name, moving, welded, assigned, points, drives, report), report


def split_welded(tree: ModelTree) -> tuple[tuple[TreeBody, ...], tuple[TreeBody, ...]]:
    """Links with a joint of their own (and the root), hanging on one another, and welded bodies with mass."""
    bodies = {body.name: body for body in tree.bodies}
    for body in tree.bodies:
        current = bodies[body.name]
        while current.parent is not None and _is_welded(bodies[current.parent]):
            current = moved_onto(current, bodies[current.parent])
        bodies[body.name] = current
    moving = tuple(body for body in bodies.values() if not _is_welded(body))
    return moving, tuple(body for body in bodies.values() if _is_welded(body))


def _is_welded(body: TreeBody) -> bool:
    return body.parent is not None and body.joint is None


def _surfaces(moving: tuple[TreeBody, ...], welded: tuple[TreeBody, ...], report: ImportReport) -> dict[str, Array]:
    """Surface points (V, 3) of every moving link with what is welded to it, in its frame, m."""
    clouds: dict[str, list[Array]] = {body.name: [] for body in moving}
    unread: dict[str, str] = {}
    for body in (*moving, *welded):
        points, problems = surface_points(body.geometries)
        unread |= problems
        if _is_welded(body):
            points = body.pos + points @ quat_to_matrix(body.quat).T
        clouds[body.parent if body.parent and _is_welded(body) else body.name].append(points)
    if unread:
        report.changes.append(f"{len(unread)} meshes cannot be read and are left out: {_few(unread)}")
    return {name: np.concatenate(parts) for name, parts in clouds.items()}


def _few(problems: dict[str, str]) -> str:
    """The first of them in full, the others by number."""
    name, reason = next(iter(problems.items()))
    others = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    return f"{name} ({reason}){others}"


def _check_level(path: Path, bodies: tuple[TreeBody, ...], roles: Roles) -> None:
    """Retargeting turns torso and feet as the person's: their frames must be level at zero angles."""
    poses = rest_poses(bodies)
    for role in ("torso", "left_foot", "right_foot"):
        rot = poses[roles.bodies[role]][1]
        if np.abs(rot - np.eye(3)).max() > _LEVEL_TOLERANCE:
            angle = np.degrees(np.arccos(np.clip((np.trace(rot) - 1) / 2, -1, 1)))
            raise InputFileError(
                path,
                f"{role} {roles.bodies[role]}: its frame is turned by {angle:.1f}° at zero joint angles, expected x "
                "forward and z up; give the link whose frame is level with --role, or turn the frame in the file",
            )


def _profile(
    path: Path,
    name: str,
    moving: tuple[TreeBody, ...],
    welded: tuple[TreeBody, ...],
    roles: Roles,
    points: dict[str, Array],
    drives: Drives,
    report: ImportReport,
) -> RobotProfile:
    feet = (roles.bodies["left_foot"], roles.bodies["right_foot"])
    virtual, role_links = _virtual_links(moving, roles, points, report)
    report.roles = role_links
    soles = np.array([_sole(path, foot, points[foot], report) for foot in feet], dtype=np.float64)
    paper = tuple(
        (role_links[f"{side}_{part}"], f"{letter}_{joint}")
        for side, letter in (("left", "L"), ("right", "R"))
        for part, joint in _SMPL.items()
    )
    upper = _hanging_on(moving, {roles.bodies["left_shoulder"], roles.bodies["right_shoulder"]}, roles.bodies["torso"])
    names = [body.name for body in moving]
    tracking = (role_links["left_hand"], role_links["right_hand"], role_links["head"])
    profile = RobotProfile(
        name=name,
        links=tuple(_link(body) for body in moving),
        fixed_links=tuple(_link(body) for body in welded if body.mass > 0),
        virtual_links=virtual,
        joint_lower=drives.lower,
        joint_upper=drives.upper,
        joint_velocity_limit=drives.speed,
        joint_torque_limit=drives.torque,
        kp=drives.kp,
        kd=drives.kd,
        default_joint_pos=drives.default,
        torso_link=roles.bodies["torso"],
        foot_links=feet,
        sole_points=soles,
        lower_body_links=tuple(n for n in names if n not in upper),
        upper_body_links=(*(n for n in names if n in upper), *(point.name for point in virtual)),
        tracking_links=tracking,
        correspondences=((names[0], "Pelvis"), *paper, (role_links["head"], "Head")),
        paper_correspondences=paper,
        shapes=_shapes(moving, points, feet, soles, report),
        collision_excludes=(),
    )
    return replace(profile, collision_excludes=_touching_at_rest(profile, report))


def _link(body: TreeBody) -> Link:
    moments, axes = np.linalg.eigh(body.inertia)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    return Link(
        name=body.name,
        parent=body.parent,
        pos=_vector(body.pos),
        quat=_quat(body.quat),
        joint=None if body.joint is None else body.joint.name,
        axis=None if body.joint is None else _vector(body.joint.axis),
        mass=float(body.mass),
        com=_vector(body.com),
        inertia_quat=_quat(Rotation.from_matrix(axes).as_quat(scalar_first=True)),
        inertia=_vector(moments),
    )


def _vector(values: Array) -> Vector:
    x, y, z = (float(value) for value in values)
    return (x, y, z)


def _quat(values: Array) -> Quat:
    w, x, y, z = (float(value) for value in values)
    return (w, x, y, z)


def _virtual_links(
    bodies: tuple[TreeBody, ...], roles: Roles, points: dict[str, Array], report: ImportReport
) -> tuple[tuple[VirtualLink, ...], dict[str, str]]:
    """Hands and head: tracked points at the far ends of the forearms and the top of the torso, if no links are."""
    links = dict(roles.bodies)
    virtual = []
    poses = rest_poses(bodies)
    for role, carrier in (("left_hand", "left_elbow"), ("right_hand", "right_elbow"), ("head", "torso")):
        if role in links:
            continue
        parent = roles.bodies[carrier]
        offset = _far_end(points[parent], poses[parent][1], role)
        virtual.append(VirtualLink(f"{role}_link", parent, _vector(offset)))
        links[role] = f"{role}_link"
        report.chosen.append(f"{role}: a point of {parent} at {np.round(offset, 3).tolist()} m")
    return tuple(virtual), links


def _far_end(points: Array, rot: Array, role: str) -> Array:
    """The top of a torso above its origin, or the end of a forearm that lies farthest from its elbow."""
    if not len(points):
        return rot.T @ np.array([0.0, 0.0, 0.3]) if role == "head" else np.array([0.2, 0.0, 0.0])
    if role == "head":
        return rot.T @ np.array([0.0, 0.0, float((points @ rot.T)[:, 2].max()) - 0.08])
    far = points[np.linalg.norm(points, axis=1).argmax()]
    axis = int(np.abs(far).argmax())
    offset = np.zeros(3)
    offset[axis] = far[axis]
    return offset


def _sole(path: Path, foot: str, points: Array, report: ImportReport) -> Array:
    if len(points) < 4:
        raise InputFileError(path, f"foot {foot}: found no geometry to stand on, expected a mesh or a primitive")
    corners = sole_points(points, np.array([0.0, 0.0, -1.0]), np.array([1.0, 0.0, 0.0]))
    length, width = np.ptp(corners[:, 0]), np.ptp(corners[:, 1])
    report.chosen.append(f"sole of {foot}: {1000 * length:.0f} × {1000 * width:.0f} mm, {corners[0, 2]:.4f} m")
    return corners


def _hanging_on(bodies: tuple[TreeBody, ...], roots: set[str], stop: str) -> set[str]:
    """Everything between the torso and the shoulders and beyond: the arms."""
    parents = {body.name: body.parent for body in bodies}
    arms = set()
    for root in roots:
        above: str | None = root
        while above is not None and above != stop:
            arms.add(above)
            above = parents[above]
    for body in bodies:
        if body.parent in arms:
            arms.add(body.name)
    return arms


def _shapes(
    bodies: tuple[TreeBody, ...],
    points: dict[str, Array],
    feet: Sequence[str],
    soles: Array,
    report: ImportReport,
) -> tuple[Shape, ...]:
    fitted = {body.name: fit_shape(body.name, points[body.name]) for body in bodies if body.name not in feet}
    shapes = [shape for shape in fitted.values() if shape is not None]
    bare = [name for name, shape in fitted.items() if shape is None]
    if bare:
        report.changes.append(f"no geometry with a volume, collides with nothing: {', '.join(bare)}")
    for foot, corners in zip(feet, soles, strict=True):
        centres = corners + np.array([0.0, 0.0, _SOLE_RADIUS])
        shapes += [Shape(foot, "sphere", _vector(centre), (_SOLE_RADIUS,)) for centre in centres]
    report.chosen.append(f"{len(shapes)} collision primitives fitted, spheres of 5 mm at the soles' corners")
    return tuple(shapes)


def _touching_at_rest(profile: RobotProfile, report: ImportReport) -> tuple[tuple[str, str], ...]:
    """Pairs of links whose primitives overlap in the default pose: they would push each other for ever."""
    import mujoco

    from asap_core.robots.mjcf import build_model
    from asap_core.robots.physics import PhysicsSettings

    model = build_model(profile, PhysicsSettings(self_collision=True))
    data = mujoco.MjData(model)
    data.qpos[2] = 10.0
    data.qpos[3] = 1.0
    data.qpos[7:] = profile.default_joint_pos
    mujoco.mj_forward(model, data)
    pairs = set()
    for contact in data.contact[: data.ncon]:
        first, second = (model.body(model.geom_bodyid[geom]).name for geom in contact.geom)
        if "world" not in (first, second):
            pairs.add((min(first, second), max(first, second)))
    if pairs:
        report.chosen.append(f"{len(pairs)} pairs of links overlap in the default pose and never collide")
    return tuple(sorted(pairs))
