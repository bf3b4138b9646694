"""ProtoMotions' `.motion`: a torch file of joints and rigid bodies, quaternions xyzw, joints as in the MJCF (E8)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap_core.files import sha256_file
from asap_core.motions.formats.checks import checked
from asap_core.motions.formats.clip import Declared, RobotClip
from asap_core.motions.formats.fields import numbers, one_number, require_mapping, take
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.tables import check_array
from asap_core.restricted_pickle import load_torch, peek
from asap_core.rotations import Array

_FIELDS = "fps, dof_pos, rigid_body_pos, rigid_body_rot"
_NAMES = {
    "joint_pos": "dof_pos",
    "joint_vel": "dof_vel",
    "body_pos": "rigid_body_pos",
    "body_quat": "rigid_body_rot",
    "body_lin_vel": "rigid_body_vel",
    "body_ang_vel": "rigid_body_ang_vel",
    "root_pos": "rigid_body_pos",
    "root_quat": "rigid_body_rot",
}


def sniff(path: Path) -> Match | None:
    """Looks for the names of the fields in the torch file's pickle."""
    data = peek(path)
    if not all(name in data for name in (b"dof_pos", b"rigid_body_pos", b"rigid_body_rot")):
        return None
    return Match(0.98, "a torch file with dof_pos, rigid_body_pos and rigid_body_rot")


def read(path: Path) -> list[RobotClip]:
    """The one clip; its root is the first body.

    Raises:
        InputFileError: missing, truncated, holding anything but tensors and containers, or another layout.
    """
    fields = require_mapping(path, "content", load_torch(path), _FIELDS)
    body_pos, body_quat = take(path, fields, "rigid_body_pos"), take(path, fields, "rigid_body_rot")
    check_array(path, "rigid_body_pos", body_pos, (None, None, 3))
    check_array(path, "rigid_body_rot", body_quat, (len(body_pos), body_pos.shape[1], 4))
    check_array(path, "rigid_body_pos of the root", body_pos[:, :1], (len(body_pos), 1, 3))
    joint_pos = take(path, fields, "dof_pos")
    order = "unitree29" if joint_pos.shape[-1:] == (29,) else None
    contacts = "rigid_body_contacts: left out" if "rigid_body_contacts" in fields else None
    clip = RobotClip(
        path=path,
        name=path.stem,
        format=FORMAT.id,
        sha256=sha256_file(path),
        root_pos=body_pos[:, 0],
        root_quat=body_quat[:, 0],
        joint_pos=joint_pos,
        fps=one_number(path, "fps", fields["fps"]) if "fps" in fields else None,
        joint_vel=_optional(path, fields, "dof_vel"),
        body_pos=body_pos,
        body_quat=body_quat,
        body_lin_vel=_optional(path, fields, "rigid_body_vel"),
        body_ang_vel=_optional(path, fields, "rigid_body_ang_vel"),
        declared=Declared("xyzw", order, None, "z", "m", "rad", frame="world"),
        notes=(contacts,) if contacts else (),
    )
    return [checked(clip, _NAMES)]


def _optional(path: Path, fields: Mapping[Any, Any], key: str) -> Array | None:
    return None if fields.get(key) is None else numbers(path, key, fields[key])


FORMAT = Format("protomotions_motion", "ProtoMotions .motion", "robot", (".motion", ".pt"), sniff, read)
