"""One small valid file of every robot format, made from one motion whose kinematics the tests know.

Every file is written here from the format's definition, with numpy, pickle and torch alone, so that readers are checked
against something other than the product's own writers.
"""

from __future__ import annotations

import enum
import json
import pickle
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.motions.derived import DerivedMotion, derive_motion
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import Source
from asap_core.robots import get_profile
from asap_core.robots.profile import breadth_first
from asap_core.rotations import Array, quat_mul, quat_to_rotvec, rotvec_to_quat

STANDING_HEIGHT = 0.784
XYZW = [1, 2, 3, 0]
SONIC_BODIES = (0, 4, 10, 18, 5, 11, 19, 9, 16, 22, 28, 17, 23, 29)


def swaying_motion(robot: str = "g1_29dof", seconds: float = 2.0, fps: float = 50.0) -> RobotMotion:
    """A robot that bends its knees and turns its waist, arms and whole body; each joint has a course of its own."""
    profile = get_profile(robot)
    count = round(seconds * fps) + 1
    times = np.arange(count) / fps
    joints = np.arange(profile.num_joints)
    phase = 2 * np.pi * (0.4 + 0.02 * joints) * times[:, None] + 0.7 * joints
    joint_pos = profile.default_joint_pos + 0.15 * (np.sin(phase) - np.sin(0.7 * joints))
    bend = 0.15 * (1 - np.cos(2 * np.pi * times / times[-1]))
    for side in ("left", "right"):
        for name, factor in (("hip_pitch", -1), ("knee", 2), ("ankle_pitch", -1)):
            index = profile.joint_index(f"{side}_{name}_joint")
            joint_pos[:, index] = profile.default_joint_pos[index] + factor * bend
        for name in ("hip_roll", "hip_yaw", "ankle_roll"):
            index = profile.joint_index(f"{side}_{name}_joint")
            joint_pos[:, index] = profile.default_joint_pos[index] + 0.02 * np.sin(phase[:, index])
    joint_pos = np.clip(joint_pos, profile.joint_lower + 0.01, profile.joint_upper - 0.01)
    root_pos = np.stack([0.03 * np.sin(times), 0.01 * times, STANDING_HEIGHT - 0.6 * (1 - np.cos(bend))], axis=1)
    lean = rotvec_to_quat(np.stack([0 * times, 0.05 * np.sin(2 * times), 0 * times], axis=1))
    turn = rotvec_to_quat(np.stack([0 * times, 0 * times, 0.3 + 0.2 * np.sin(times)], axis=1))
    source = Source(path="tests", sha256="0" * 64, tool="tests")
    quat = quat_mul(turn, lean)
    return RobotMotion("sway", robot, fps, root_pos, quat, profile.joint_names, joint_pos, source)


def robot_fixtures(folder: Path, motion: RobotMotion | None = None) -> dict[str, Path]:
    """Write one file of each format and return the paths by the format's key.

    Formats that leave an order open come more than once: `lafan_csv` and `kimodo_csv` are the two quaternion orders of
    one CSV; `beyondmimic_npz`, `beyondmimic_npz.xyzw` and `mjlab_npz` are the quaternion and joint orders of one npz;
    `asap_pkl.wxyz` has its root quaternions turned round. What stands before the dot is the format. Formats that store
    no rate have their usual one: 30 in the two CSV without header, 120 in `seed_csv`, 50 in `sonic_folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    motion = motion or swaying_motion()
    derived = derive_motion(motion, get_profile(motion.robot))
    paths = _pickles(folder, motion, derived) | _texts(folder, motion) | _tracking(folder, motion, derived)
    paths |= _named(folder, motion, derived) | {"protomotions_motion": _protomotions(folder, motion, derived)}
    paths["sonic_folder"] = _sonic(folder, motion, derived)
    paths["robot_parquet"] = folder / "robot.parquet"
    motion.save(paths["robot_parquet"])
    with suppress(ImportError):
        paths["holomotion_h5"] = _holomotion_h5(folder, motion)
    return paths


def isaac_joints(robot: str) -> list[int]:
    """Places in the profile's order of the joints in Isaac's order."""
    profile = get_profile(robot)
    joint_of = {link.name: link.joint for link in profile.links}
    joints = [joint_of[link] for link in breadth_first(profile)]
    return [profile.joint_index(joint) for joint in joints if joint is not None]


def _f32(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float32)


def _bodies(motion: RobotMotion, isaac: bool = False) -> list[int]:
    """Places in `link_names` of the links that are bodies."""
    profile = get_profile(motion.robot)
    names = breadth_first(profile) if isaac else [link.name for link in profile.links]
    return [int(index) for index in profile.link_indices(names)]


def asap_content(motion: RobotMotion, wxyz: bool = False) -> dict[str, Any]:
    """What the ASAP layout holds of a clip, by the file's own names."""
    axes = {link.joint: link.axis for link in get_profile(motion.robot).links}
    axis = np.array([axes[name] for name in motion.joint_names])
    turned = axis * motion.joint_pos[:, :, None]
    parts = [quat_to_rotvec(motion.root_quat)[:, None], turned, np.zeros((motion.num_frames, 3, 3))]
    return {
        "root_trans_offset": _f32(motion.root_pos),
        "pose_aa": _f32(np.concatenate(parts, axis=1)),
        "dof": _f32(motion.joint_pos),
        "root_rot": motion.root_quat if wxyz else motion.root_quat[:, XYZW],
        "smpl_joints": np.zeros((motion.num_frames, 24, 3), dtype=np.float32),
        "fps": int(motion.fps),
    }


