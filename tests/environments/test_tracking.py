"""The tracking environment: reference, curriculum, resets, the correction's place, saved state."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.environments.reference import ReferenceMotion
from asap_core.environments.settings import TrackingSettings
from asap_core.environments.terminations import TerminationCurriculum, TerminationSettings
from asap_core.environments.tracking import TrackingEnv
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.mujoco import MujocoSimulator
from tests.robot_motions import knee_bend, knee_bend_reference

PROFILE = get_profile("g1_23dof")
REWARDS = {"body_position": 1.0, "joint_position": 0.75, "action_rate": -0.02}


def make_env(num_envs: int = 8, seed: int = 0, correction=None, **settings) -> TrackingEnv:
    sim = MujocoSimulator(PROFILE, PhysicsSettings(), num_envs)
    task = TrackingSettings(rewards=REWARDS, **settings)
    return TrackingEnv(sim, PROFILE, knee_bend_reference(), task, seed, correction)


def test_reference_velocity_is_the_derivative_of_position():
    ref = knee_bend_reference(seconds=4.0)
    slope = np.gradient(ref.state.joint_pos, 0.02, axis=0)
    np.testing.assert_allclose(ref.state.joint_vel[10:-10], slope[10:-10], atol=3e-3)
    drift = np.gradient(ref.links.pos, 0.02, axis=0)
    np.testing.assert_allclose(ref.links.lin_vel[10:-10], drift[10:-10], atol=3e-3)


def test_reference_keeps_the_duration_of_a_30_hz_clip():
    ref = ReferenceMotion.from_motion(knee_bend(seconds=2.0, fps=30.0), PROFILE, 0.02)
    assert ref.length_s == pytest.approx(2.0)
    assert ref.num_frames == 101


def test_curriculum_relaxes_when_episodes_are_cut_short():
    curriculum = TerminationCurriculum(TerminationSettings(level_up=0.8, level_down=0.6))
    curriculum.distance, curriculum.mean_share = 0.5, 0.2
    curriculum.update(np.array([0.1]))
    assert curriculum.distance == pytest.approx(0.5 * 1.001)
    curriculum.update(np.zeros(0))
    assert curriculum.distance == pytest.approx(0.5 * 1.001)


def test_zero_action_commands_the_next_reference_pose_or_the_default_pose():
    env = make_env()
    frame = env._frame.copy()
    want = env.reference.state.joint_pos[np.minimum(frame + 1, env.reference.num_frames - 1)]
    np.testing.assert_array_equal(env.joint_target(np.zeros((8, 23))), want)
    paper = make_env(action_base="default", action_scale=0.25)
    got = paper.joint_target(np.full((8, 23), 2.0))
    np.testing.assert_allclose(got, np.tile(PROFILE.default_joint_pos + 0.5, (8, 1)))


def test_correction_is_added_in_radians_and_told_of_resets():
    class Recorder:
        def __init__(self):
            self.resets, self.targets, self.times = [], [], []

        def reset(self, ids):
            self.resets.append(np.array(ids))

        def recall(self, state, joint_target):
            raise AssertionError("an environment has no past")

        def __call__(self, state, joint_target, time_s):
            self.times.append(time_s)
            self.targets.append(joint_target.copy())
            return np.full_like(joint_target, 0.01)

    recorder = Recorder()
    env = make_env(correction=recorder)
    nominal = env.joint_target(np.zeros((8, 23)))
    env.step(np.zeros((8, 23)))
    np.testing.assert_array_equal(recorder.targets[0], nominal)
    np.testing.assert_allclose(recorder.times, [0.0, 0.005, 0.01, 0.015])
    np.testing.assert_allclose(env.simulator._stepper.ctrl, nominal + 0.01)
    while len(recorder.resets) < 3:
        result = env.step(np.zeros((8, 23)))
        if result.done.any():
            assert recorder.resets[-1].tolist() == np.nonzero(result.done)[0].tolist()
            break


def test_a_fallen_robot_ends_its_episode_with_the_penalty_and_starts_on_the_reference():
    env = make_env(num_envs=2)
    fallen = env.simulator.state.take(np.array([0]))
    fallen.root_quat[:] = [np.cos(0.6), np.sin(0.6), 0, 0]
    env.simulator.set_state(np.array([0]), fallen)
    result = env.step(np.zeros((2, 23)))
    assert result.failed.tolist() == [True, False]
    assert result.reward[0] < -1.5
    start = env.reference.state.joint_pos[env._start[0]]
    assert np.abs(env.simulator.state.joint_pos[0] - start).max() < 0.12


def test_clip_end_is_a_time_out_and_no_failure():
    env = make_env(num_envs=4)
    env._frame[:] = env.reference.num_frames - 2
    env.simulator.set_state(np.arange(4), env.reference.state.take(env._frame))
    result = env.step(np.zeros((4, 23)))
    assert result.timed_out.all()
    assert not result.failed.any()


def test_saved_state_goes_on_with_the_same_bits():
    env = make_env(seed=3)
    rng = np.random.default_rng(0)
    for _ in range(7):
        env.observe()
        env.step(rng.normal(0, 0.3, (8, 23)))
    saved = env.state_dict()
    env.load_state_dict(saved)
    other = make_env(seed=99)
    other.load_state_dict(saved)
    for _ in range(20):
        action = rng.normal(0, 0.3, (8, 23))
        for name, value in env.observe().items():
            np.testing.assert_array_equal(value, other.observe()[name] if name == "actor" else value)
        np.testing.assert_array_equal(env.step(action).reward, other.step(action).reward)
