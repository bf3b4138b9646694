"""The joint gap table on signals whose lag and gain are known."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.rollouts.ingest.gap import follow

DT = 0.02


@pytest.mark.parametrize(("lag_s", "gain"), [(0.0, 1.0), (0.034, 0.8), (0.12, 0.55)])
def test_lag_and_gain_of_a_follower(lag_s: float, gain: float) -> None:
    time = np.arange(1000) * DT

    def wave(at: np.ndarray) -> np.ndarray:
        return 0.4 * np.sin(3.1 * at) + 0.2 * np.sin(7.3 * at + 1)

    found = follow(wave(time), 0.1 + gain * wave(time - lag_s), np.ones(1000, bool), DT)
    assert found[0] == pytest.approx(lag_s, abs=DT / 10)
    assert found[1] == pytest.approx(gain, rel=0.02)


def test_a_joint_that_holds_still_has_neither() -> None:
    still = np.full(200, 0.3)
    assert np.isnan(follow(still, still + 1e-4, np.ones(200, bool), DT)).all()


def test_only_usable_rows_count() -> None:
    time = np.arange(600) * DT
    target = np.sin(2 * time)
    pos = target.copy()
    pos[300:] = 5.0
    rows = np.arange(600) < 300
    lag, gain = follow(target, pos, rows, DT)
    assert lag == pytest.approx(0.0, abs=1e-9)
    assert gain == pytest.approx(1.0)
