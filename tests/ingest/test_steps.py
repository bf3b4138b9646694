"""Control steps on the command's ticks, and raw actions from joint targets (C17)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from asap_core.errors import ConfigError, StageError, UnknownNameError
from asap_core.robots import get_profile
from asap_core.rollouts.ingest.actions import ActionRule
from asap_core.rollouts.ingest.clock import Clocked, clocked
from asap_core.rollouts.ingest.steps import LOW_PASS_HZ, command_ticks, control_steps, low_pass
from asap_core.rollouts.ingest.streams import Stream
from asap_core.rollouts.ingest.walking_twin import walk
from asap_core.rotations import rotvec_to_quat

PROFILE = get_profile("g1_23dof")
NAMES = tuple(PROFILE.joint_names)
SDK = tuple(get_profile("g1_29dof").joint_names)
_SCALE = 0.25


def _rule(clip: float = np.inf, scale: float = _SCALE) -> ActionRule:
    default = dict(zip(NAMES, PROFILE.default_joint_pos.tolist(), strict=True))
    return ActionRule.from_values(PROFILE, default, scale, clip)


def _actions(steps: int, size: float = 0.3) -> np.ndarray:
    return np.random.default_rng(0).uniform(-size, size, (steps, len(NAMES)))


def _command(ticks: np.ndarray, actions: np.ndarray, rate_hz: float | None = None) -> Clocked:
    """Targets of 29 joints, stamped at the ticks, or held and repeated at `rate_hz`."""
    target = np.zeros((len(ticks), 29))
    target[:, [SDK.index(name) for name in NAMES]] = PROFILE.default_joint_pos + _SCALE * actions
    time = ticks
    if rate_hz is not None:
        time = np.arange(ticks[0], ticks[-1] + 0.02, 1 / rate_hz)
        target = target[np.searchsorted(ticks, time + 1e-9, side="right") - 1]
    values = {"joint_target": target, "kp": np.full(target.shape, 100.0), "kd": np.full(target.shape, 2.0)}
    return clocked(Stream("lowcmd", "joint_command", values, source_time=time, labels=SDK))


def _state(time: np.ndarray) -> Clocked:
    rates = np.linspace(1.0, 8.0, 29)
    values = {
        "joint_pos": 0.2 * np.sin(time[:, None] * rates),
        "joint_vel": 0.2 * rates * np.cos(time[:, None] * rates),
        "joint_torque": np.tile(time[:, None], 29),
    }
    return clocked(Stream("lowstate", "joint_state", values, source_time=time, labels=SDK))


def test_actions_are_held_and_states_are_those_at_the_tick() -> None:
    ticks = 0.5 + np.arange(200) * 0.02
    actions = _actions(200)
    steps = control_steps(_state(np.arange(0.0, 6.0, 2e-3)), _command(ticks, actions, 500.0), None, _rule())
    np.testing.assert_allclose(steps.time, ticks, atol=1e-9)
    np.testing.assert_allclose(steps.action, actions, atol=1e-9)
    assert steps.joint_names == NAMES
    rates = np.linspace(1.0, 8.0, 29)[[SDK.index(name) for name in NAMES]]
    np.testing.assert_allclose(steps.joint_pos, 0.2 * np.sin(ticks[:, None] * rates), atol=2e-5)
    np.testing.assert_allclose(steps.joint_vel, 0.2 * rates * np.cos(ticks[:, None] * rates), atol=2e-4)
    # Ten samples from the tick on, 2 ms apart: their mean lies 9 ms after it.
    np.testing.assert_allclose(steps.joint_torque[:, 0], ticks + 0.009, atol=1e-9)
    assert steps.valid_state.all()


def test_ticks_are_a_line_through_jittered_changes() -> None:
    rng = np.random.default_rng(1)
    truth = 1.0 + np.arange(500) * 0.0201
    command = _command(truth + rng.normal(0.0, 5e-4, 500), _actions(500))
    ticks = command_ticks(replace(command, time=truth + rng.normal(0.0, 5e-4, 500)))
    assert ticks.period == pytest.approx(0.0201, rel=1e-4)
    assert np.abs(ticks.time - truth).max() < 2e-4
    assert not ticks.loose


def test_a_command_that_stays_the_same_keeps_its_ticks() -> None:
    actions = _actions(100)
    actions[40:43] = actions[39]
    ticks = command_ticks(_command(np.arange(100) * 0.02, actions, 500.0))
    assert len(ticks.time) == 100
    assert np.flatnonzero(~ticks.changed).tolist() == [40, 41, 42]
    np.testing.assert_allclose(ticks.time, np.arange(100) * 0.02, atol=1e-9)


def test_a_lost_command_is_held_and_marked() -> None:
    times = np.delete(np.arange(100) * 0.02, 50)
    actions = np.delete(_actions(100), 50, axis=0)
    steps = control_steps(_state(np.arange(0.0, 3.0, 2e-3)), _command(times, actions), None, _rule())
    assert len(steps.time) == 100
    np.testing.assert_allclose(steps.action[50], actions[49], atol=1e-12)
    assert np.flatnonzero(~steps.ticks.changed).tolist() == [50]


def test_a_slipping_loop_keeps_its_own_times() -> None:
    times = np.arange(400) * 0.02
    times[200:] += 0.008
    ticks = command_ticks(_command(times, _actions(400)))
    assert ticks.loose
    np.testing.assert_allclose(ticks.time, times, atol=1e-9)


def test_another_rate_is_refused_and_names_the_option() -> None:
    with pytest.raises(StageError, match=r"every 10.0 ms.*--control-dt"):
        command_ticks(_command(np.arange(100) * 0.01, _actions(100)))
    assert len(command_ticks(_command(np.arange(100) * 0.01, _actions(100)), 0.01).time) == 100


def test_a_command_that_never_changes_has_no_ticks() -> None:
    with pytest.raises(StageError, match="change 0 times"):
        command_ticks(_command(np.arange(100) * 0.02, np.zeros((100, len(NAMES)))))


def test_rows_without_states_are_not_valid() -> None:
    time = np.arange(0.0, 4.0, 2e-3)
    kept = (time < 1.001) | (time > 1.199)
    steps = control_steps(_state(time[kept]), _command(np.arange(150) * 0.02, _actions(150)), None, _rule())
    inside = (steps.time > 1.001) & (steps.time < 1.199)
    np.testing.assert_array_equal(steps.valid_state, ~inside)


def test_orientation_is_slerped_and_signs_do_not_matter() -> None:
    time = np.arange(0.0, 3.0, 2e-3)
    turn = np.zeros((len(time), 3))
    turn[:, 2] = 2.0 * time
    flips = np.where(np.arange(len(time)) % 2, -1.0, 1.0)[:, None]
    imu = clocked(Stream("imu", "imu", {"quat": rotvec_to_quat(turn) * flips}, source_time=time))
    ticks = 0.101 + np.arange(100) * 0.02
    steps = control_steps(_state(time), _command(ticks, _actions(100)), imu, _rule())
    wanted = rotvec_to_quat(np.stack([ticks * 0, ticks * 0, 2.0 * ticks], axis=1))
    assert steps.root_quat is not None
    np.testing.assert_allclose(np.abs((steps.root_quat * wanted).sum(axis=1)), 1.0, atol=1e-12)


def test_the_low_pass_has_no_delay_and_removes_the_high() -> None:
    time = np.arange(0.0, 4.0, 2e-3)
    slow, fast = np.sin(2 * np.pi * 2.0 * time), np.sin(2 * np.pi * 100.0 * time)
    out = low_pass(time, np.stack([slow, fast], axis=1), 20.0)
    middle = slice(200, -200)
    np.testing.assert_allclose(out[middle, 0], slow[middle], atol=2e-4)
    assert np.abs(out[middle, 1]).max() < 1e-4


def test_joint_velocities_of_footfalls_survive_the_low_pass() -> None:
    """Measured at 20 Hz, the cutoff that is often used: 0.14 rad/s; noise alone: 0.005."""
    twin = walk(PROFILE, 6.0)
    noisy = twin.joint_vel + np.random.default_rng(0).normal(0.0, 5e-3, twin.joint_vel.shape)
    away = (low_pass(twin.time, noisy, LOW_PASS_HZ) - twin.joint_vel)[250:-250]
    assert np.sqrt((away**2).mean()) < 0.025


def test_a_50_hz_log_is_taken_row_by_row_and_c17_holds() -> None:
    """ASAP's motion_k.npz: one time column, joint_pos_cmd of 29 joints, actions of 23."""
    rng = np.random.default_rng(2)
    time = 1.7e9 + np.arange(300) * 0.02 + rng.normal(0.0, 4e-4, 300)
    actions = _actions(300)
    actions[100:105] = actions[99]
    state, command = _state(time), _command(time, actions)
    steps = control_steps(state, command, None, _rule())
    assert len(steps.time) == 300
    assert np.abs(steps.action - actions).max() < 1e-6
    again = _rule().apply(steps.action)
    stored = command.stream.values["joint_target"][:, [SDK.index(name) for name in NAMES]]
    assert np.abs(again - stored).max() < 1e-6
    np.testing.assert_array_equal(
        steps.joint_pos, state.stream.values["joint_pos"][:, [SDK.index(name) for name in NAMES]]
    )


