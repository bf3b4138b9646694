"""From a log of a twin with known altered physics back to what was altered."""

from __future__ import annotations

from pathlib import Path

import pytest

from asap_core.evaluation.ingest_truth import Trial, run_trial, stiffness_slopes
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.rollouts.ingest.ingest import ingest
from asap_core.rollouts.ingest.readers import read_log
from asap_core.rollouts.ingest.standing_twin import stand
from asap_core.rollouts.ingest.twin_log import SensorSettings, write_twin_log
from asap_core.rollouts.settings import TwinSettings

PROFILE = get_profile("g1_23dof")
ALTERED = TwinSettings().physics(PhysicsSettings())


@pytest.mark.parametrize("delay_s", [0.006, 0.02])
def test_delay_and_clock_are_found_to_a_millisecond(delay_s: float, tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    write_twin_log(path, stand(PROFILE, 12.0, ALTERED, delay_s), 0, SensorSettings(mocap_offset_s=-0.7))
    done = ingest(read_log(path), PROFILE, None)
    assert done.lag is not None
    assert done.sync is not None
    assert done.lag.lag_s == pytest.approx(delay_s, abs=1e-3)
    assert done.sync.clock.offset_s == pytest.approx(-0.7, abs=1e-3)


@pytest.mark.slow
def test_delay_and_drift_are_found_on_a_take_of_80_s(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    write_twin_log(path, stand(PROFILE, 80.0, ALTERED, 0.006), 0, SensorSettings(mocap_drift=40e-6))
    done = ingest(read_log(path), PROFILE, None)
    assert done.lag is not None
    assert done.sync is not None
    assert done.lag.lag_s == pytest.approx(0.006, abs=1e-3)
    assert done.sync.drift_fitted
    assert done.sync.clock.drift == pytest.approx(40e-6, abs=3 * done.sync.drift_sigma)
    truth = 0.4 + 40e-6 * done.sync.clock.reference_s
    assert done.sync.clock.offset_s == pytest.approx(truth, abs=1e-3)


@pytest.mark.slow
def test_weak_legs_are_seen_through_the_log() -> None:
    """Gains at 0.8 of the nominal: Δq = −0.2 (target − angle − kd / kp · speed). Measured on the log: knee −0.17 with
    correlation 0.92 (−0.22 and 0.98 on the twin's own states), error after 0.25 s 1.0 mm of 3.5 (0.6)."""
    legs = PhysicsSettings(strength={"hip": 0.8, "knee": 0.8, "ankle": 0.8})
    result = run_trial(Trial(legs, 0.0, SensorSettings(mocap_drift=40e-6), fit_s=20.0, other_s=8.0))
    assert result.from_log.delta[0.25] < 0.45 * result.from_log.zero[0.25]
    assert result.from_log.delta[0.5] < 0.7 * result.from_log.zero[0.5]
    (knee, knee_fit), (ankle, ankle_fit) = stiffness_slopes(
        result.from_log, result.records["heldout"], PROFILE, ("knee", "ankle")
    )
    assert knee == pytest.approx(-0.2, abs=0.07)
    assert knee_fit < -0.8
    assert ankle == pytest.approx(-0.2, abs=0.07)
    assert ankle_fit < -0.6
    others, _ = stiffness_slopes(result.from_log, result.records["heldout"], PROFILE, ("shoulder",))[0]
    assert abs(others) < 0.07