def _pickles(folder: Path, motion: RobotMotion, derived: DerivedMotion) -> dict[str, Path]:
    small = swaying_motion("g1_23dof", fps=motion.fps, seconds=motion.duration)
    contents: dict[str, Any] = {
        "asap_pkl": {"0-folder/sway": asap_content(small)},
        "asap_pkl.wxyz": {"sway": asap_content(motion, wxyz=True)},
        "gmr_pkl": {
            "fps": motion.fps,
            "root_pos": motion.root_pos,
            "root_rot": motion.root_quat[:, XYZW],
            "dof_pos": motion.joint_pos,
            "local_body_pos": None,
            "link_body_list": None,
        },
        "mimickit_pkl": {
            "loop_mode": 0,
            "fps": int(motion.fps),
            "frames": np.concatenate([motion.root_pos, quat_to_rotvec(motion.root_quat), motion.joint_pos], axis=1),
        },
    }
    paths = {key: folder / f"{key}.pkl" for key in contents}
    for key, path in paths.items():
        path.write_bytes(pickle.dumps(contents[key]))
    return paths


def _texts(folder: Path, motion: RobotMotion) -> dict[str, Path]:
    from scipy.spatial.transform import Rotation

    paths = {key: folder / f"{key}.csv" for key in ("lafan_csv", "kimodo_csv", "seed_csv")}
    slow = motion.resample(30)
    for key, quat in (("lafan_csv", slow.root_quat[:, XYZW]), ("kimodo_csv", slow.root_quat)):
        np.savetxt(paths[key], np.hstack([slow.root_pos, quat, slow.joint_pos]), delimiter=",", fmt="%.8f")
    motion = motion.resample(120)
    euler = Rotation.from_quat(motion.root_quat[:, XYZW]).as_euler("xyz", degrees=True)
    frame = np.arange(motion.num_frames)[:, None]
    root = [f"root_{kind}{axis}" for kind in ("translate", "rotate") for axis in "XYZ"]
    header = ",".join(["Frame", *root, *(f"{name}_dof" for name in motion.joint_names)])
    values = np.hstack([frame, 100 * motion.root_pos, euler, np.rad2deg(motion.joint_pos)])
    np.savetxt(paths["seed_csv"], values, delimiter=",", fmt="%.8f", header=header, comments="")
    return paths


def tracking_arrays(motion: RobotMotion, derived: DerivedMotion, isaac: bool) -> dict[str, Array]:
    """The arrays of BeyondMimic's layout: Isaac's orders with velocities at the centre of mass, or MuJoCo's."""
    joints = isaac_joints(motion.robot) if isaac else slice(None)
    bodies = _bodies(motion, isaac)
    return {
        "fps": np.array([int(motion.fps)]),
        "joint_pos": _f32(derived.joint_pos[:, joints]),
        "joint_vel": _f32(derived.joint_vel[:, joints]),
        "body_pos_w": _f32(derived.links.pos[:, bodies]),
        "body_quat_w": _f32(derived.links.quat[:, bodies]),
        "body_lin_vel_w": _f32((derived.com_lin_vel if isaac else derived.links.lin_vel)[:, bodies]),
        "body_ang_vel_w": _f32(derived.links.ang_vel[:, bodies]),
    }


