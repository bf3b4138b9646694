"""Points in space from what several calibrated cameras see of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.reconstruction.calibration import CalibratedCamera
from asap_core.rotations import Array

_REWEIGHTED, _REFINED = 4, 4
_TOLERANCE = 8.0
"""px per 1000 px of focal length; what a camera is off by more counts for little."""
_LEAST_CONFIDENCE = 0.3
"""A camera that is less sure of a point is not asked."""


@dataclass(frozen=True)
class Triangulated:
    """N points."""

    places: Array
    """(N, 3) world, m; NaN where fewer than two cameras saw the point."""
    error: Array
    """(N,) mean distance of the reprojections in the cameras that count, px; NaN likewise."""
    confidence: Array
    """(N,) from 0 to 1: mean confidence of the cameras that agree, less where few do; 0 where fewer than two saw it."""


def triangulate(cameras: Sequence[CalibratedCamera], pixels: Array, confidence: Array) -> Triangulated:
    """Confidence-weighted DLT, reweighted so that a camera that disagrees loses its say, then least reprojection error.

    Args:
        cameras: C of them.
        pixels: (C, N, 2); NaN where not seen.
        confidence: (C, N) from 0 to 1.
    """
    seen = np.isfinite(pixels).all(axis=-1) & (confidence >= _LEAST_CONFIDENCE)
    weight = np.where(seen, confidence, 0.0)
    pixels = np.where(seen[..., None], pixels, 0.0)
    rays = np.stack([camera.rays(own) for camera, own in zip(cameras, pixels, strict=True)])
    focal = np.array([np.sqrt(camera.matrix[0, 0] * camera.matrix[1, 1]) for camera in cameras])
    solvable = seen.sum(axis=0) >= 2
    places = np.zeros((pixels.shape[1], 3))
    trust = np.ones_like(weight)
    for _ in range(_REWEIGHTED):
        places[solvable] = _linear(cameras, rays[:, solvable], (weight * trust)[:, solvable])
        trust = _trust(_offsets(cameras, rays, places), weight > 0)
    for _ in range(_REFINED):
        places[solvable] += _step(cameras, rays[:, solvable], (weight * trust)[:, solvable], places[solvable])
        trust = _trust(_offsets(cameras, rays, places), weight > 0)
    counts = weight * trust
    error = np.linalg.norm(_offsets(cameras, rays, places), axis=-1) * focal[:, None]
    total = counts.sum(axis=0).clip(1e-12)
    agree = np.where(seen, trust, 0.0).sum(axis=0)
    sure = np.clip((counts**2).sum(axis=0) / total, 0.0, 1.0) * np.clip(agree - 1.0, 0.0, 1.0)
    places[~solvable] = np.nan
    return Triangulated(places, np.where(solvable, (counts * error).sum(axis=0) / total, np.nan), sure * solvable)


def _linear(cameras: Sequence[CalibratedCamera], rays: Array, weight: Array) -> Array:
    """Nearest points (N, 3) to undistorted rays (C, N, 2) in the sense of the direct linear transform."""
    rows, right = [], []
    for camera, ray, own in zip(cameras, rays, weight, strict=True):
        for axis in range(2):
            direction = camera.rotation[axis] - ray[:, axis, None] * camera.rotation[2]
            offset = ray[:, axis] * camera.translation[2] - camera.translation[axis]
            rows.append(direction * own[:, None])
            right.append(offset * own)
    a, b = np.stack(rows, axis=1), np.stack(right, axis=1)
    normal = np.einsum("nki,nkj->nij", a, a) + 1e-12 * np.eye(3)
    return np.asarray(np.linalg.solve(normal, np.einsum("nki,nk->ni", a, b)[..., None])[..., 0])


def _offsets(cameras: Sequence[CalibratedCamera], rays: Array, places: Array) -> Array:
    """(C, N, 2) reprojections less rays, at distance 1."""
    seen = np.stack([camera.seen(places) for camera in cameras])
    depth = np.maximum(seen[..., 2:], 1e-3)
    return seen[..., :2] / depth - rays


def _trust(offsets: Array, seen: NDArray[np.bool_]) -> Array:
    """(C, N) from 0 to 1 by Geman-McClure's weight."""
    size = np.linalg.norm(offsets, axis=-1) / (_TOLERANCE / 1000.0)
    return np.where(seen, 1.0 / (1.0 + size**2) ** 2, 0.0)


def _step(cameras: Sequence[CalibratedCamera], rays: Array, weight: Array, places: Array) -> Array:
    """One Gauss-Newton step (N, 3) of the reprojection error."""
    offsets = _offsets(cameras, rays, places)
    normal, pull = 1e-12 * np.eye(3), np.zeros(places.shape)
    for camera, offset, own in zip(cameras, offsets, weight, strict=True):
        seen = camera.seen(places)
        depth = np.maximum(seen[:, 2], 1e-3)[:, None, None]
        rows = (camera.rotation[:2] - (seen[:, :2] / depth[:, :, 0])[..., None] * camera.rotation[2]) / depth
        normal = normal + np.einsum("n,nki,nkj->nij", own, rows, rows)
        pull = pull + np.einsum("n,nki,nk->ni", own, rows, offset)
    return -np.linalg.solve(normal, pull[..., None])[..., 0]
