"""From a log of a twin with known altered physics back to what was altered."""

from __future__ import annotations

from pathlib import Path

import pytest

from asap_core.alignment.corrected import Corrected
from asap_core.alignment.sysid_parameters import sysid_parameters
from asap_core.evaluation.ingest_truth import (
    NOMINAL,
    Trial,
    offset_error,
    open_loop,
    record,
    run,
    sysid,
    true_values,
)
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.rollouts.ingest.standing_twin import Stand
from asap_core.rollouts.ingest.twin_log import SensorSettings
from asap_core.rollouts.settings import TwinSettings

PROFILE = get_profile("g1_23dof")
ALTERED = TwinSettings().physics(PhysicsSettings())


@pytest.mark.parametrize("delay_s", [0.006, 0.02])
def test_delay_and_clock_are_found_to_a_millisecond(delay_s: float, tmp_path: Path) -> None:
    """The torque of a twin's sample is that of the 2 ms before it, so the lag is late by half of that."""
    trial = Trial(ALTERED, delay_s, SensorSettings(mocap_offset_s=0.7))
    done = run(PROFILE, trial, Stand(), 12.0, tmp_path).ingested
    assert done.lag is not None
    assert done.lag.lag_s is not None
    assert done.sync is not None
    assert 0.0 < done.lag.lag_s - delay_s < 1.2e-3
    assert abs(offset_error(done.sync, trial.sensors)) < 3 * done.sync.offset_sigma_s < 2.5e-3


def test_a_sound_log_of_8_s_is_not_refused(tmp_path: Path) -> None:
    """Its speeds of turning repeat; its turning does not."""
    done = run(PROFILE, Trial(ALTERED), Stand(seed=2), 8.0, tmp_path).ingested
    assert done.sync is not None
    assert done.sync.refused == ()
    assert abs(offset_error(done.sync, Trial(ALTERED).sensors)) < 3 * done.sync.offset_sigma_s


@pytest.mark.slow
def test_delay_and_drift_are_found_on_a_take_of_80_s(tmp_path: Path) -> None:
    trial = Trial(ALTERED, 0.006)
    done = run(PROFILE, trial, Stand(), 80.0, tmp_path).ingested
    assert done.sync is not None
    assert done.sync.drift_fitted
    assert done.sync.clock.drift == pytest.approx(40e-6, abs=3 * done.sync.drift_sigma)
    assert abs(offset_error(done.sync, trial.sensors)) < 3 * done.sync.offset_sigma_s < 1e-3


def test_truth_is_told_in_the_terms_of_sysid() -> None:
    truth = true_values(PROFILE, Trial(ALTERED, 0.006))
    groups = ("hip", "knee", "ankle", "waist", "shoulder", "elbow")
    assert truth == {
        "strength.knee": 0.8,
        "strength.ankle": 0.8,
        **{f"armature.{group}": 0.03 for group in groups},
        **{f"frictionloss.{group}": 0.5 for group in groups},
        "mass.torso_link": 2.0,
        "delay": 0.006,
    }


@pytest.mark.slow
def test_what_was_altered_is_found_through_the_log(tmp_path: Path) -> None:
    """Strength 0.8 of knees and ankles, armature 0.03, dry friction 0.5, 2 kg on the torso, 6 ms, a drifting clock."""
    trial = Trial(ALTERED, 0.006)
    runs = record(trial, tmp_path)
    aligned = runs.align(sysid(), "logged", tmp_path / "fit")
    found = aligned.report["parameters"]
    truth = {p.name: p.nominal for p in sysid_parameters(PROFILE, NOMINAL.physics)} | true_values(PROFILE, trial)
    beyond = {n: found[n] for n, value in truth.items() if abs(found[n]["value"] - value) > 2.5 * found[n]["std"]}
    assert not beyond
    for name, within in {"strength.knee": 0.02, "strength.ankle": 0.02, "strength.hip": 0.02, "delay": 0.002}.items():
        assert found[name]["value"] == pytest.approx(truth[name], abs=within)
    for group in ("hip", "ankle", "shoulder", "elbow"):
        assert found[f"frictionloss.{group}"]["value"] == pytest.approx(0.5, abs=0.05)
    added = found["mass.pelvis"]["value"] + found["mass.torso_link"]["value"]
    assert added == pytest.approx(2.0, abs=0.5)
    nominal = Corrected("zero", NOMINAL.physics)
    for source in ("exact", "logged"):
        heldout = getattr(runs.heldout[0], source)
        before, after = (open_loop(PROFILE, c, heldout) for c in (nominal, aligned))
        assert after[0.25] < 0.1 * before[0.25]
        assert after[1.0] < 0.05 * before[1.0]
