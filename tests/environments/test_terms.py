"""Starts, delays, pushes, randomised physics, anchored targets and adaptive widths, by hand-computed values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from asap_core.environments.anchor import anchored, targets_at
from asap_core.environments.curricula import KernelWidths, RampSettings
from asap_core.environments.disturbances import ActionDelay, DisturbanceSettings, Pushes, PushSettings
from asap_core.environments.randomisation import RandomisationSettings, randomised
from asap_core.environments.rewards import ERRORS, SIGMA
from asap_core.environments.settings import TrackingSettings
from asap_core.environments.starts import InitialisationSettings, StartSampler, disturbed
from asap_core.environments.tracking import TrackingEnv
from asap_core.errors import UnknownNameError
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.mjcf import build_model, link_masses, scaled_gains
from asap_core.robots.physics import PhysicsSettings
from asap_core.rotations import quat_mul, quat_to_rotvec, rotate, rotvec_to_quat
from asap_core.simulators.mujoco import MujocoSimulator
from tests.robot_motions import knee_bend_reference

PROFILE = get_profile("g1_23dof")
REWARDS = {"body_position": 1.0, "joint_position": 0.75, "action_rate": -0.02}


def make_env(num_envs: int = 8, seed: int = 0, **settings) -> TrackingEnv:
    sim = MujocoSimulator(PROFILE, PhysicsSettings(), num_envs)
    return TrackingEnv(sim, PROFILE, knee_bend_reference(), TrackingSettings(rewards=REWARDS, **settings), seed)


# Starts


def sampler(**settings) -> StartSampler:
    return StartSampler(
        InitialisationSettings(from_start=0.0, **settings), knee_bend_reference(seconds=5.0), control_dt=0.02
    )


def test_starts_are_uniform_and_never_the_last_frame():
    frames = sampler().draw(np.random.default_rng(0), 100_000)
    assert (frames.min(), frames.max()) == (0, 249)
    assert frames.mean() == pytest.approx(124.5, abs=1.0)


def test_starts_lean_towards_seconds_before_failures():
    """One failure in the fourth of five seconds: scores 0.64, 0.8 and 1 for the second, third and fourth."""
    starts = sampler(failure_weight=0.5)
    starts.count_failures(np.array([170]))
    np.testing.assert_allclose(starts.bin_shares(), np.array([0, 0.64, 0.8, 1.0, 0]) / 2.44)
    seconds = np.bincount(starts.draw(np.random.default_rng(0), 100_000) // 50, minlength=5) / 100_000
    np.testing.assert_allclose(seconds, 0.5 * 0.2 + 0.5 * np.array([0, 0.64, 0.8, 1.0, 0]) / 2.44, atol=0.01)


def test_failures_fade():
    starts = sampler(failure_weight=1.0)
    starts.count_failures(np.array([0, 0, 249]))
    starts.count_failures(np.zeros(0, np.intp))
    np.testing.assert_allclose(starts.failures, 0.001 * 0.999 * np.array([2, 0, 0, 0, 1]))


def test_start_noise_has_its_levels():
    clean = knee_bend_reference().state.take(np.zeros(20_000, np.intp))
    still = {"joint_pos_noise": 0.0, "joint_vel_noise": 0.0, "root_vel_noise": 0.0}
    moved = disturbed(clean, InitialisationSettings(**still, root_pos_noise=0.05), np.random.default_rng(0))
    assert (moved.root_pos - clean.root_pos).std(axis=0) == pytest.approx([0.05] * 3, rel=0.03)
    np.testing.assert_array_equal(moved.joint_pos, clean.joint_pos)
    turned = disturbed(clean, InitialisationSettings(**still, root_turn=0.2), np.random.default_rng(0))
    relative = quat_mul(turned.root_quat, clean.root_quat * np.array([1, -1, -1, -1]))
    angle = np.linalg.norm(quat_to_rotvec(relative), axis=1)
    assert angle.max() <= 0.2 + 1e-9
    assert angle.mean() == pytest.approx(0.1, rel=0.02)


# Delays and pushes


def test_actions_are_late_by_each_robots_own_steps():
    delay = ActionDelay((0, 2), 3, 1)
    delay.delay[:] = [0, 1, 2]
    given = [np.full((3, 1), float(k)) for k in (1, 2, 3)]
    assert [delay(a)[:, 0].tolist() for a in given] == [[1, 0, 0], [2, 1, 0], [3, 2, 1]]
    delay.reset(np.array([2]), np.random.default_rng(0))
    assert delay.past[:, :, 0].tolist() == [[3, 3, 0], [2, 2, 0]]


def test_delays_are_drawn_between_their_ends():
    delay = ActionDelay((1, 2), 1000, 1)
    delay.reset(np.arange(1000), np.random.default_rng(0))
    assert set(delay.delay.tolist()) == {1, 2}
    assert delay.delay.mean() == pytest.approx(1.5, abs=0.06)


def test_a_late_environment_commands_what_was_asked_before():
    prompt, late = make_env(), make_env(disturbances=DisturbanceSettings(delay_steps=(1, 1)))
    action = np.full((8, 23), 0.3)
    for env, steps in ((prompt, [np.zeros((8, 23)), action]), (late, [action, action])):
        env._place(np.arange(8), np.zeros(8, np.intp), env.reference.state.take(np.zeros(8, np.intp)))
        for a in steps:
            env.step(a)
    np.testing.assert_array_equal(prompt.simulator.state.joint_pos, late.simulator.state.joint_pos)
    assert (late._last_action == np.float32(0.3)).all(), "the policy sees what it asked for"


def test_pushes_replace_the_horizontal_velocity_when_due():
    rng = np.random.default_rng(0)
    pushes = Pushes(PushSettings(interval_s=(0.04, 0.04), speed=0.5), 4, 0.02, rng)
    sim = MujocoSimulator(PROFILE, PhysicsSettings(), 4)
    start = knee_bend_reference().state.take(np.zeros(4, np.intp))
    sim.set_state(np.arange(4), replace(start, root_lin_vel=np.full((4, 3), 0.7)))
    assert len(pushes(sim, rng)) == 0
    assert pushes(sim, rng).tolist() == [0, 1, 2, 3]
    after = sim.state
    assert np.abs(after.root_lin_vel[:, :2]).max() <= 0.5
    assert len(np.unique(after.root_lin_vel[:, :2])) == 8
    np.testing.assert_allclose(after.root_lin_vel[:, 2], 0.7)
    np.testing.assert_array_equal(after.joint_pos, start.joint_pos)
    np.testing.assert_allclose(pushes.due_s, 0.04)


def test_settings_refuse_ranges_the_wrong_way_round():
    with pytest.raises(ValidationError, match="the smaller first"):
        DisturbanceSettings(delay_steps=(2, 1))
    with pytest.raises(ValidationError, match="the smaller first"):
        PushSettings(interval_s=(9.0, 5.0))
    with pytest.raises(ValidationError, match="the smaller first"):
        RandomisationSettings(friction=(1.0, 0.5))
    with pytest.raises(ValidationError, match="expected lowest"):
        RampSettings(start=3.0)


# Randomised physics


def test_without_terms_all_robots_have_the_nominal_physics():
    physics = PhysicsSettings()
    assert randomised(physics, RandomisationSettings(), PROFILE, 100, 0) is physics


def test_every_robot_gets_its_own_physics_within_the_ranges():
    settings = RandomisationSettings(
        friction=(0.2, 1.1), kp=(0.925, 1.05), kd=(0.75, 1.25), link_mass=(0.8, 1.2), com_offset=0.1
    )
    robots = randomised(PhysicsSettings(), settings, PROFILE, 200, 0)
    friction = np.array([p.friction for p in robots])
    assert 0.2 <= friction.min() < 0.23
    assert 1.07 < friction.max() <= 1.1
    kp = np.stack([scaled_gains(PROFILE, p)[0] for p in robots]) / PROFILE.kp
    kd = np.stack([scaled_gains(PROFILE, p)[1] for p in robots]) / PROFILE.kd
    assert kp.mean() == pytest.approx(0.9875, abs=0.002)
    assert (kp.min() >= 0.925, kp.max() <= 1.05) == (True, True)
    assert (kd.min() >= 0.75, kd.max() <= 1.25) == (True, True)
    assert abs(np.corrcoef(kp[:, 0], kp[:, 3])[0, 1]) < 0.2
    for p in robots[:5]:
        np.testing.assert_array_equal(scaled_gains(PROFILE, p)[2], PROFILE.joint_torque_limit)
    nominal = link_masses(PROFILE, PhysicsSettings())
    factors = {n: [link_masses(PROFILE, p)[n] / nominal[n] for p in robots] for n in nominal}
    assert min(factors["left_knee_link"]) < 0.83 < 1.17 < max(factors["left_knee_link"]) <= 1.2
    assert set(factors["torso_link"]) == {1.0}
    shift = np.array([p.com_offset["torso_link"] for p in robots])
    assert np.abs(shift).max() <= 0.1
    assert shift.std(axis=0) == pytest.approx([0.1 / np.sqrt(3)] * 3, rel=0.1)


def test_the_same_seed_gives_the_same_robots_and_the_model_has_their_values():
    settings = RandomisationSettings(friction=(0.2, 1.1), kp=(0.9, 1.1))
    first, second = (randomised(PhysicsSettings(), settings, PROFILE, 3, 5) for _ in range(2))
    assert first == second
    model = build_model(PROFILE, first[1])
    assert model.geom_friction[0, 0] == pytest.approx(first[1].friction)
    want = [PROFILE.kp[j] * first[1].kp_factor[name] for j, name in enumerate(PROFILE.joint_names)]
    np.testing.assert_allclose(model.actuator_gainprm[:, 0], want)


def test_mass_links_that_match_nothing_are_refused():
    with pytest.raises(UnknownNameError, match="mass_links"):
        randomised(PhysicsSettings(), RandomisationSettings(link_mass=(0.9, 1.1), mass_links=("tail",)), PROFILE, 1, 0)


# Anchor


def test_a_robot_that_drifted_and_turned_is_on_its_anchored_reference():
    reference = knee_bend_reference()
    frames = np.array([3, 20])
    clean = reference.state.take(frames)
    turn = rotvec_to_quat(np.array([[0, 0, 0.7], [0, 0, -2.0]]))
    drift = np.array([[1.5, -2.0, 0.0], [0.3, 0.1, 0.0]])
    links = Kinematics(PROFILE).forward_with_velocities(
        rotate(turn, clean.root_pos) + drift, quat_mul(turn, clean.root_quat), clean.joint_pos,
        rotate(turn, clean.root_lin_vel), rotate(turn, clean.root_ang_vel), clean.joint_vel,
    )  # fmt: skip
    target = anchored(targets_at(reference.links, frames), links, PROFILE)
    np.testing.assert_allclose(target.pos, links.pos, atol=1e-9)
    np.testing.assert_allclose(target.lin_vel, links.lin_vel, atol=1e-9)
    np.testing.assert_allclose(target.ang_vel, links.ang_vel, atol=1e-9)
    assert np.abs(np.sum(target.quat * links.quat, axis=-1)).min() == pytest.approx(1.0)


def test_height_and_tilt_still_count():
    robot = targets_at(knee_bend_reference().links, np.array([0]))
    higher = replace(robot, pos=robot.pos + np.array([0, 0, 0.2]))
    away = anchored(higher, robot, PROFILE).pos - robot.pos
    np.testing.assert_allclose(away, np.broadcast_to([0, 0, 0.2], away.shape), atol=1e-9)


def test_anchored_environment_forgives_drift_that_ends_episodes_in_the_world():
    ends = {}
    for compare in ("world", "anchor"):
        env = make_env(num_envs=1, compare=compare)
        moved = env.reference.state.take(np.zeros(1, np.intp))
        moved.root_pos[:, 0] += 5.0
        env.simulator.set_state(np.arange(1), moved)
        env._frame[:] = 0
        ends[compare] = bool(env.step(np.zeros((1, 23))).failed[0])
    assert ends == {"world": True, "anchor": False}


# Adaptive widths


def test_widths_shrink_to_the_mean_error_and_never_grow():
    env = make_env()
    context = env._reward_context(env._eyes.look(env.simulator.state), env._last_action)
    widths = KernelWidths(rate=0.5)
    error = {name: float(f(context).mean()) for name, f in ERRORS.items()}
    widths.update(context, np.ones(8, bool))
    for name in SIGMA:
        assert widths.sigma[name] == pytest.approx(min(SIGMA[name], 0.5 * (SIGMA[name] + error[name])))
    worse = replace(context, ref_link_pos=context.ref_link_pos + 3.0)
    before = dict(widths.sigma)
    widths.update(worse, np.ones(8, bool))
    assert widths.sigma["feet"] == before["feet"]
    assert widths.mean_error["feet"] > before["feet"]


def test_widths_stay_published_at_rate_zero_and_ignore_failed_robots():
    env = make_env()
    context = env._reward_context(env._eyes.look(env.simulator.state), env._last_action)
    still = KernelWidths(rate=0.0)
    still.update(context, np.ones(8, bool))
    assert still.sigma == SIGMA
    nobody = KernelWidths(rate=0.5)
    nobody.update(context, np.zeros(8, bool))
    assert nobody.sigma == SIGMA
