"""Do stored velocities belong to stored positions? Over short windows their integral must be the change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from asap_core.rotations import Array, quat_conj, quat_mul, quat_to_rotvec

WINDOW = 10
"""Samples of a window."""
_STILL = 0.1
"""A column that moves less than this share of the liveliest is not asked."""
_MANY = 20000


@dataclass(frozen=True)
class Slope:
    """Stored velocity over the velocity that positions and stamps show."""

    slope: float
    """Median over moving columns; 1 where all is well, negative where signs differ. NaN if nothing moves."""
    r2: float
    """Median share of the position changes that the integral explains."""


def windows(time: Array, values: Array, rates: Array) -> tuple[Array, Array]:
    """Changes of `values` and integrals of `rates` (both (N, C)) over windows without gaps, (W, C) each."""
    time, values, rates = time[:_MANY], values[:_MANY], rates[:_MANY]
    steps = np.diff(time)
    span = time[WINDOW:] - time[:-WINDOW]
    area = np.cumsum((rates[1:] + rates[:-1]) / 2 * steps[:, None], axis=0)
    area = np.vstack([np.zeros(rates.shape[1]), area])
    change, integral = values[WINDOW:] - values[:-WINDOW], area[WINDOW:] - area[:-WINDOW]
    good = (span > 0) & (span < 1.5 * WINDOW * np.median(steps))
    good &= np.isfinite(change).all(axis=1) & np.isfinite(integral).all(axis=1)
    return change[good], integral[good]


def rate_slope(change: Array, integral: Array) -> Slope:
    """The slope from `windows`."""
    size = np.sqrt((change**2).mean(axis=0)) if len(change) else np.zeros(change.shape[1])
    moving = size > max(_STILL * size.max(initial=0.0), 1e-6)
    if len(change) < WINDOW or not moving.any():
        return Slope(float("nan"), float("nan"))
    x, y = integral[:, moving], change[:, moving]
    xy, xx, yy = (x * y).sum(axis=0), (x * x).sum(axis=0), (y * y).sum(axis=0)
    r2 = xy**2 / np.maximum(xx * yy, 1e-300)
    # Between the regressions of one on the other, so that noise of either side does not bend the slope.
    slope = np.sign(xy) * np.sqrt(xx / yy)
    return Slope(float(np.median(slope)), float(np.median(r2)))


def turning(quat: Array) -> Array:
    """Summed body-frame rotation vectors (N, 3) of orientations (N, 4) wxyz: changes are turns over short windows."""
    steps = quat_to_rotvec(quat_mul(quat_conj(quat[:-1]), quat[1:]))
    return np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])


@dataclass(frozen=True)
class Match:
    """How the columns of one array belong to those of another."""

    diagonal: float
    """Share of the moving columns that fit their own place best."""
    places: tuple[int, ...]
    """For each column of the first, the column of the second that it fits best; still ones keep their place."""
    correlation: float
    """Mean |correlation| on the best places of moving columns."""


def column_match(first: Array, second: Array) -> Match:
    """Best assignment of the columns of `second` (N, C) to those of `first` (N, C) by correlation."""
    count = first.shape[1]
    sizes = [np.std(a, axis=0) for a in (first, second)]
    moving = [np.flatnonzero(size > max(_STILL * size.max(initial=0.0), 1e-9)) for size in sizes]
    places = np.arange(count)
    if not len(moving[0]) or not len(moving[1]):
        return Match(1.0, tuple(places.tolist()), float("nan"))
    a, b = (x[:, m] - x[:, m].mean(axis=0) for x, m in zip((first, second), moving, strict=True))
    score = np.abs((a / np.linalg.norm(a, axis=0)).T @ (b / np.linalg.norm(b, axis=0)))
    rows, columns = linear_sum_assignment(-score)
    own = [moving[0][r] == moving[1][c] for r, c in zip(rows, columns, strict=True)]
    for r, c in zip(rows, columns, strict=True):
        places[moving[0][r]] = moving[1][c]
    return Match(float(np.mean(own)), tuple(places.tolist()), float(score[rows, columns].mean()))
