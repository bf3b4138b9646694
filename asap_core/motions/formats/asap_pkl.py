"""Motion pkl of ASAP, PBHC and SONIC's motion_lib: joblib, several clips by name, root quaternions xyzw (E2)."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import atomic_file, sha256_file
from asap_core.motions.derived import joints_in_order, written_rate
from asap_core.motions.formats.checks import checked
from asap_core.motions.formats.clip import Declared, QuatOrder, RobotClip
from asap_core.motions.formats.fields import listed, numbers, one_number, take
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import Source, check_array
from asap_core.restricted_pickle import load_restricted, peek
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array, quat_conj, quat_mul, quat_to_rotvec, rotvec_to_quat

TOOL = "asap reader asap_pkl 1"
_FIELDS = ("root_trans_offset", "root_rot", "dof", "fps")
_NAMES = {"root_pos": "root_trans_offset", "root_quat": "root_rot", "joint_pos": "dof"}
_ORDERS = {23: "asap23", 29: "unitree29"}
"""The MJCF's order of ASAP's robot and, in SONIC, of the whole G1, by the number of joints."""
_EXTENDED_BODIES = 3
"""Hands and head, which the training code tracks: they follow the joints in `pose_aa` as zeros."""
_AGREES = 1e-3
"""rad; the published files agree to 6e-8."""
_MOVES = 1e-3
"""rad from which a joint's axis is told by its rotation vector."""


def sniff(path: Path) -> Match | None:
    """Looks for the names of the fields."""
    data = peek(path)
    if not all(name.encode() in data for name in ("root_trans_offset", "root_rot", "dof")):
        return None
    return Match(0.98, "a pickle with root_trans_offset, root_rot and dof")


def read(path: Path) -> list[RobotClip]:
    """All clips, `action` and `contact_mask` included where they are.

    Raises:
        InputFileError: missing, truncated, holding anything but numpy and containers, or another layout; the text names
            the clip and the field.
    """
    content = load_restricted(path)
    wanted = f"expected clips as {{name: {{{', '.join(_FIELDS)}}}}}"
    if not isinstance(content, dict) or not content:
        raise InputFileError(path, f"found another layout ({type(content).__name__}), {wanted}")
    digest = sha256_file(path)
    clips = []
    for key, fields in content.items():
        where = f"{str(key)[:80]}: "
        if not isinstance(fields, dict):
            raise InputFileError(path, f"{where}found another layout ({type(fields).__name__}), {wanted}")
        clips.append(_read_clip(path, str(key), fields, digest, where))
    return clips


def write(path: Path, motion: RobotMotion, profile: RobotProfile) -> None:
    """Write one clip as a plain pickle, which `joblib.load` reads as well; equal motions give equal bytes."""
    joints = joints_in_order(motion, profile.joint_names)
    axes = {link.joint: link.axis for link in profile.links}
    axis = np.array([axes[name] for name in profile.joint_names], dtype=float)
    turned = axis * joints[:, :, None]
    root = quat_to_rotvec(motion.root_quat)[:, None]
    still = np.zeros((motion.num_frames, _EXTENDED_BODIES, 3))
    clip = {
        "root_trans_offset": motion.root_pos.astype(np.float32),
        "pose_aa": np.concatenate([root, turned, still], axis=1).astype(np.float32),
        "dof": joints.astype(np.float32),
        "root_rot": motion.root_quat[:, [1, 2, 3, 0]].astype(np.float32),
        "fps": written_rate(motion.fps),
    }
    with atomic_file(path) as partial:
        partial.write_bytes(pickle.dumps({motion.name: clip}, protocol=4))


def read_asap_pkl(path: Path | str, robot: str, joint_names: tuple[str, ...]) -> RobotMotion:
    """The one clip of a published pkl as a motion.

    Args:
        path: the file.
        robot: name of the robot profile whose joints `dof` holds.
        joint_names: the profile's joints in the file's order (the file stores none; it is the MJCF order).

    Raises:
        InputFileError: as `read`; several clips, another number of joints, or quaternions of another length than 1.
    """
    path = Path(path)
    clips = read(path)
    if len(clips) != 1:
        raise InputFileError(path, f"found {len(clips)} clips, expected one")
    clip = clips[0]
    check_array(path, "dof", clip.joint_pos, (None, len(joint_names)))
    quat = clip.root_quat if clip.declared.quat_order == "wxyz" else clip.root_quat[:, [3, 0, 1, 2]]
    assert clip.fps is not None  # the reader insists on it
    source = Source(path.as_posix(), clip.sha256, TOOL)
    try:
        return RobotMotion(clip.name, robot, clip.fps, clip.root_pos, quat, joint_names, clip.joint_pos, source)
    except InputFileError as error:
        raise InputFileError(path, error.reason) from None


