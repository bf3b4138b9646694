"""The MuJoCo backend: states in and out, determinism, the two steppers, delay."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.mujoco import BatchStepper, MujocoSimulator, RolloutStepper
from asap_core.simulators.protocol import RobotState
from tests.robot_motions import STANDING_HEIGHT

PROFILE = get_profile("g1_23dof")
HAS_BATCH = tuple(int(x) for x in mujoco.__version__.split(".")[:2]) >= (3, 17)
STEPPERS = [pytest.param(RolloutStepper, id="rollout")] + (
    [pytest.param(BatchStepper, id="batch")] if HAS_BATCH else []
)


def random_state(n: int, seed: int = 0) -> RobotState:
    rng = np.random.default_rng(seed)
    quat = rng.normal(size=(n, 4))
    return RobotState(
        root_pos=rng.normal(size=(n, 3)) + np.array([0, 0, 2.0]),
        root_quat=quat / np.linalg.norm(quat, axis=1, keepdims=True),
        root_lin_vel=rng.normal(size=(n, 3)),
        root_ang_vel=rng.normal(size=(n, 3)),
        joint_pos=PROFILE.default_joint_pos + rng.normal(0, 0.1, (n, 23)),
        joint_vel=rng.normal(size=(n, 23)),
    )


def standing(n: int) -> RobotState:
    zeros = np.zeros((n, 3))
    return RobotState(
        root_pos=zeros + np.array([0, 0, STANDING_HEIGHT]),
        root_quat=np.tile([1.0, 0, 0, 0], (n, 1)),
        root_lin_vel=zeros,
        root_ang_vel=zeros.copy(),
        joint_pos=np.tile(PROFILE.default_joint_pos, (n, 1)),
        joint_vel=np.zeros((n, 23)),
    )


@pytest.mark.parametrize("stepper", STEPPERS)
def test_state_written_is_state_read(stepper):
    sim = MujocoSimulator(PROFILE, PhysicsSettings(), 4, stepper=stepper)
    wanted = random_state(4)
    sim.set_state(np.arange(4), wanted)
    for name, value in sim.state.__dict__.items():
        np.testing.assert_allclose(value, getattr(wanted, name), atol=1e-12, err_msg=name)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_free_fall_is_gravity(stepper):
    sim = MujocoSimulator(PROFILE, PhysicsSettings(), 2, stepper=stepper)
    sim.set_state(np.arange(2), standing(2).__class__(**{**standing(2).__dict__, "root_pos": np.full((2, 3), 3.0)}))
    before = sim.state.root_lin_vel[:, 2].copy()
    target = sim.state.joint_pos
    for _ in range(10):
        sim.step(target)
    np.testing.assert_allclose(sim.state.root_lin_vel[:, 2] - before, -9.81 * 0.2, rtol=2e-3)


@pytest.mark.skipif(not HAS_BATCH, reason="this mujoco has no mujoco.batch")
def test_batch_and_rollout_step_alike():
    states, target = random_state(6, seed=1), np.tile(PROFILE.default_joint_pos, (6, 1))
    ends = []
    for stepper in (BatchStepper, RolloutStepper):
        sim = MujocoSimulator(PROFILE, PhysicsSettings(), 6, threads=2, stepper=stepper)
        sim.set_state(np.arange(6), states)
        for _ in range(20):
            sim.step(target)
        ends.append(sim.state)
    for name in states.__dict__:
        np.testing.assert_array_equal(getattr(ends[0], name), getattr(ends[1], name), err_msg=name)


def test_threads_do_not_change_bits():
    ends = []
    for threads in (1, 2):
        sim = MujocoSimulator(PROFILE, PhysicsSettings(), 8, threads)
        sim.set_state(np.arange(8), random_state(8))
        for _ in range(10):
            sim.step(sim.state.joint_pos)
        ends.append(sim.state.joint_pos)
    np.testing.assert_array_equal(*ends)


def test_delay_holds_targets_back_by_whole_control_steps():
    prompt = MujocoSimulator(PROFILE, PhysicsSettings(), 1)
    late = MujocoSimulator(PROFILE, PhysicsSettings(action_delay=2), 1)
    rng = np.random.default_rng(0)
    targets = PROFILE.default_joint_pos + rng.normal(0, 0.1, (6, 1, 23))
    for sim in (prompt, late):
        sim.set_state(np.arange(1), standing(1))
    held = [standing(1).joint_pos] * 2
    for k in range(6):
        late.step(targets[k])
        prompt.step(([*held, *targets])[k])
    np.testing.assert_array_equal(late.state.joint_pos, prompt.state.joint_pos)


def test_reset_clears_delayed_targets():
    sim = MujocoSimulator(PROFILE, PhysicsSettings(action_delay=1), 1)
    ends = []
    for _ in range(2):
        sim.set_state(np.arange(1), standing(1))
        for scale in (0.5, -0.5, 0.2):
            sim.step(PROFILE.default_joint_pos[None] + scale)
        ends.append(sim.state.joint_pos)
    np.testing.assert_array_equal(*ends)


def test_torque_is_the_pd_law_within_limits():
    sim = MujocoSimulator(PROFILE, PhysicsSettings(strength={"knee": 0.5}), 1)
    sim.set_state(np.arange(1), standing(1))
    target = PROFILE.default_joint_pos[None] + 0.1
    sim.step(target)
    factor = np.array([0.5 if "knee" in name else 1.0 for name in PROFILE.joint_names])
    want = factor * (PROFILE.kp * (target - sim.state.joint_pos) - PROFILE.kd * sim.state.joint_vel)
    limit = factor * PROFILE.joint_torque_limit
    np.testing.assert_allclose(sim.joint_torque(), np.clip(want, -limit, limit), atol=1e-9)


def test_feet_touch_when_standing_and_not_in_the_air():
    sim = MujocoSimulator(PROFILE, PhysicsSettings(), 2)
    state = standing(2)
    state.root_pos[1, 2] += 0.05
    sim.set_state(np.arange(2), state)
    assert sim.foot_contact().tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize("stepper", STEPPERS)
def test_explicit_drive_is_the_pd_torque_recomputed_at_each_physics_step(stepper):
    """The same steps with torque actuators, whose controls are worked out here."""
    from asap_core.robots.mjcf import build_model

    start = standing(1)
    target = PROFILE.default_joint_pos[None] + np.random.default_rng(0).normal(0, 0.15, (1, 23))
    sim = MujocoSimulator(PROFILE, PhysicsSettings(drive="explicit"), 1, stepper=stepper)
    sim.set_state(np.arange(1), start)
    model = build_model(PROFILE, PhysicsSettings(drive="explicit"))
    model.actuator_gainprm[:, 0], model.actuator_biasprm[:] = 1.0, 0.0
    model.actuator_biastype[:] = mujoco.mjtBias.mjBIAS_NONE
    data = mujoco.MjData(model)
    data.qpos[:] = np.concatenate([start.root_pos, start.root_quat, start.joint_pos], axis=1)[0]
    for _ in range(5):
        sim.step(target)
        for _ in range(4):
            torque = PROFILE.kp * (target[0] - data.qpos[7:]) - PROFILE.kd * data.qvel[6:]
            data.ctrl[:] = np.clip(torque, -PROFILE.joint_torque_limit, PROFILE.joint_torque_limit)
            mujoco.mj_step(model, data)
    np.testing.assert_allclose(sim.state.joint_pos[0], data.qpos[7:], atol=2e-6)


def test_drives_differ():
    ends = []
    for drive in ("implicit", "explicit"):
        sim = MujocoSimulator(PROFILE, PhysicsSettings(drive=drive), 1)
        sim.set_state(np.arange(1), standing(1))
        for _ in range(5):
            sim.step(PROFILE.default_joint_pos[None] + 0.1)
        ends.append(sim.state.joint_pos)
    assert np.abs(ends[0] - ends[1]).max() > 1e-4
