"""Which npz layout of AMASS and ASAP a file has, from its headers alone."""

from __future__ import annotations

from pathlib import Path

from asap_core.motions.formats.format import Match
from asap_core.motions.formats.human_fields import BODY_WIDTH
from asap_core.motions.formats.npz import npz_shapes
from asap_core.motions.formats.smpl_npz import is_shape_only


def sniff_smpl_npz(path: Path, widths: tuple[int, ...]) -> Match | None:
    """A match if the poses, or their parts, have one of `widths`; a shape without motion (width 0) can be asked for."""
    shapes = npz_shapes(path)
    names = set(shapes)
    if BODY_WIDTH in widths and {"root_orient", "pose_body"} <= names:
        return Match(0.95, "fields root_orient and pose_body")
    if 0 in widths and is_shape_only(names):
        return Match(0.8, "betas and no poses: a subject's shape without motion")
    if not {"poses", "trans"} <= names or "root_orient" in names:
        return None
    shape = shapes["poses"]
    if len(shape) != 2 or shape[1] not in widths:
        return None
    return Match(0.95, f"fields poses (T, {shape[1]}) and trans")
