"""Delays as corrections of targets, delta dynamics, and the choice that lets zero stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from asap_core.alignment.choice import choose
from asap_core.alignment.corrected import Corrected, ZeroRival
from asap_core.alignment.delta_dynamics import (
    DeltaDynamics,
    DeltaDynamicsRival,
    DeltaDynamicsSettings,
    moved_state,
    state_difference,
    trained,
)
from asap_core.alignment.physics_fit import SysIdSettings
from asap_core.alignment.replay import cut_segments, replay_distance
from asap_core.alignment.state_residual import ResidualSimulator
from asap_core.alignment.sysid import SysIdRival
from asap_core.alignment.two_stage import TwoStageRival
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.simulators.protocol import RobotState
from asap_core.simulators.settings import SimulationSettings
from tests.alignment.conftest import MakeRollout

NOMINAL = PhysicsSettings()
SIMULATION = SimulationSettings(threads=1)
LATE = PhysicsSettings(action_delay=1)
WEAK = PhysicsSettings(strength={"knee": 0.7, "ankle": 0.7})


def turned(state: RobotState) -> RobotState:
    """The world turned by 90° about the vertical and shifted."""
    from asap_core.rotations import quat_mul, rotate

    turn = np.tile([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)], (len(state.root_pos), 1))
    return replace(
        state,
        root_pos=rotate(turn, state.root_pos) + np.array([1.0, 2.0, 0.0]),
        root_quat=quat_mul(turn, state.root_quat),
        root_lin_vel=rotate(turn, state.root_lin_vel),
        root_ang_vel=rotate(turn, state.root_ang_vel),
    )


def test_state_differences_add_up_and_do_not_depend_on_heading(make_rollout: MakeRollout) -> None:
    rollout = make_rollout(WEAK, 1, 20, 0)
    a, b = rollout.state.take(np.arange(10)), rollout.state.take(np.arange(10, 20))
    difference = state_difference(a, b)
    assert difference.shape == (10, 58)
    back = moved_state(a, difference)
    for name, value in back.__dict__.items():
        np.testing.assert_allclose(value, getattr(b, name), atol=1e-9, err_msg=name)
    np.testing.assert_allclose(state_difference(turned(a), turned(b)), difference, atol=1e-9)


def test_delta_dynamics_learns_what_it_has_seen(profile: RobotProfile, make_rollout: MakeRollout) -> None:
    settings = DeltaDynamicsSettings(hidden=64, epochs=100, envs=32, input_noise=0.0)
    rollout = make_rollout(WEAK, 8, 55, 0)
    rival = DeltaDynamicsRival(profile, SIMULATION, settings)
    inputs, wanted = rival.visited(rollout, 1, None)
    torch.manual_seed(0)
    net = trained(None, inputs, wanted, settings)
    segments = cut_segments(rollout, profile, 5, 10)
    nominal = MujocoSimulator(profile, NOMINAL, segments.num)
    zero = replay_distance(nominal, profile, segments).mean()
    moved = ResidualSimulator(nominal, DeltaDynamics(net))
    assert replay_distance(moved, profile, segments).mean() < 0.6 * zero


def test_delta_dynamics_trains_along_its_own_replays(profile: RobotProfile, make_rollout: MakeRollout) -> None:
    """With a network that does nothing, what is wanted after two steps is the whole difference to the record."""
    rollout = make_rollout(WEAK, 1, 8, 0)
    rival = DeltaDynamicsRival(profile, SIMULATION, DeltaDynamicsSettings(hidden=8, epochs=1, envs=2))
    _, wanted = rival.visited(rollout, 2, None)
    nominal = MujocoSimulator(profile, NOMINAL, 4)
    nominal.set_state(np.arange(4), rollout.state.take(np.array([0, 2, 4, 6])))
    for step in range(2):
        nominal.step(rollout.joint_target[np.array([0, 2, 4, 6]) + step])
    difference = state_difference(nominal.state, rollout.state.take(np.array([2, 4, 6, 8])))
    np.testing.assert_allclose(wanted[[2, 3, 6, 7]], difference, atol=1e-9)


def test_zero_stays_unless_beaten_for_sure(profile: RobotProfile, make_rollout: MakeRollout) -> None:
    rollout = make_rollout(WEAK, 4, 55, 0)
    zero, truth = Corrected("zero", NOMINAL), Corrected("truth", WEAK)
    assert choose([zero, truth], rollout, profile, SIMULATION).name == "truth"
    nominal = make_rollout(NOMINAL, 4, 55, 0)
    refused = choose([zero, truth], nominal, profile, SIMULATION)
    assert refused.name == "zero"
    assert refused.report["validation_mm"]["truth"]["1.0s"] > refused.report["validation_mm"]["zero"]["1.0s"]


def test_the_second_stage_corrects_targets_as_they_take_effect_in_the_fitted_physics(
    profile: RobotProfile, make_rollout: MakeRollout, tmp_path: Path
) -> None:
    target = PhysicsSettings(action_delay=1)
    seen: list[PhysicsSettings] = []

    def second(simulation: SimulationSettings) -> ZeroRival:
        seen.append(simulation.physics)
        return ZeroRival(simulation.physics)

    first = SysIdRival(profile, SIMULATION, SysIdSettings(horizons_s=(0.06,), iterations=2, seconds=0.7))
    rival = TwoStageRival(profile, SIMULATION, first, second)
    corrected = rival.fit(make_rollout(target, 4, 55, 0), make_rollout(target, 2, 55, 1), 0, tmp_path)
    assert corrected.name == "sysid_1_0.06s"
    assert corrected.physics.delay_s == pytest.approx(0.02, abs=0.001)
    assert seen[-1] == corrected.physics
    both = corrected.report["validation_mm"]
    assert both["sysid_1_0.06s+zero"]["1.0s"] < 0.3 * corrected.report["first"]["validation_mm"]["zero"]["1.0s"]
