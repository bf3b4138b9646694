"""Reader of GVHMR's `hmr4d_results.pt`: SMPL-X body in a y-up world whose y axis is against gravity.

`smpl_params_incam` is the same person in the camera's frame, where up is not an axis; it is never taken for a world.
The rate is not stored: there is one frame for each of the video's. GVHMR's copy of the video says 30 frames per second,
but its `tools/demo/demo.py` copies frame by frame, and leaves out or repeats none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.motions.formats.clip import Declared, HumanClip
from asap_core.motions.formats.fields import listed, numbers, require_mapping, take
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.formats.human_fields import (
    BODY_WIDTH,
    check_frames,
    mean_betas,
    to_smpl_joints,
    torch_pickle_head,
)
from asap_core.motions.tables import check_array
from asap_core.restricted_pickle import load_torch

_WORLD, _CAMERA = "smpl_params_global", "smpl_params_incam"
_KEYS = ("body_pose", "global_orient", "transl", "betas")
_DECLARED = Declared(up_axis="y", length_unit="m", angle_unit="rad", frame="world")


def read(path: Path) -> list[HumanClip]:
    """The one person of the file, in the gravity-aligned world.

    Raises:
        InputFileError: missing, truncated, only in the camera's frame, or another layout.
    """
    content = require_mapping(path, "file", load_torch(path), _WORLD)
    if _WORLD not in content:
        raise InputFileError(path, _without_world(content))
    params = require_mapping(path, _WORLD, content[_WORLD], ", ".join(_KEYS))
    where = f"{_WORLD}."
    body, orient = take(path, params, "body_pose", where), take(path, params, "global_orient", where)
    transl = take(path, params, "transl", where)
    check_array(path, f"{where}body_pose", body, (None, BODY_WIDTH - 3))
    check_frames(path, f"{where}global_orient", orient, len(body), 3)
    check_frames(path, f"{where}transl", transl, len(body), 3)
    given = params.get("betas")
    betas, notes = mean_betas(path, f"{where}betas", None if given is None else numbers(path, f"{where}betas", given))
    clip = HumanClip(
        path=path,
        name=path.parent.name if path.stem == "hmr4d_results" and path.parent.name else path.stem,
        format="gvhmr",
        sha256=sha256_file(path),
        joint_rotations=to_smpl_joints(np.concatenate([orient, body], axis=1)),
        root_translation=transl,
        betas=betas,
        root_point="model_origin",
        body_model="smplx",
        declared=_DECLARED,
        notes=(*notes, "the file stores no rate; it is the video's"),
    )
    return [clip]


def _without_world(content: Mapping[Any, Any]) -> str:
    """Why a file without the world's parameters is refused."""
    if _CAMERA in content:
        return f"{_WORLD}: missing; found only {_CAMERA}, which is in the camera's frame: use {_WORLD}"
    if {"body_pose", "global_orient"} <= set(map(str, content)):
        return f"{_WORLD}: missing; found one dict of parameters that does not say its frame: use {_WORLD}"
    return f"{_WORLD}: missing; found {listed(content)}"


def sniff(path: Path) -> Match | None:
    """By the names of its dicts in the pickle of the torch archive."""
    head = torch_pickle_head(path)
    found = [key for key in (_WORLD, _CAMERA) if key.encode() in head]
    if found:
        return Match(0.95, f"torch file with {' and '.join(found)}")
    if b"body_pose" in head and b"global_orient" in head:
        return Match(0.6, "torch file with body_pose and global_orient")
    return None


FORMAT = Format("gvhmr", "GVHMR hmr4d_results.pt", "human", (".pt",), sniff, read)