def test_a_missing_row_parts_the_rows_beside_it() -> None:
    """Of a log taken row by row: the row before the hole has no next state 20 ms later."""
    kept = np.delete(np.arange(300), 120)
    time = kept * 0.02
    steps = control_steps(_state(time), _command(time, _actions(300)[kept]), None, _rule())
    assert np.flatnonzero(~steps.valid_state).tolist() == [119]


def test_single_precision_targets_give_actions_to_1e_6() -> None:
    ticks, actions = np.arange(200) * 0.02, _actions(200)
    command = _command(ticks, actions)
    single = {name: value.astype(np.float32) for name, value in command.stream.values.items()}
    command = replace(command, stream=replace(command.stream, values=single))
    steps = control_steps(_state(np.arange(0.0, 5.0, 2e-3)), command, None, _rule())
    assert np.abs(steps.action - actions).max() < 1e-6


def test_every_saturated_action_is_flagged_and_no_other() -> None:
    actions = _actions(50, size=0.1)
    actions[3, 5], actions[7, 2] = 1.5, -1.5
    rule = _rule(clip=1.5, scale=0.05)
    _, saturated = rule.recover(rule.apply(actions))
    assert np.argwhere(saturated).tolist() == [[3, 5], [7, 2]]


def test_a_target_at_a_joint_limit_is_flagged() -> None:
    target = np.tile(PROFILE.default_joint_pos, (10, 1))
    knee = NAMES.index("left_knee_joint")
    target[4, knee] = np.float32(PROFILE.joint_upper[knee])
    target[6, knee] = PROFILE.joint_lower[knee] - 0.1
    _, saturated = _rule().recover(target)
    assert np.argwhere(saturated).tolist() == [[4, knee], [6, knee]]


