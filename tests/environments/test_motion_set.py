"""Several motions in one environment: frames, starts, phases and what lies ahead stay within each motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from asap_core.environments.future import Ahead
from asap_core.environments.motion_set import MotionSet, joined
from asap_core.environments.observations import (
    ObservationBuilder,
    ObservationContext,
    ObservationLayout,
    ObservationSettings,
)
from asap_core.environments.settings import TrackingSettings
from asap_core.environments.starts import InitialisationSettings, StartSampler
from asap_core.environments.tracking import TrackingEnv
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.rotations import projected_gravity, quat_mul, quat_to_matrix, rotvec_to_quat
from asap_core.simulators.mujoco import MujocoSimulator
from tests.robot_motions import knee_bend_reference

PROFILE = get_profile("g1_23dof")
SHORT = replace(knee_bend_reference(seconds=1.0), name="short")
LONG = replace(knee_bend_reference(seconds=3.0, depth=0.4), name="long")
BOTH = MotionSet((SHORT, LONG))
FUTURE = ("ref_dof_pos_future", "ref_root_future", "ref_root_turn")
TASK = TrackingSettings(rewards={"body_position": 1.0})


def make_env(num_envs: int = 6, **settings: object) -> TrackingEnv:
    sim = MujocoSimulator(PROFILE, PhysicsSettings(), num_envs)
    return TrackingEnv(sim, PROFILE, BOTH, TASK.model_copy(update=settings), seed=0)


def test_frames_of_two_motions_in_one_row():
    assert (SHORT.num_frames, LONG.num_frames, BOTH.num_frames) == (51, 151, 202)
    assert BOTH.first_frame[[0, 50, 51, 201]].tolist() == [0, 0, 51, 51]
    assert BOTH.last_frame[[0, 50, 51, 201]].tolist() == [50, 50, 201, 201]
    assert BOTH.motion_of(np.array([0, 50, 51, 201])).tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(BOTH.phases("frames")[[25, 50, 51, 126, 201]], [0.5, 1, 0, 0.5, 1])
    np.testing.assert_array_equal(BOTH.state.joint_pos[51:], LONG.state.joint_pos)
    np.testing.assert_array_equal(BOTH.links.ang_vel[:51], SHORT.links.ang_vel)
    assert joined([SHORT]) is SHORT


def test_motions_that_do_not_go_together_are_refused():
    with pytest.raises(ValueError, match=r"control steps \[0\.01, 0\.02\]"):
        MotionSet((SHORT, replace(LONG, control_dt=0.01)))
    with pytest.raises(ValueError, match="a name stands twice"):
        MotionSet((SHORT, SHORT))


def test_motions_start_by_their_duration():
    """50 and 150 frames in which an episode may start; both first frames for the share `from_start`."""
    starts = StartSampler(InitialisationSettings(from_start=0.3), BOTH, 0.02)
    frames = starts.draw(np.random.default_rng(0), 100_000)
    motion = BOTH.motion_of(frames)
    assert motion.mean() == pytest.approx(0.75, abs=0.005)
    assert not np.isin(frames, [50, 201]).any()
    assert (frames == 0).mean() == pytest.approx(0.25 * (0.3 + 0.7 / 50), abs=0.005)
    assert (frames == 51).mean() == pytest.approx(0.75 * (0.3 + 0.7 / 150), abs=0.005)


def test_failures_draw_starts_within_their_motion_above_the_floor_of_the_others():
    """A failure in the long motion's first second counts for nothing in the short motion's last one."""
    starts = StartSampler(InitialisationSettings(from_start=0.0, failure_weight=0.4), BOTH, 0.02)
    starts.count_failures(np.array([60]))
    np.testing.assert_array_equal(starts.bin_shares(), [0, 1, 0, 0])
    motion = BOTH.motion_of(starts.draw(np.random.default_rng(0), 100_000))
    assert (motion == 0).mean() == pytest.approx(0.6 * 0.25, abs=0.005)
    starts.count_failures(np.array([50, 201]))
    np.testing.assert_allclose(starts.failures, 0.001 * np.array([1, 0.999, 0, 1]))


def test_an_episode_ends_at_the_end_of_its_own_motion():
    env = make_env(2)
    env._place(np.arange(2), np.array([48, 150]), BOTH.state.take(np.array([48, 150])))
    still = np.zeros((2, PROFILE.num_joints))
    first = env.step(still)
    assert first.timed_out.tolist() == [False, False]
    np.testing.assert_allclose(first.share, [0.5, 1 / 51])
    second = env.step(still)
    assert second.timed_out.tolist() == [True, False]
    assert second.failed.tolist() == [False, False]


def test_what_lies_ahead_stops_at_the_motions_last_frame():
    frames = Ahead(BOTH, np.array([10, 49, 51, 200])).frames((1, 2, 5))
    assert frames.tolist() == [[10, 11, 14], [49, 50, 50], [51, 52, 55], [200, 201, 201]]


def context(frame: int, turn: np.ndarray) -> ObservationContext:
    at = np.array([frame])
    state = BOTH.state.take(at)
    state = replace(state, root_quat=quat_mul(rotvec_to_quat(turn)[None], state.root_quat))
    zero = np.zeros((1, PROFILE.num_joints))
    return ObservationContext(PROFILE, state, None, zero, np.zeros(1), zero, None, Ahead(BOTH, at + 1))


def test_terms_of_the_future_by_hand():
    """Joints less the default pose; height, gravity, velocities; the turn to the reference is the inverse yaw."""
    settings = ObservationSettings(terms=FUTURE, history_terms=(), future_steps=(1, 4))
    layout = ObservationLayout(settings, PROFILE)
    assert {name: s.stop - s.start for name, s in layout.slices.items()} == dict(zip(FUTURE, (46, 20, 12), strict=True))
    seen = ObservationBuilder(layout, 1)(context(70, np.array([0.0, 0.0, 0.3])))[0]
    joints = BOTH.state.joint_pos[[71, 74]] - PROFILE.default_joint_pos
    np.testing.assert_allclose(seen[layout.slices["ref_dof_pos_future"]], joints.ravel(), atol=1e-6)
    root = seen[layout.slices["ref_root_future"]].reshape(2, 10)
    np.testing.assert_allclose(root[:, 0], BOTH.state.root_pos[[71, 74], 2], atol=1e-6)
    np.testing.assert_allclose(root[:, 1:4], projected_gravity(BOTH.state.root_quat[[71, 74]]), atol=1e-6)
    np.testing.assert_allclose(root[:, 4:7], BOTH.state.root_lin_vel[[71, 74]], atol=1e-6)
    np.testing.assert_allclose(root[:, 7:], 0.0, atol=1e-6)
    turn = quat_to_matrix(rotvec_to_quat(np.array([0.0, 0.0, -0.3])))[:, :2].ravel()
    np.testing.assert_allclose(seen[layout.slices["ref_root_turn"]], np.tile(turn, 2), atol=1e-6)


def test_terms_of_the_future_need_their_steps_and_have_no_history():
    with pytest.raises(ValidationError, match="future_steps is empty, expected control steps for ref_dof_pos_future"):
        ObservationSettings(terms=("ref_dof_pos_future",), history_terms=())
    with pytest.raises(ValidationError, match="observation term with history 'ref_root_turn'"):
        ObservationSettings(terms=("actions",), history_terms=("ref_root_turn",), future_steps=(1,))


def test_state_of_several_motions_is_resumed_to_the_bit():
    rng = np.random.default_rng(1)
    actions = rng.normal(0.0, 0.5, (40, 6, PROFILE.num_joints))
    changes = {
        "initialisation": InitialisationSettings(failure_weight=0.5),
        "actor": ObservationSettings(terms=("dof_pos", *FUTURE), history_terms=("dof_pos",), future_steps=(1, 8)),
    }
    env = make_env(**changes)
    for action in actions[:20]:
        env.step(action)
        env.observe()
    other = make_env(**changes)
    other.load_state_dict(env.state_dict())
    for action in actions[20:]:
        one, two = env.step(action), other.step(action)
        np.testing.assert_array_equal(one.reward, two.reward)
        np.testing.assert_array_equal(env.observe()["actor"], other.observe()["actor"])
    np.testing.assert_array_equal(env.state_dict()["failures"], other.state_dict()["failures"])
