"""Which part of which foot stands when, read from joint positions, and the ground that follows from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_closing, binary_opening, gaussian_filter1d

from asap_core.motions.skeleton import INDEX
from asap_core.rotations import Array

HEEL_TOE = tuple(INDEX[name] for name in ("L_Ankle", "L_Toe", "R_Ankle", "R_Toe"))
"""Joints that stand for left heel, left toe, right heel, right toe."""


def detect_contacts(positions: Array, fps: float, speed: float, height: float) -> NDArray[np.bool_]:
    """(T, 4) bool for left heel, left toe, right heel, right toe: slow and near the height at which they stand.

    Args:
        positions: SMPL joints (T, 24, 3), m.
        fps: frames per second.
        speed: highest speed of a standing foot, m/s.
        height: highest rise above the standing height, m.
    """
    smooth = gaussian_filter1d(positions[:, HEEL_TOE], max(1.0, fps / 30.0), axis=0)
    slow = np.linalg.norm(np.gradient(smooth, axis=0), axis=-1) * fps < speed
    level = smooth[..., 2]
    columns = zip(level.T, slow.T, strict=True)
    ground = [np.percentile(z[still], 15) if still.sum() > 3 else z.min() for z, still in columns]
    return _without_blips(slow & (level < np.array(ground) + height))


def _without_blips(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Close gaps of up to two frames, then drop contacts as short; the ends of the clip count as continued."""
    three = np.ones((3, 1))
    padded = np.pad(mask, ((3, 3), (0, 0)), mode="edge")
    return np.asarray(binary_opening(binary_closing(padded, three), three)[3:-3])


def ground_shift(positions: Array, contacts: NDArray[np.bool_], ankle_height: float) -> float:
    """Metres to add to z so that the ankles of standing feet are at `ankle_height`."""
    levels = [
        np.percentile(positions[contacts[:, column], joint, 2], 25)
        for column, joint in ((0, HEEL_TOE[0]), (2, HEEL_TOE[2]))
        if contacts[:, column].any()
    ]
    lowest = float(np.mean(levels)) if levels else float(positions[:, [HEEL_TOE[0], HEEL_TOE[2]], 2].min())
    return ankle_height - lowest
