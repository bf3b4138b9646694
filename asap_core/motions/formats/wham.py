"""Reader of WHAM's `wham_output.pkl`: one entry for each person, in a y-up world.

`trans_world` is the point midway between the hips, not SMPL's `trans`: WHAM's body model (its `lib/models/smpl.py`,
`get_output`) takes the mean of its two hip joints off every vertex before it adds the translation. The video's rate is
not stored; `frame_ids` has gaps where the person was not tracked.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.motions.formats.clip import Declared, HumanClip
from asap_core.motions.formats.fields import listed, numbers, require_mapping, take
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.formats.human_fields import (
    SMPL_WIDTH,
    check_frame_index,
    check_frames,
    holds_words,
    mean_betas,
    to_smpl_joints,
)
from asap_core.motions.tables import check_array
from asap_core.restricted_pickle import load_restricted
from asap_core.rotations import Array

_DECLARED = Declared(up_axis="y", length_unit="m", angle_unit="rad", frame="world")
_KEYS = "pose_world, trans_world, betas, frame_ids"


def read(path: Path) -> list[HumanClip]:
    """Every person of the file, named `<stem>_<id>`.

    Raises:
        InputFileError: missing, truncated, holding anything but numbers, only in the camera's frame, or another layout.
    """
    people = require_mapping(path, "file", load_restricted(path), "one entry for each person")
    if not people:
        raise InputFileError(path, "no person: found an empty dict")
    digest = sha256_file(path)
    return [_person(path, str(key), value, digest) for key, value in people.items()]


def _person(path: Path, key: str, value: Any, digest: str) -> HumanClip:
    fields, where = require_mapping(path, f"person {key}", value, _KEYS), f"person {key}: "
    if "pose_world" not in fields or "trans_world" not in fields:
        raise InputFileError(path, _without_world(fields, where))
    pose, trans = take(path, fields, "pose_world", where), take(path, fields, "trans_world", where)
    check_array(path, f"{where}pose_world", pose, (None, SMPL_WIDTH))
    check_frames(path, f"{where}trans_world", trans, len(pose), 3)
    given = fields.get("betas")
    betas, notes = mean_betas(path, f"{where}betas", None if given is None else numbers(path, f"{where}betas", given))
    return HumanClip(
        path=path,
        name=f"{path.stem}_{key}",
        format="wham",
        sha256=digest,
        joint_rotations=to_smpl_joints(pose),
        root_translation=trans,
        betas=betas,
        frame_index=_frame_ids(path, fields, where, len(pose)),
        root_point="hip_centre",
        body_model="smpl",
        declared=_DECLARED,
        notes=(*notes, "the file stores no rate; it is the video's"),
    )


def _frame_ids(path: Path, fields: Mapping[Any, Any], where: str, frames: int) -> Array | None:
    if "frame_ids" not in fields:
        return None
    index = take(path, fields, "frame_ids", where)
    return check_frame_index(path, f"{where}frame_ids", index, frames)


def _without_world(fields: Mapping[Any, Any], where: str) -> str:
    if "pose" in fields:
        found = "found only pose and trans, which are in the camera's frame"
        return f"{where}pose_world: missing; {found}: use pose_world and trans_world (run WHAM without local-only mode)"
    return f"{where}pose_world: missing; found {listed(fields)}, expected {_KEYS}"


def sniff(path: Path) -> Match | None:
    """By the names of its fields."""
    if holds_words(path, (b"pose_world", b"trans_world")):
        return Match(0.95, "pickle with pose_world and trans_world")
    if holds_words(path, (b"frame_ids", b"betas", b"pose", b"verts")):
        return Match(0.9, "pickle with pose, betas, verts and frame_ids, without a world")
    return None


FORMAT = Format("wham", "WHAM wham_output.pkl", "human", (".pkl",), sniff, read)
