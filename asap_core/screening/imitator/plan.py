"""A path of the centre of mass that the planned contacts can carry, as near as possible to that of the clip."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.sparse import diags_array
from scipy.sparse.linalg import splu

from asap_core.rotations import Array
from asap_core.screening.dynamics import GRAVITY

_PASSES = 30
_DYNAMICS = 30.0
"""Weight of the dynamics against the distance from the clip."""
_BEND = 1e-4
"""Weight of the squared acceleration: keeps the path smooth where nothing else does."""
_INSET = 0.8
"""Part of the support polygon about its middle that the plan uses."""
_LOWEST_SUPPORT = 0.2
"""Of the weight: what the feet carry at least in a frame of support."""
_HULL_WEIGHT = 100.0


def plan_com(com: Array, soles: Array, bears: NDArray[np.bool_], fps: float) -> Array:
    """(T, 3) path, m.

    In frames without a bearing sole point the centre of mass falls freely; in the others the point about which the
    contact forces have no horizontal moment (ZMP) lies in the support polygon. Both hold as far as the weights go, by
    least squares with the ZMP projected into the polygon between two solutions.

    Args:
        com: (T, 3) of the clip, m.
        soles: (T, P, 3) sole points of the clip, m.
        bears: (T, P) whether a sole point is planned to bear load.
        fps: frames per second.
    """
    supported = np.asarray(bears.any(axis=1), bool)
    height = _plan_height(com[:, 2], supported, fps)
    load = np.maximum(_second(height, fps) + GRAVITY, _LOWEST_SUPPORT * GRAVITY)
    ratio = np.where(supported, np.maximum(height, 0.2) / load, 0.0)
    polygons = [_inset(soles[t, bears[t], :2]) if supported[t] else np.empty((0, 2)) for t in range(len(com))]
    path = _plan_horizontal(com[:, :2], polygons, ratio, supported, fps)
    return np.concatenate([path, height[:, None]], axis=1)


def _plan_height(clip: Array, supported: NDArray[np.bool_], fps: float) -> Array:
    """Free fall in flight: least squares in the height."""
    size = len(clip)
    second = _second_operator(size, fps)
    flight = diags_array((~supported).astype(float) * _DYNAMICS / fps)
    matrix = diags_array(np.ones(size)) + second.T @ flight @ second + _BEND * second.T @ second
    return np.asarray(splu(matrix.tocsc()).solve(clip - second.T @ (flight @ np.full(size, GRAVITY))))


def _plan_horizontal(
    clip: Array, polygons: list[Array], ratio: Array, supported: NDArray[np.bool_], fps: float
) -> Array:
    size = len(clip)
    second = _second_operator(size, fps)
    zmp = diags_array(np.where(supported, 1.0, 0.0)) - diags_array(ratio) @ second
    flight = diags_array((~supported).astype(float) * _DYNAMICS / fps)
    matrix = diags_array(np.ones(size)) + _DYNAMICS * zmp.T @ zmp
    matrix = matrix + second.T @ flight @ second + _BEND * second.T @ second
    factor = splu(matrix.tocsc())
    path = clip
    for _ in range(_PASSES):
        wanted = zmp @ path
        for t in np.flatnonzero(supported):
            wanted[t] = nearest_in_hull(polygons[t], wanted[t])
        path = factor.solve(clip + _DYNAMICS * (zmp.T @ wanted))
    return np.asarray(path)


def nearest_in_hull(points: Array, to: Array) -> Array:
    """The point (2,) of the convex hull of `points` (P, 2) that is nearest to `to` (2,)."""
    relative = points - to
    weights, _ = nnls(np.vstack([relative.T, np.full(len(points), _HULL_WEIGHT)]), np.array([0.0, 0.0, _HULL_WEIGHT]))
    return np.asarray(to + weights @ relative)


def _inset(points: Array) -> Array:
    middle = points.mean(axis=0)
    return np.asarray(middle + _INSET * (points - middle))


def _second_operator(size: int, fps: float) -> diags_array:
    """(T, T) second derivative; rows at both ends are zero."""
    inner = np.ones(size)
    inner[0] = inner[-1] = 0.0
    band = [inner[1:], -2.0 * inner, inner[:-1]]
    return diags_array(band, offsets=[-1, 0, 1], shape=(size, size)).tocsr() * fps**2


def _second(values: Array, fps: float) -> Array:
    return np.asarray(_second_operator(len(values), fps) @ values)
