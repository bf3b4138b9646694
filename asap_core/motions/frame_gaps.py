"""Frames that a video estimator left out: a clip is cut there, or bridged when that is asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.motions.formats.clip import HumanClip
from asap_core.motions.human import resample_pose
from asap_core.rotations import Array


def gaps(clip: HumanClip) -> list[tuple[int, int]]:
    """First and last missing frame number of each gap."""
    if clip.frame_index is None:
        return []
    index, step = clip.frame_index, _step(clip.frame_index)
    after = np.flatnonzero(np.diff(index) > step)
    return [(int(index[k] + step), int(index[k + 1] - step)) for k in after]


def split_at_gaps(clip: HumanClip) -> list[HumanClip]:
    """The clip's unbroken pieces, `<name>_f<first frame>`; itself if there is no gap.

    Pieces of one frame are left out; every piece's notes say how many.
    """
    if not gaps(clip):
        return [clip]
    assert clip.frame_index is not None  # it has gaps
    step = _step(clip.frame_index)
    pieces = np.split(np.arange(len(clip.frame_index)), np.flatnonzero(np.diff(clip.frame_index) > step) + 1)
    kept = [piece for piece in pieces if len(piece) > 1]
    note = f"cut at frames that are missing into {len(kept)} clips, {len(pieces) - len(kept)} single frames left out"
    return [_piece(clip, piece, note) for piece in kept]


def bridge_gaps(clip: HumanClip) -> HumanClip:
    """The clip with every gap filled by slerp and straight lines; the notes list the frames that were made up."""
    found = gaps(clip)
    if not found:
        return clip
    assert clip.frame_index is not None  # it has gaps
    every = np.arange(clip.frame_index[0], clip.frame_index[-1] + 1, _step(clip.frame_index))
    if not np.isin(clip.frame_index, every).all():
        raise InputFileError(clip.path, "frame_index: found steps that are no multiples of each other")
    rotations, root = resample_pose(clip.joint_rotations, clip.root_translation, clip.frame_index, every)
    made_up = ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in found)
    return replace(
        clip,
        joint_rotations=rotations,
        root_translation=root,
        frame_index=every,
        notes=(*clip.notes, f"interpolated frames, which the file lacks: {made_up}"),
    )


def _step(index: Array) -> float:
    """Frames from one to the next where none is missing."""
    return float(np.diff(index).min(initial=np.inf))


def _piece(clip: HumanClip, rows: NDArray[np.integer], note: str) -> HumanClip:
    assert clip.frame_index is not None  # as above
    index = clip.frame_index[rows]
    return replace(
        clip,
        name=f"{clip.name}_f{int(index[0])}",
        joint_rotations=clip.joint_rotations[rows],
        root_translation=clip.root_translation[rows],
        frame_index=index,
        notes=(*clip.notes, note),
    )
