"""holosoma's npz: `joint_pos` is the whole MuJoCo state, with names; a free object may follow the joints (E7).

Its retargeting writes the state alone as `qpos`. The stored body velocities are suspect and left open for the doctor.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.motions.formats.checks import checked
from asap_core.motions.formats.clip import Declared, RobotClip
from asap_core.motions.formats.fields import NpzFields, one_number
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.formats.npz import npz_shapes
from asap_core.motions.formats.tracking_npz import NAMES
from asap_core.motions.tables import check_array
from asap_core.rotations import Array

_ROOT, _ROOT_SPEED = 7, 6
_OBJECT, _OBJECT_SPEED = 7, 6
"""Columns of a free body in the state and in its velocity."""
_DECLARED = Declared("wxyz", up_axis="z", length_unit="m", angle_unit="rad", frame="world")


def sniff(path: Path) -> Match | None:
    """Looks at names and shapes."""
    shapes = npz_shapes(path)
    position, speed = shapes.get("joint_pos"), shapes.get("joint_vel")
    if "body_pos_w" in shapes and position and speed and position[-1] > speed[-1]:
        return Match(0.98, f"an npz whose joint_pos is a whole state of {position[-1]} and joint_vel of {speed[-1]}")
    return Match(0.9, "an npz with qpos") if len(shapes.get("qpos", ())) == 2 else None


def read(path: Path) -> list[RobotClip]:
    """The one clip, without the object, of which a note tells.

    Raises:
        InputFileError: missing, truncated, another layout, a state that does not fit the names, or a NaN.
    """
    with NpzFields(path) as fields:
        key = "joint_pos" if "body_pos_w" in fields else "qpos"
        state = fields[key]
        check_array(path, key, state, (None, None))
        names = fields.texts("joint_names")
        joints, notes = _joint_count(path, key, state.shape[1], names, "object_pos_w" in fields)
        clip = RobotClip(
            path=path,
            name=path.stem,
            format=FORMAT.id,
            sha256=sha256_file(path),
            root_pos=state[:, :3],
            root_quat=state[:, 3:_ROOT],
            joint_pos=state[:, _ROOT : _ROOT + joints],
            fps=one_number(path, "fps", fields["fps"]) if "fps" in fields else None,
            joint_names=names,
            joint_vel=_joint_speed(fields, joints) if key == "joint_pos" else None,
            body_names=fields.texts("body_names"),
            body_pos=fields.get("body_pos_w"),
            body_quat=fields.get("body_quat_w"),
            body_lin_vel=fields.get("body_lin_vel_w"),
            body_ang_vel=fields.get("body_ang_vel_w"),
            declared=_DECLARED,
            notes=notes,
        )
    return [checked(clip, NAMES | {"joint_pos": key, "root_pos": key, "root_quat": key})]


def _joint_count(
    path: Path, key: str, width: int, names: tuple[str, ...] | None, has_object: bool
) -> tuple[int, tuple[str, ...]]:
    """Joints among a state's columns, and a note on the object behind them.

    With names their number decides; without, only the object's own fields say that there is one: the last seven columns
    of a scene without are joints (holosoma #205).
    """
    count = len(names) if names is not None else width - _ROOT - (_OBJECT if has_object else 0)
    behind = width - _ROOT - count
    if count < 1 or behind not in (0, _OBJECT):
        wanted = f"expected 7 of the root, {max(count, 1)} joints and 0 or 7 of an object"
        raise InputFileError(path, f"{key}: found {width} columns, {wanted}")
    if behind:
        return count, ("the state ends with a free object of 7 columns, which is left out",)
    return count, ("object_pos_w: the object's own fields are left out",) if has_object else ()


def _joint_speed(fields: NpzFields, joints: int) -> Array | None:
    """The joints' part (T, J) of the velocity, whose width is told by the same count."""
    if "joint_vel" not in fields:
        return None
    speed = fields["joint_vel"]
    if speed.ndim != 2 or speed.shape[1] - _ROOT_SPEED - joints not in (0, _OBJECT_SPEED):
        wanted = f"expected (T, {_ROOT_SPEED + joints}) or 6 more of an object"
        raise InputFileError(fields.path, f"joint_vel: found shape {speed.shape}, {wanted}")
    return np.array(speed[:, _ROOT_SPEED : _ROOT_SPEED + joints])


FORMAT = Format("holosoma_npz", "holosoma npz", "robot", (".npz",), sniff, read)
