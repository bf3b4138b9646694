"""Which soles stand when."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_closing, binary_opening, gaussian_filter1d

from asap_core.rotations import Array

_SLOW = 0.35
"""m/s; a standing sole's landmark wanders slower than this in the image."""
_LOW = 0.07
"""m; a standing sole is nearer than this to the ground."""
_SHORTEST = 0.1
"""s"""


def still(places: Array, fps: float, metres: Array | float = 1.0) -> NDArray[np.bool_]:
    """(T, n) where places (T, n, 2 or 3) hardly move; a unit of them is `metres` (T, 1)."""
    smooth = gaussian_filter1d(places, max(fps / 30.0, 0.5), axis=0, mode="nearest")
    speed = np.linalg.norm(np.gradient(smooth, axis=0), axis=-1) * fps * metres
    return _without_blips(speed < _SLOW, fps)


def standing(soles: Array, resting: NDArray[np.bool_], fps: float) -> NDArray[np.bool_]:
    """(T, n) where soles (T, n, 3), m, that are still are also near the ground, at z = 0."""
    return _without_blips(resting & (soles[..., 2] < _LOW), fps)


def _without_blips(mask: NDArray[np.bool_], fps: float) -> NDArray[np.bool_]:
    """Close gaps up to the shortest contact, then drop contacts as short; the ends of the clip count as continued."""
    width = max(1, round(_SHORTEST * fps))
    frame = np.ones((width, 1))
    padded = np.pad(mask, ((width, width), (0, 0)), mode="edge")
    return np.asarray(binary_opening(binary_closing(padded, frame), frame)[width:-width])
