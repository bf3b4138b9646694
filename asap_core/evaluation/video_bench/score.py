"""Errors of a reconstructed person against the true one, on the twelve joints that all body models share."""

from __future__ import annotations

import numpy as np

from asap_core.motions.skeleton import INDEX
from asap_core.reconstruction.landmarks import LANDMARK_NAMES
from asap_core.reconstruction.rendering.body_mesh import KEYPOINT_NAMES
from asap_core.rotations import Array

_PARTS = ("shoulder", "elbow", "wrist", "hip", "knee", "ankle")
SCORED = tuple(f"{side}_{part}" for part in _PARTS for side in ("left", "right"))
"""The joints that are scored; hips at places 6 and 7."""
_HIPS = [SCORED.index("left_hip"), SCORED.index("right_hip")]
_DRIFT_S, _FPS = 4.0, 30.0
Figures = dict[str, float]


def of_skeleton(joints: Array) -> Array:
    """`SCORED` (T, 12, 3) among SMPL joints (T, 24, 3)."""
    names = [f"{name[0].upper()}_{name.split('_')[1].capitalize()}" for name in SCORED]
    return joints[:, [INDEX[name] for name in names]]


def of_keypoints(points: Array) -> Array:
    """`SCORED` (T, 12, 3) among the mesh's keypoints (T, 23, 3)."""
    return points[:, [KEYPOINT_NAMES.index(name) for name in SCORED]]


def of_landmarks(points: Array) -> Array:
    """`SCORED` (T, 12, 3) among BlazePose's landmarks (T, 33, 3)."""
    return points[:, [LANDMARK_NAMES.index(name) for name in SCORED]]


def score(found: Array, true: Array, fps: float) -> Figures:
    """Errors of places (T, 12, 3) in the world, m.

    Returns:
        mpjpe_mm: mean distance, hips' middle laid on hips' middle in each frame; pa_mpjpe_mm: the same after the best
        similarity in each frame; drift_mm: mean distance of the hips' middle over the first 4 s, laid on the true one
        in the first frame; acceleration_mm: mean distance of second differences, hips' middle included, mm/frame² at
        30 frames per second.
    """
    hips_found, hips_true = (places[:, _HIPS].mean(axis=1) for places in (found, true))
    own, other = found - hips_found[:, None], true - hips_true[:, None]
    away = (hips_found - hips_true)[: round(_DRIFT_S * fps) + 1]
    second = np.diff(found, 2, axis=0) - np.diff(true, 2, axis=0)
    return {
        "mpjpe_mm": _mean_mm(own - other),
        "pa_mpjpe_mm": _mean_mm(_laid_on(own, other) - other),
        "drift_mm": _mean_mm(away - away[0]),
        "acceleration_mm": _mean_mm(second) * (fps / _FPS) ** 2,
    }


def _mean_mm(difference: Array) -> float:
    return 1e3 * float(np.linalg.norm(difference, axis=-1).mean())


def _laid_on(own: Array, other: Array) -> Array:
    """Points (T, N, 3) moved by the similarity of each frame that brings them nearest to others (Umeyama 1991)."""
    centre = other.mean(axis=1, keepdims=True)
    a, b = own - own.mean(axis=1, keepdims=True), other - centre
    left, stretch, right = np.linalg.svd(np.einsum("tni,tnj->tij", b, a))
    sign = np.ones_like(stretch)
    sign[:, 2] = np.sign(np.linalg.det(left @ right))
    turn = (left * sign[:, None]) @ right
    scale = (stretch * sign).sum(axis=1) / np.square(a).sum(axis=(1, 2))
    return scale[:, None, None] * np.einsum("tij,tnj->tni", turn, a) + centre