def _read_clip(path: Path, key: str, fields: Mapping[Any, Any], digest: str, where: str) -> RobotClip:
    missing = [name for name in _FIELDS if name not in fields]
    if missing:
        raise InputFileError(path, f"{where}missing {', '.join(missing)}; found {listed(fields)}")
    dof = take(path, fields, "dof", where)
    quat = take(path, fields, "root_rot", where)
    clip = RobotClip(
        path=path,
        name=Path(key).name or path.stem,
        format=FORMAT.id,
        sha256=digest,
        root_pos=take(path, fields, "root_trans_offset", where),
        root_quat=quat,
        joint_pos=dof[..., 0] if dof.ndim == 3 and dof.shape[2] == 1 else dof,
        fps=one_number(path, f"{where}fps", fields["fps"]),
        action=_optional(path, fields, "action", where),
        contact_mask=_optional(path, fields, "contact_mask", where),
    )
    checked(clip, _NAMES, where)
    return _with_rotation_vectors(clip, fields, where)


def _optional(path: Path, fields: Mapping[Any, Any], key: str, where: str) -> Array | None:
    value = fields.get(key)
    if isinstance(value, np.ndarray) and value.dtype == bool:
        value = value.astype(np.uint8)
    return None if value is None else numbers(path, where + key, value)


def _with_rotation_vectors(clip: RobotClip, fields: Mapping[Any, Any], where: str) -> RobotClip:
    """`clip` with what `pose_aa` says of the quaternion order and the joints' axes."""
    frames, joints = clip.joint_pos.shape
    axes = None
    quat_order: QuatOrder = "xyzw"
    notes: tuple[str, ...] = ()
    if fields.get("pose_aa") is not None:
        poses = take(clip.path, fields, "pose_aa", where)
        check_array(clip.path, f"{where}pose_aa", poses, (frames, None, 3))
        if poses.shape[1] > joints:
            axes = _axes(poses[:, 1 : joints + 1], clip.joint_pos)
        quat_order, notes = _quat_order(clip.root_quat, poses[:, 0])
    declared = Declared(quat_order, _ORDERS.get(joints), up_axis="z", length_unit="m", angle_unit="rad", frame="world")
    return replace(clip, declared=declared, joint_axes=axes, notes=notes)


def _quat_order(quat: Array, rotvec: Array) -> tuple[QuatOrder, tuple[str, ...]]:
    """The order in which the quaternions (T, 4) turn as `pose_aa` (T, 3) does; xyzw, the usual one, if neither."""
    wanted = rotvec_to_quat(rotvec)
    angle = {}
    orders: dict[QuatOrder, Array] = {"xyzw": quat[:, [3, 0, 1, 2]], "wxyz": quat}
    for name, turned in orders.items():
        angle[name] = float(np.linalg.norm(quat_to_rotvec(quat_mul(turned, quat_conj(wanted))), axis=1).max())
    found = f"pose_aa and root_rot differ by {angle['xyzw']:.2g} rad as xyzw, by {angle['wxyz']:.2g} as wxyz"
    if angle["xyzw"] <= _AGREES:
        return "xyzw", ()
    return ("wxyz", (found,)) if angle["wxyz"] <= _AGREES else ("xyzw", (f"{found}: neither agrees",))


def _axes(turned: Array, angles: Array) -> Array:
    """(J, 3) axes by which rotation vectors (T, J, 3) belong to angles (T, J), taken where the angle is largest."""
    joints = np.arange(angles.shape[1])
    frame = np.abs(angles).argmax(axis=0)
    vector, angle = turned[frame, joints], angles[frame, joints]
    moves = np.abs(angle) > _MOVES
    axis = vector / np.where(moves, angle, 1.0)[:, None]
    whole = np.linalg.norm(axis, axis=1, keepdims=True)
    return np.where(moves[:, None] & (np.abs(whole - 1) < 0.01), axis, 0.0)


FORMAT = Format("asap_pkl", "ASAP, PBHC and SONIC motion_lib pkl", "robot", (".pkl", ".joblib"), sniff, read, write)
