"""What the npz layouts of AMASS and ASAP share: `poses` or its parts, `trans`, `betas`, `gender` and the rate."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.motions.formats.clip import BodyModel, Declared, HumanClip
from asap_core.motions.formats.fields import NpzFields, listed, one_number
from asap_core.motions.formats.human_fields import BODY_WIDTH, check_frames, mean_betas, to_smpl_joints
from asap_core.motions.tables import check_array, check_fps
from asap_core.rotations import Array

RATE_KEYS = ("mocap_framerate", "mocap_frame_rate")
MODEL_OF_WIDTH: dict[int, BodyModel] = {66: "smplx", 72: "smpl", 156: "smplh", 165: "smplx"}
"""Numbers per frame of `poses`."""
DECLARED = Declared(up_axis="z", length_unit="m", angle_unit="rad", frame="world")


def read_smpl_npz(path: Path, format_name: str, widths: tuple[int, ...]) -> HumanClip:
    """Read a clip whose poses have one of `widths`; only the fields that are needed are opened.

    Raises:
        InputFileError: missing, truncated, a shape without motion, another layout, a wrong width, a NaN, or no rate.
    """
    with NpzFields(path) as fields:
        _refuse_shape_only(fields)
        poses = _read_poses(fields, widths)
        trans = fields["trans"]
        check_array(path, "trans", trans, (None, 3))
        check_frames(path, "trans", trans, len(poses), 3)
        given = fields["betas"] if "betas" in fields else None  # noqa: SIM401  # a look-up raises no KeyError
        betas, notes = mean_betas(path, "betas", given)
        return HumanClip(
            path=path,
            name=path.stem,
            format=format_name,
            sha256=sha256_file(path),
            joint_rotations=to_smpl_joints(poses),
            root_translation=trans,
            fps=_read_rate(fields),
            betas=betas,
            gender=fields.text("gender"),
            root_point="model_origin",
            body_model=MODEL_OF_WIDTH[poses.shape[1]],
            declared=DECLARED,
            notes=notes,
        )


def is_shape_only(names: Iterable[str]) -> bool:
    """Whether fields of these names are a subject's shape without a motion."""
    found = set(names)
    return "betas" in found and not found & {"poses", "root_orient", "pose_body", "body_pose", "trans", "transl"}


def _refuse_shape_only(fields: NpzFields) -> None:
    if is_shape_only(fields):
        reason = "shape only: found betas and no poses (AMASS stage I, a subject's shape); "
        raise InputFileError(fields.path, reason + "expected a motion, such as the *_stageii.npz of the same subject")


def _read_poses(fields: NpzFields, widths: tuple[int, ...]) -> Array:
    path = fields.path
    if "root_orient" in fields and BODY_WIDTH in widths:
        root, body = fields["root_orient"], fields["pose_body"]
        check_array(path, "root_orient", root, (None, 3))
        check_array(path, "pose_body", body, (len(root), BODY_WIDTH - 3))
        return np.concatenate([root, body], axis=1)
    if "poses" not in fields:
        raise InputFileError(path, f"poses (or root_orient and pose_body): missing; found {listed(fields)}")
    poses = fields["poses"]
    if poses.ndim != 2 or poses.shape[1] not in widths:
        expected = ", ".join(map(str, widths))
        raise InputFileError(path, f"poses: found shape {poses.shape}, expected (T, one of {expected})")
    check_array(path, "poses", poses, (None, poses.shape[1]))
    return poses


def _read_rate(fields: NpzFields) -> float:
    for key in RATE_KEYS:
        if key in fields:
            return check_fps(fields.path, key, one_number(fields.path, key, fields[key]))
    found = listed(fields)
    raise InputFileError(fields.path, f"frame rate: missing; found {found}, expected {' or '.join(RATE_KEYS)}")