@pytest.mark.parametrize(
    ("default", "scale", "words"),
    [
        (None, 0.25, "--action-default"),
        (dict.fromkeys(NAMES, 0.0), None, "--action-scale"),
        (dict.fromkeys(NAMES[1:], 0.0), 0.25, NAMES[0]),
        (dict.fromkeys(NAMES, 0.0), 0.0, "above 0"),
    ],
)
def test_missing_default_or_scale_is_an_error(
    default: dict[str, float] | None, scale: float | None, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        ActionRule.from_values(PROFILE, default, scale)


def test_actions_about_a_reference_follow_its_frames() -> None:
    reference = np.random.default_rng(4).uniform(-0.1, 0.1, (30, len(NAMES)))
    rule = replace(_rule(), base=reference[6:])
    actions = _actions(40)
    target = reference[np.minimum(6 + np.arange(40), 29)] + _SCALE * actions
    np.testing.assert_allclose(rule.recover(target)[0], actions, atol=1e-12)
    np.testing.assert_allclose(rule.apply(actions), target, atol=1e-12)


def test_a_joint_that_the_log_lacks_is_named() -> None:
    state = _state(np.arange(0.0, 3.0, 2e-3))
    renamed = replace(state, stream=replace(state.stream, labels=("nothing", *SDK[1:])))
    with pytest.raises(UnknownNameError, match="left_hip_pitch_joint"):
        control_steps(renamed, _command(np.arange(100) * 0.02, _actions(100)), None, _rule())
