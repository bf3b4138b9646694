"""Intervals against textbook values and coverage."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.metrics import bootstrap_interval, paired_difference, t_interval


def test_t_interval_of_three_values() -> None:
    interval = t_interval([1.0, 2.0, 3.0])
    half = 4.302652729911275 / np.sqrt(3)  # t quantile at 0.975 with two degrees of freedom, deviation 1
    assert interval.mean == 2.0
    assert interval.high == pytest.approx(2.0 + half, rel=1e-9)
    assert interval.low == pytest.approx(2.0 - half, rel=1e-9)


def test_clusters_are_the_units() -> None:
    values = [0.9, 1.1, 1.9, 2.1, 2.9, 3.1]
    clustered = t_interval(values, clusters=[0, 0, 1, 1, 2, 2])
    assert clustered.n == 3
    assert clustered.high == pytest.approx(t_interval([1.0, 2.0, 3.0]).high)
    assert clustered.high > t_interval(values).high


def test_one_cluster_leaves_the_values() -> None:
    assert t_interval([1.0, 2.0, 3.0], clusters=["a"] * 3).n == 3


def test_pairing_removes_the_spread_of_starts() -> None:
    start = np.random.default_rng(1).normal(100.0, 30.0, 32)
    noise = np.random.default_rng(2).normal(0.0, 0.5, 32)
    interval = paired_difference(start - 5.0 + noise, start)
    assert interval.high < -4.5
    assert interval.low > -5.5


def test_bootstrap_agrees_with_t_and_is_repeatable() -> None:
    values = np.random.default_rng(3).normal(10.0, 2.0, 200)
    boot, student = bootstrap_interval(values), t_interval(values)
    assert boot.low == pytest.approx(student.low, abs=0.05)
    assert boot.high == pytest.approx(student.high, abs=0.05)
    assert bootstrap_interval(values) == boot


def test_bootstrap_draws_whole_clusters() -> None:
    values = np.repeat([0.0, 1.0, 2.0, 3.0], 50)
    wide = bootstrap_interval(values, clusters=list(np.repeat(range(4), 50)))
    assert wide.n == 4
    assert wide.high - wide.low > 5 * (bootstrap_interval(values).high - bootstrap_interval(values).low)


def test_coverage_of_the_t_interval() -> None:
    rng = np.random.default_rng(4)
    hits = [(i := t_interval(rng.normal(0.0, 1.0, 8))).low <= 0.0 <= i.high for _ in range(600)]
    assert np.mean(hits) == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize("bad", [[], [1.0, float("nan")]])
def test_refuses_nothing_and_nan(bad: list[float]) -> None:
    with pytest.raises(ValueError):
        t_interval(bad)


def test_refuses_unpaired_lengths() -> None:
    with pytest.raises(ValueError, match="length"):
        paired_difference([1.0], [1.0, 2.0])