def _tracking(folder: Path, motion: RobotMotion, derived: DerivedMotion) -> dict[str, Path]:
    isaac, mujoco = (tracking_arrays(motion, derived, isaac) for isaac in (True, False))
    contents = {
        "beyondmimic_npz": isaac,
        "beyondmimic_npz.xyzw": isaac | {"body_quat_w": isaac["body_quat_w"][..., XYZW]},
        "mjlab_npz": mujoco,
        "unitree_rl_lab_npz": isaac,
    }
    paths = {key: folder / f"{key}.npz" for key in contents}
    for key, path in paths.items():
        np.savez(path, **contents[key])
    return paths


def holosoma_arrays(motion: RobotMotion, derived: DerivedMotion, with_object: bool) -> dict[str, Any]:
    """The arrays of holosoma's layout, the robot's `world` body first; velocities at link origins, in the world."""
    profile, bodies = get_profile(motion.robot), _bodies(motion)
    links, count = derived.links, motion.num_frames
    moving = np.tile([1.0, 2.0, 0.5, 1.0, 0.0, 0.0, 0.0], (count, 1))
    state = [motion.root_pos, motion.root_quat, derived.joint_pos, *([moving] if with_object else [])]
    speed = [links.lin_vel[:, 0], links.ang_vel[:, 0], derived.joint_vel, *([0 * moving[:, :6]] if with_object else [])]
    world = np.zeros((count, 1, 3))
    arrays = {
        "fps": np.array([int(motion.fps)]),
        "joint_names": np.array(profile.joint_names),
        "body_names": np.array(["world", *(profile.link_names[i] for i in bodies)]),
        "joint_pos": _f32(np.hstack(state)),
        "joint_vel": _f32(np.hstack(speed)),
        "body_pos_w": _f32(np.hstack([world, links.pos[:, bodies]])),
        "body_quat_w": _f32(np.hstack([np.tile([[[1.0, 0, 0, 0]]], (count, 1, 1)), links.quat[:, bodies]])),
        "body_lin_vel_w": _f32(np.hstack([world, links.lin_vel[:, bodies]])),
        "body_ang_vel_w": _f32(np.hstack([world, links.ang_vel[:, bodies]])),
    }
    return arrays | ({"object_pos_w": _f32(moving[:, :3])} if with_object else {})


def _named(folder: Path, motion: RobotMotion, derived: DerivedMotion) -> dict[str, Path]:
    profile, links = get_profile(motion.robot), derived.links
    count = motion.num_frames
    contents: dict[str, dict[str, Any]] = {
        "holosoma_npz": holosoma_arrays(motion, derived, with_object=False),
        "holosoma_npz.object": holosoma_arrays(motion, derived, with_object=True),
        "amp_npz": {
            "fps": np.array(int(motion.fps)),
            "dof_names": np.array(profile.joint_names),
            "body_names": np.array(profile.link_names),
            "dof_positions": _f32(derived.joint_pos),
            "dof_velocities": _f32(derived.joint_vel),
            "body_positions": _f32(links.pos),
            "body_rotations": _f32(links.quat),
            "body_linear_velocities": _f32(links.lin_vel),
            "body_angular_velocities": _f32(links.ang_vel),
        },
    }
    bodies = _bodies(motion)
    metadata = {"motion_key": "sway", "motion_fps": motion.fps, "num_frames": count}
    contents["holomotion_npz"] = {
        "metadata": np.array(json.dumps(metadata)),
        "ref_dof_pos": _f32(derived.joint_pos),
        "ref_dof_vel": _f32(derived.joint_vel),
        "ref_global_translation": _f32(links.pos[:, bodies]),
        "ref_global_rotation_quat": _f32(links.quat[:, bodies][..., XYZW]),
        "ref_global_velocity": _f32(links.lin_vel[:, bodies]),
        "ref_global_angular_velocity": _f32(links.ang_vel[:, bodies]),
    }
    paths = {key: folder / f"{key}.npz" for key in contents}
    for key, path in paths.items():
        np.savez(path, **contents[key])
    return paths


