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


def still_in_the_image(pixels: Array, metres_per_pixel: Array, fps: float) -> NDArray[np.bool_]:
    """(T, n) where pixels (T, n, 2) hardly move, given what a pixel is worth at the person (T,)."""
    smooth = gaussian_filter1d(pixels, max(fps / 30.0, 0.5), axis=0, mode="nearest")
    speed = np.linalg.norm(np.gradient(smooth, axis=0), axis=-1) * fps * metres_per_pixel[:, None]
    return _without_blips(speed < _SLOW, fps)


def standing(soles: Array, still: NDArray[np.bool_], fps: float) -> NDArray[np.bool_]:
    """(T, n) where soles (T, n, 3), m, that are still in the image are also near the ground, at z = 0."""
    return _without_blips(still & (soles[..., 2] < _LOW), fps)


def _without_blips(mask: NDArray[np.bool_], fps: float) -> NDArray[np.bool_]:
    """Close gaps up to the shortest contact, then drop contacts as short; the ends of the clip count as continued."""
    width = max(1, round(_SHORTEST * fps))
    frame = np.ones((width, 1))
    padded = np.pad(mask, ((width, width), (0, 0)), mode="edge")
    return np.asarray(binary_opening(binary_closing(padded, frame), frame)[width:-width])
