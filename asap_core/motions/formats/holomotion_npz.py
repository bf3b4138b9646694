"""HoloMotion's npz: JSON `metadata`, `ref_dof_pos` and `ref_global_*`; after an evaluation `robot_*` as well (E13)."""

from __future__ import annotations

from pathlib import Path

from asap_core.files import sha256_file
from asap_core.motions.formats.checks import checked
from asap_core.motions.formats.clip import RobotClip
from asap_core.motions.formats.fields import NpzFields, one_number, texts
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.formats.holomotion import declared, metadata_of, name_of, rate_of
from asap_core.motions.formats.npz import npz_shapes
from asap_core.motions.tables import check_array

_FIELDS = {
    "joint_pos": "dof_pos",
    "joint_vel": "dof_vel",
    "body_pos": "global_translation",
    "body_quat": "global_rotation_quat",
    "body_lin_vel": "global_velocity",
    "body_ang_vel": "global_angular_velocity",
    "root_pos": "global_translation",
    "root_quat": "global_rotation_quat",
}


def sniff(path: Path) -> Match | None:
    """Looks for the names of the fields."""
    if not {"ref_dof_pos", "ref_global_translation"} <= set(npz_shapes(path)):
        return None
    return Match(0.98, "an npz with ref_dof_pos and ref_global_translation")


def read(path: Path) -> list[RobotClip]:
    """The reference, and the robot's own motion behind it where the file is an evaluation.

    Raises:
        InputFileError: missing, truncated, another layout, arrays that do not fit each other, or a NaN.
    """
    with NpzFields(path) as fields:
        prefixes = ["ref_", *(["robot_"] if "robot_dof_pos" in fields else [])]
        return [_read_clip(path, fields, prefix) for prefix in prefixes]


def _read_clip(path: Path, fields: NpzFields, prefix: str) -> RobotClip:
    metadata = metadata_of(fields.text("metadata"))
    body_pos, body_quat = fields[f"{prefix}global_translation"], fields[f"{prefix}global_rotation_quat"]
    check_array(path, f"{prefix}global_translation", body_pos, (None, None, 3))
    check_array(path, f"{prefix}global_rotation_quat", body_quat, (len(body_pos), body_pos.shape[1], 4))
    check_array(path, f"{prefix}global_translation of the root", body_pos[:, :1], (len(body_pos), 1, 3))
    joint_pos = fields[f"{prefix}dof_pos"]
    rate = one_number(path, "fps", fields["fps"]) if "fps" in fields else rate_of(metadata)
    name = name_of(metadata, path.stem)
    left_out = sorted(name for name in fields if name.startswith("ft_ref_"))
    clip = RobotClip(
        path=path,
        name=name if prefix == "ref_" else f"{name}_robot",
        format=FORMAT.id,
        sha256=sha256_file(path),
        root_pos=body_pos[:, 0],
        root_quat=body_quat[:, 0],
        joint_pos=joint_pos,
        fps=rate,
        joint_names=fields.texts("joint_names") or texts(metadata.get("dof_names")),
        joint_vel=fields.get(f"{prefix}dof_vel"),
        body_names=fields.texts("body_names") or texts(metadata.get("body_names")),
        body_pos=body_pos,
        body_quat=body_quat,
        body_lin_vel=fields.get(f"{prefix}global_velocity"),
        body_ang_vel=fields.get(f"{prefix}global_angular_velocity"),
        declared=declared(joint_pos.shape[-1] if joint_pos.ndim else 0),
        notes=(f"left out: {', '.join(left_out)}",) if left_out else (),
    )
    return checked(clip, {key: prefix + field for key, field in _FIELDS.items()})


FORMAT = Format("holomotion_npz", "HoloMotion npz", "robot", (".npz",), sniff, read)