@contextmanager
def _protomotions_enum() -> Iterator[Any]:
    """The enumeration that ProtoMotions pickles, importable for as long as the file is written."""
    package, module = types.ModuleType("protomotions"), types.ModuleType("protomotions.simulator_state")
    member = enum.Enum("StateConversion", {"COMMON": "common"}, module=module.__name__)
    module.StateConversion = member  # type: ignore[attr-defined]
    sys.modules[package.__name__], sys.modules[module.__name__] = package, module
    try:
        yield member("common")
    finally:
        del sys.modules[package.__name__], sys.modules[module.__name__]


def _protomotions(folder: Path, motion: RobotMotion, derived: DerivedMotion) -> Path:
    import torch

    links, bodies = derived.links, _bodies(motion)
    content: dict[str, Any] = {
        "dof_pos": derived.joint_pos,
        "dof_vel": derived.joint_vel,
        "rigid_body_pos": links.pos[:, bodies],
        "rigid_body_rot": links.quat[:, bodies][..., XYZW],
        "rigid_body_vel": links.lin_vel[:, bodies],
        "rigid_body_ang_vel": links.ang_vel[:, bodies],
    }
    tensors: dict[str, Any] = {key: torch.from_numpy(_f32(values)) for key, values in content.items()}
    tensors["rigid_body_contacts"] = torch.zeros(motion.num_frames, len(bodies), dtype=torch.bool)
    path = folder / "sway.motion"
    with _protomotions_enum() as state:
        torch.save(tensors | {"fps": int(motion.fps), "state_conversion": state}, path)
    return path


def _sonic(folder: Path, motion: RobotMotion, derived: DerivedMotion) -> Path:
    path = folder / "sonic"
    path.mkdir(exist_ok=True)
    links, joints = derived.links, isaac_joints(motion.robot)
    bodies = [_bodies(motion, isaac=True)[i] for i in SONIC_BODIES]
    tables = {
        "joint_pos": (derived.joint_pos[:, joints], "joint_{}"),
        "joint_vel": (derived.joint_vel[:, joints], "joint_vel_{}"),
        "body_pos": (links.pos[:, bodies], "body_{}_{}"),
        "body_quat": (links.quat[:, bodies], "body_{}_{}"),
        "body_lin_vel": (links.lin_vel[:, bodies], "body_{}_vel_{}"),
        "body_ang_vel": (links.ang_vel[:, bodies], "body_{}_angvel_{}"),
    }
    for name, (values, pattern) in tables.items():
        width = values.shape[2] if values.ndim == 3 else 1
        axes = "wxyz" if width == 4 else "xyz"[:width]
        header = ",".join(pattern.format(i, axis) for i in range(values.shape[1]) for axis in axes)
        flat = values.reshape(len(values), -1)
        np.savetxt(path / f"{name}.csv", flat, delimiter=",", fmt="%.9f", header=header, comments="")
    indexes = " ".join(map(str, SONIC_BODIES))
    (path / "metadata.txt").write_text(f"Metadata for: sway\n=====\n\nBody part indexes:\n[ {indexes}]\n\n")
    return path


def _holomotion_h5(folder: Path, motion: RobotMotion) -> Path:
    import h5py

    path = folder / "holomotion.h5"
    metadata = [json.dumps({"motion_key": name, "motion_fps": motion.fps}) for name in ("sway_a", "sway_b")]
    half = motion.num_frames // 2
    with h5py.File(path, "w") as file:
        file["ref_root_pos"] = _f32(motion.root_pos)
        file["ref_root_rot"] = _f32(motion.root_quat[:, XYZW])
        file["ref_dof_pos"] = _f32(motion.joint_pos)
        file["clips/start"] = np.array([0, half])
        file["clips/length"] = np.array([half, motion.num_frames - half])
        file["clips/metadata_json"] = np.array(metadata, dtype=h5py.string_dtype())
    return path
