"""Frames in which the network took the left of the body for the right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from asap_core.reconstruction.landmarks import LANDMARK_NAMES, LandmarkTrack

_PARTS = ("shoulder", "elbow", "wrist", "hip", "knee", "ankle", "heel", "foot_index")
_CLEARLY, _FAR = 0.4, 4.0
"""An exchange makes the landmarks' step this much shorter, which was this many times the usual one."""
_MIRROR = np.array([
    LANDMARK_NAMES.index(name.replace("left", "#").replace("right", "left").replace("#", "right"))
    for name in LANDMARK_NAMES
])  # fmt: skip
"""(33,) the landmark on the other side, or the same in the middle."""


def exchanged(track: LandmarkTrack) -> NDArray[np.bool_]:
    """(T,) where the sides are exchanged: from a frame at which all limbs leap to the other side until they leap back.

    Which of the two spans is the wrong one nothing tells; the shorter is taken to be.
    """
    seen = np.flatnonzero(track.found)
    left, right = ([LANDMARK_NAMES.index(f"{side}_{part}") for part in _PARTS] for side in ("left", "right"))
    own, other = track.pixels[seen][:, left + right], track.pixels[seen][:, right + left]
    kept = np.linalg.norm(own[1:] - own[:-1], axis=-1).mean(axis=1)
    crossed = np.linalg.norm(other[1:] - own[:-1], axis=-1).mean(axis=1)
    leaps = (crossed < _CLEARLY * kept) & (kept > _FAR * np.median(kept))
    turned = np.concatenate([[False], np.cumsum(leaps) % 2 == 1])
    if turned.mean() > 0.5:
        turned = ~turned
    out = np.zeros(len(track.found), dtype=bool)
    out[seen] = turned
    return out


def with_sides(track: LandmarkTrack, frames: NDArray[np.bool_]) -> LandmarkTrack:
    """The track with left and right exchanged in `frames` (T,)."""
    arrays = {}
    for name in ("pixels", "metric", "confidence"):
        values = getattr(track, name).copy()
        values[frames] = values[frames][:, _MIRROR]
        arrays[name] = values
    return replace(track, **arrays)
