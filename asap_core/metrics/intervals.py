"""Intervals around means: Student's t, bootstrap, and paired differences that respect clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Interval:
    """A mean with its two-sided interval."""

    mean: float
    low: float
    high: float
    n: int
    """Independent units behind it: values, or clusters where clusters were given."""

    def as_dict(self) -> dict[str, float | int]:
        """The fields by name."""
        return asdict(self)

    def text(self, digits: int = 1) -> str:
        """`mean [low, high]`."""
        return f"{self.mean:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def t_interval(values: ArrayLike, clusters: Sequence[object] | None = None, confidence: float = 0.95) -> Interval:
    """Student's t interval of the mean.

    Values of one cluster (a training seed, a recorded episode) are not independent: with two or more clusters, the
    interval is that of the cluster means, whose number is the sample size. One cluster alone, or none given, leaves
    the values as the units: the interval then says nothing about other clusters.

    Args:
        values: (n,) finite.
        clusters: (n,) the label of each value's cluster.
        confidence: two-sided coverage.

    Raises:
        ValueError: no values, values that are not finite, or labels of another length.
    """
    from scipy.stats import t

    units = _units(_checked(values), clusters)
    mean = float(units.mean())
    if len(units) == 1:
        return Interval(mean, mean, mean, 1)
    half = float(t.ppf(0.5 + confidence / 2, len(units) - 1) * units.std(ddof=1) / np.sqrt(len(units)))
    return Interval(mean, mean - half, mean + half, len(units))


def bootstrap_interval(
    values: ArrayLike,
    clusters: Sequence[object] | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap interval of the mean; whole clusters are drawn where clusters are given.

    Raises:
        ValueError: as `t_interval`.
    """
    data = _checked(values)
    groups = [np.array([v]) for v in data] if clusters is None else _groups(data, clusters)
    sums = np.array([g.sum() for g in groups])
    counts = np.array([len(g) for g in groups])
    drawn = np.random.default_rng(seed).integers(0, len(groups), (resamples, len(groups)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(data.mean()), float(low), float(high), len(groups))


def paired_difference(
    first: ArrayLike, second: ArrayLike, clusters: Sequence[object] | None = None, confidence: float = 0.95
) -> Interval:
    """t interval of `first − second`, value by value on the same start; clustered as in `t_interval`.

    Raises:
        ValueError: lengths differ, or as `t_interval`.
    """
    a, b = _checked(first), _checked(second)
    if a.shape != b.shape:
        raise ValueError(f"paired values differ in length: {len(a)} and {len(b)}")
    return t_interval(a - b, clusters, confidence)


def _checked(values: ArrayLike) -> NDArray[np.floating]:
    data = np.asarray(values, dtype=np.float64).ravel()
    if not len(data):
        raise ValueError("no values to average")
    if not np.isfinite(data).all():
        raise ValueError(f"value {int(np.argmin(np.isfinite(data)))} is not finite")
    return data


def _groups(data: NDArray[np.floating], clusters: Sequence[object]) -> list[NDArray[np.floating]]:
    labels = [str(c) for c in clusters]
    if len(labels) != len(data):
        raise ValueError(f"{len(data)} values but {len(labels)} cluster labels")
    return [data[[i for i, label in enumerate(labels) if label == name]] for name in dict.fromkeys(labels)]


def _units(data: NDArray[np.floating], clusters: Sequence[object] | None) -> NDArray[np.floating]:
    if clusters is None:
        return data
    groups = _groups(data, clusters)
    return np.array([g.mean() for g in groups]) if len(groups) > 1 else data
