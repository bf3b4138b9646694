"""One-step labels against corrections that are known in closed form (contract §12.3, analytic delta)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap_core.alignment.labels import Labeller, inertia_diagonal, inertia_weights, label_transitions
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import rotvec_to_quat
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.simulators.protocol import RobotState
from tests.alignment.conftest import MakeRollout

NOMINAL = PhysicsSettings()


def _labeller(profile: RobotProfile, physics: PhysicsSettings = NOMINAL, num_envs: int = 240) -> Labeller:
    weights = inertia_weights(inertia_diagonal(profile, physics))
    return Labeller(MujocoSimulator(profile, physics, num_envs), weights, 1.6e-7, 0.5)


def _in_the_air(profile: RobotProfile, num: int) -> RobotState:
    joints = len(profile.joint_names)
    return RobotState(
        root_pos=np.tile([0.0, 0.0, 3.0], (num, 1)),
        root_quat=rotvec_to_quat(np.random.default_rng(0).normal(0, 0.3, (num, 3))),
        root_lin_vel=np.zeros((num, 3)),
        root_ang_vel=np.zeros((num, 3)),
        joint_pos=np.tile(profile.default_joint_pos, (num, 1)),
        joint_vel=np.zeros((num, joints)),
    )


def _after(profile: RobotProfile, physics: PhysicsSettings, state: RobotState, target: np.ndarray) -> RobotState:
    simulator = MujocoSimulator(profile, physics, len(target))
    simulator.set_state(np.arange(len(target)), state)
    simulator.step(target)
    return simulator.state


def test_no_gap_no_label(profile: RobotProfile) -> None:
    state = _in_the_air(profile, 8)
    target = state.joint_pos + np.random.default_rng(1).uniform(-0.1, 0.1, state.joint_pos.shape)
    label = _labeller(profile)(state, target, _after(profile, NOMINAL, state, target))
    assert np.abs(label).max() < 1e-9


def test_a_shifted_command_is_recovered(profile: RobotProfile) -> None:
    state = _in_the_air(profile, 8)
    rng = np.random.default_rng(2)
    target = state.joint_pos + rng.uniform(-0.1, 0.1, state.joint_pos.shape)
    shift = rng.uniform(-0.03, 0.03, target.shape)
    label = _labeller(profile)(state, target, _after(profile, NOMINAL, state, target + shift))
    np.testing.assert_allclose(label, shift, atol=4e-3)
    assert np.sqrt(((label - shift) ** 2).mean()) < 1e-3


@pytest.mark.parametrize("beta", [0.8, 1.2])
def test_stiffness_gives_the_analytic_delta(profile: RobotProfile, beta: float) -> None:
    """For Kp → β Kp the exact correction is (β − 1)(q_target − q) at every physics step; the label holds its mean."""
    state = _in_the_air(profile, 8)
    target = state.joint_pos + np.random.default_rng(3).uniform(-0.02, 0.02, state.joint_pos.shape)
    knees = [i for i, name in enumerate(profile.joint_names) if "knee" in name]
    others = [i for i in range(len(profile.joint_names)) if i not in knees]
    kp = profile.kp.copy()
    kp[knees] *= beta
    physics_step = NOMINAL.model_copy(update={"control_dt": NOMINAL.physics_dt})
    target_robot = MujocoSimulator(replace(profile, kp=kp), physics_step, 8)
    target_robot.set_state(np.arange(8), state)
    errors = []
    for _ in range(NOMINAL.substeps):
        errors.append(target - target_robot.state.joint_pos)
        target_robot.step(target)
    exact = (beta - 1) * np.mean(errors, axis=0)[:, knees]
    label = _labeller(profile)(state, target, target_robot.state)
    assert (label[:, knees] * exact).sum() / (exact**2).sum() == pytest.approx(1.0, abs=0.12)
    assert np.abs(label[:, knees] - exact).max() < 0.15 * np.abs(exact).max()
    assert np.abs(label[:, others]).max() < 0.1 * np.abs(exact).max()


def test_weights_are_square_roots_of_inertia(profile: RobotProfile) -> None:
    diagonal = inertia_diagonal(profile, NOMINAL)
    weights = inertia_weights(diagonal).position
    assert weights[:3] == pytest.approx(1.0)
    assert weights[6:].max() < 0.4
    np.testing.assert_allclose(weights**2 * diagonal[0], diagonal)


def test_finished_chunks_are_not_computed_again(
    profile: RobotProfile, make_rollout: MakeRollout, tmp_path: Path
) -> None:
    rollout = make_rollout(PhysicsSettings(armature=0.03), 2, 13, 0)
    rows = rollout.transitions()
    whole = label_transitions(_labeller(profile), rollout, rows, tmp_path)
    assert whole.shape == (26, 23)
    files = sorted(tmp_path.glob("labels_*.npy"))
    assert len(files) == 3
    files[1].unlink()
    stamp = files[0].stat().st_mtime_ns
    np.testing.assert_array_equal(label_transitions(_labeller(profile), rollout, rows, tmp_path), whole)
    assert files[0].stat().st_mtime_ns == stamp
