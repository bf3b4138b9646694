"""SysID finds what a twin was altered by, says what the data do not tell, and leaves a robot without a gap alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from asap_core.alignment.chirp import chirp_fitter, chirp_targets, record_chirp
from asap_core.alignment.physics_fit import Estimate, SysIdSettings
from asap_core.alignment.physics_replay import RolloutReplay
from asap_core.alignment.replay import cut_segments
from asap_core.alignment.sysid import SysIdRival
from asap_core.alignment.sysid_parameters import joint_groups, physics_of, sysid_parameters
from asap_core.robots import get_profile
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.settings import SimulationSettings
from tests.alignment.conftest import MakeRollout

NOMINAL = PhysicsSettings()
QUICK = SysIdSettings(horizons_s=(0.06, 0.06), iterations=4, seconds=1.5)


def test_groups_of_the_robots(profile: RobotProfile) -> None:
    assert joint_groups(profile) == ("hip", "knee", "ankle", "waist", "shoulder", "elbow")
    assert "wrist" in joint_groups(get_profile("g1_29dof"))


def test_nominal_values_are_the_nominal_physics(profile: RobotProfile) -> None:
    parameters = sysid_parameters(profile, NOMINAL)
    assert physics_of(NOMINAL, parameters, np.array([p.nominal for p in parameters])) == NOMINAL
    altered = PhysicsSettings(strength={"knee": 0.7}, armature_of={"hip": 0.05}, action_delay_s=0.01)
    parameters = sysid_parameters(profile, altered)
    by_name = {p.name: p.nominal for p in parameters}
    assert (by_name["strength.knee"], by_name["armature.hip"], by_name["delay"]) == (0.7, 0.05, 0.01)


def test_every_parameter_reaches_the_model(profile: RobotProfile) -> None:
    parameters = sysid_parameters(profile, NOMINAL)
    nominal = np.array([p.nominal for p in parameters])
    base = build_model(profile, NOMINAL)
    fields = ("dof_armature", "dof_frictionloss", "dof_damping", "actuator_gainprm", "body_mass", "body_ipos")
    for i, p in enumerate(parameters):
        moved = nominal.copy()
        moved[i] += p.step
        physics = physics_of(NOMINAL, parameters, moved)
        model = build_model(profile, physics)
        changed = any((getattr(model, f) != getattr(base, f)).any() for f in (*fields, "geom_friction"))
        assert changed or physics.delay_s == p.step, p.name


def test_slopes_are_finite_differences(profile: RobotProfile, make_rollout: MakeRollout) -> None:
    """The gradient of the reweighted squares, against two replays with one parameter moved."""
    target = PhysicsSettings(strength={"knee": 0.8})
    segments = cut_segments(make_rollout(target, 2, 12, 0), profile, 4)
    parameters = sysid_parameters(profile, NOMINAL)
    knee = next(i for i, p in enumerate(parameters) if p.name == "strength.knee")
    value = np.array([p.nominal for p in parameters])
    replay = RolloutReplay(profile, NOMINAL, parameters, segments, 1, 0.01)
    slopes = replay.slopes(value, least_m=0.001)
    unweighted = np.zeros(2)
    small = np.zeros_like(value)
    small[knee] = replay.steps[knee]
    for k, sign in enumerate((1.0, -1.0)):
        for recorded, reached in replay.pieces(np.stack([value, value + sign * small])):
            weight = 1.0 / np.maximum(np.linalg.norm(reached[0] - recorded, axis=-1) / np.sqrt(27), 0.001)
            unweighted[k] += 0.5 * (weight[..., None] * (reached[1] - recorded) ** 2).sum()
    assert slopes.gradient[:, knee].sum() == pytest.approx((unweighted[0] - unweighted[1]) / 2, rel=0.02)


@pytest.mark.slow
def test_altered_parameters_are_recovered(profile: RobotProfile, make_rollout: MakeRollout, tmp_path: Path) -> None:
    target = PhysicsSettings(
        strength={"knee": 0.8, "ankle": 0.8}, armature=0.03, added_mass={"torso_link": 2.0}, action_delay_s=0.0125
    )
    rival = SysIdRival(profile, SimulationSettings(threads=1), QUICK)
    corrected = rival.fit(make_rollout(target, 8, 60, 0), make_rollout(target, 2, 60, 1), 0, tmp_path)
    assert corrected.name.startswith("sysid")
    found = corrected.report["parameters"]
    wanted = {
        "strength.knee": 0.8,
        "strength.ankle": 0.8,
        "armature.hip": 0.03,
        "armature.ankle": 0.03,
        "delay": 0.0125,
    }
    for name, value in wanted.items():
        assert found[name]["value"] == pytest.approx(value, rel=0.05), name
    assert found["mass.torso_link"]["value"] + found["mass.pelvis"]["value"] == pytest.approx(2.0, rel=0.05)
    assert (
        corrected.report["validation_mm"][corrected.name]["1.0s"]
        < 0.05 * corrected.report["validation_mm"]["zero"]["1.0s"]
    )
    again = rival.fit(make_rollout(target, 8, 60, 0), make_rollout(target, 2, 60, 1), 0, tmp_path)
    assert again.physics == corrected.physics


def test_without_a_gap_zero_stays(profile: RobotProfile, make_rollout: MakeRollout, tmp_path: Path) -> None:
    settings = SysIdSettings(horizons_s=(0.06,), iterations=1, seconds=0.5)
    rival = SysIdRival(profile, SimulationSettings(threads=1), settings)
    corrected = rival.fit(make_rollout(NOMINAL, 2, 55, 0), make_rollout(NOMINAL, 2, 55, 1), 0, tmp_path)
    assert (corrected.name, corrected.physics) == ("zero", NOMINAL)


def test_a_wide_interval_is_not_determined(profile: RobotProfile) -> None:
    knee = next(p for p in sysid_parameters(profile, NOMINAL) if p.name == "strength.knee")
    assert Estimate(knee, 0.8, 0.02).determined
    assert not Estimate(knee, 0.8, 0.04).determined


def test_chirps_stay_within_the_limits_and_differ(profile: RobotProfile) -> None:
    targets = chirp_targets(profile, 0.02, 10.0)
    assert targets.shape == (500, 23)
    assert (targets > profile.joint_lower).all()
    assert (targets < profile.joint_upper).all()
    turns = np.corrcoef((targets - targets.mean(axis=0)).T) - np.eye(23)
    assert np.abs(turns).max() < 0.9


@pytest.mark.slow
def test_drives_are_recovered_from_chirps_in_the_air(profile: RobotProfile, tmp_path: Path) -> None:
    target = PhysicsSettings(strength={"knee": 0.8}, armature=0.03, frictionloss=0.5, action_delay_s=0.0075)
    log = record_chirp(profile, target, 12.0)
    settings = SysIdSettings(horizons_s=(0.1, 0.1), iterations=4, seconds=4.0)
    fitter = chirp_fitter(profile, NOMINAL, log, settings, 1, tmp_path)
    found = {e.parameter.name: e for e in fitter.estimates(fitter.run()[-1])}
    for name, value in {"strength.knee": 0.8, "armature.ankle": 0.03, "frictionloss.hip": 0.5, "delay": 0.0075}.items():
        assert found[name].value == pytest.approx(value, rel=0.05), name
    assert "friction.ground" not in found
