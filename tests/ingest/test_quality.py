"""Masks of a log: each cause on a standing robot that it was put into, none where nothing was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.rollouts.ingest import health
from asap_core.rollouts.ingest.clock import Clocked, clocked
from asap_core.rollouts.ingest.foot_contact import feel_feet
from asap_core.rollouts.ingest.quality import INFORMING, QualitySettings, good_runs, judge
from asap_core.rollouts.ingest.steps import ControlSteps, Ticks
from asap_core.rollouts.ingest.streams import Stream
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.simulators.protocol import RobotState

PROFILE = get_profile("g1_23dof")
DT = 0.02
STEPS = 250
SETTINGS = QualitySettings()


@pytest.fixture(scope="module")
def standing() -> tuple[ControlSteps, Clocked, Clocked]:
    """A robot in MuJoCo that stands and sways its arms for 5 s; states at 500 Hz by interpolation with driver noise."""
    simulator = MujocoSimulator(
        PROFILE, PhysicsSettings(strength={"ankle": 20.0, "hip": 3.0, "knee": 3.0}), 1, threads=1
    )
    pose = PROFILE.default_joint_pos
    still = np.zeros((1, 3))
    start = RobotState(
        np.array([[0.0, 0.0, 0.784]]), np.array([[1.0, 0, 0, 0]]), still, still, pose[None].copy(), 0 * pose[None]
    )
    simulator.set_state(np.array([0]), start)
    arm = PROFILE.joint_index("left_shoulder_pitch_joint")
    rows: list[Any] = []
    for k in range(STEPS):
        target = pose.copy()
        target[arm] += 0.3 * np.sin(2 * np.pi * k * DT)
        before = simulator.state
        simulator.step(target[None])
        rows.append(
            (before.joint_pos[0], before.joint_vel[0], before.root_quat[0], simulator.joint_torque()[0], target)
        )
    pos, vel, quat, torques, target_rows = (np.array(column) for column in zip(*rows, strict=True))
    time = np.arange(STEPS) * DT
    steps = ControlSteps(
        time=time,
        control_dt=DT,
        joint_names=PROFILE.joint_names,
        joint_pos=pos,
        joint_vel=vel,
        joint_torque=torques,
        joint_target=target_rows,
        action=(target_rows - pose) / 0.25,
        saturated=np.zeros(pos.shape, bool),
        kp=np.tile(PROFILE.kp, (STEPS, 1)),
        kd=np.tile(PROFILE.kd, (STEPS, 1)),
        root_quat=quat,
        root_ang_vel=np.zeros((STEPS, 3)),
        root_lin_acc=np.tile([0.0, 0.0, health.GRAVITY], (STEPS, 1)),
        valid_state=np.ones(STEPS, bool),
        ticks=Ticks(time, np.arange(STEPS), np.ones(STEPS, bool), DT, 0.0, False),
    )
    fine = np.arange(STEPS * 10) * DT / 10
    rng = np.random.default_rng(0)
    fine_pos = np.stack([np.interp(fine, time, column) for column in pos.T], axis=1)
    fine_pos += rng.normal(0, 1e-4, fine_pos.shape)
    return (
        steps,
        _stream({"joint_pos": fine_pos}, fine),
        _stream({"lin_acc": np.tile([0, 0, 9.81], (len(fine), 1))}, fine),
    )


def _stream(values: dict[str, Any], time: np.ndarray) -> Clocked:
    return clocked(Stream("test", "joint_state", values, source_time=time, labels=PROFILE.joint_names))


def _with(state: Clocked, **values: Any) -> Clocked:
    return Clocked(replace(state.stream, values={**state.stream.values, **values}), state.time, state.packets)


def test_a_clean_log_is_usable_whole(standing: tuple[ControlSteps, Clocked, Clocked]) -> None:
    steps, state, imu = standing
    quality = judge(steps, state, imu, PROFILE, SETTINGS)
    assert {name: int(mask.sum()) for name, mask in quality.masks.items() if mask.any()} == {}
    assert quality.runs == ((0, STEPS),)
    assert quality.usable_s == pytest.approx(5.0)


def test_feet_bear_the_weight(standing: tuple[ControlSteps, Clocked, Clocked]) -> None:
    steps, _, _ = standing
    weight = 9.81 * sum(link.mass for link in (*PROFILE.links, *PROFILE.fixed_links))
    legs = 9.81 * sum(
        link.mass for link in PROFILE.links if "hip" in link.name or "knee" in link.name or "ankle" in link.name
    )
    assert steps.root_quat is not None
    feet = feel_feet(PROFILE, steps.time, steps.root_quat, steps.joint_pos, steps.joint_torque)
    total = feet.load[100:].sum(axis=1).mean()
    assert weight - legs < total < 1.05 * weight


def _rows(first_s: float, last_s: float) -> slice:
    return slice(round(first_s / DT), round(last_s / DT))


CASES: dict[str, Any] = {
    "hot": lambda state: _with(state, temperature=_spike(state, 40.0, 95.0)),
    "warm": lambda state: _with(state, temperature=_spike(state, 40.0, 85.0)),
    "motor_error": lambda state: _with(state, motor_error=_spike(state, 0, 4)),
    "emergency_stop": lambda state: _with(state, emergency_stop=_spike(state, 0, 1)[:, 3].astype(bool)),
    "crc_bad": lambda state: _with(state, crc_ok=~_spike(state, 0, 1)[:, 3].astype(bool)),
    "frozen": lambda state: _with(state, joint_pos=_hold(state)),
    "encoder_glitch": lambda state: _with(state, joint_pos=state.stream.values["joint_pos"] + _spike(state, 0.0, 3.0)),
}


def _spike(state: Clocked, usual: float, odd: float) -> np.ndarray:
    """One joint has the odd value from 2.00 to 2.04 s."""
    values = np.full((len(state.time), PROFILE.num_joints), usual)
    values[(state.time >= 2.0) & (state.time < 2.04), 3] = odd
    return values


def _hold(state: Clocked) -> np.ndarray:
    pos = np.array(state.stream.values["joint_pos"])
    held = (state.time >= 2.0) & (state.time < 2.1)
    pos[held] = pos[np.argmax(held)]
    return pos


@pytest.mark.parametrize("cause", CASES)
def test_each_cause_is_found_where_it_is_and_alone(standing: tuple[ControlSteps, Clocked, Clocked], cause: str) -> None:
    steps, state, imu = standing
    quality = judge(steps, CASES[cause](state), imu, PROFILE, SETTINGS)
    found = {name for name, mask in quality.masks.items() if mask.any()}
    assert found == ({"hot", "warm"} if cause == "hot" else {cause})
    rows = np.flatnonzero(quality.masks[cause])
    assert steps.time[rows[0]] >= 2.0 - 2 * DT
    assert steps.time[rows[-1]] <= 2.22
    if cause in INFORMING:
        assert quality.usable.all()
    else:
        assert not quality.usable[rows].any()
        assert quality.usable_s == pytest.approx(5.0 - len(rows) * DT)


def test_zero_gains_and_a_dead_policy_are_lost_tracking(standing: tuple[ControlSteps, Clocked, Clocked]) -> None:
    steps, state, imu = standing
    kp = np.array(steps.kp)
    kp[_rows(3, 5)] = 0
    target = steps.joint_target.copy()
    target[_rows(3, 5)] = target[round(3 / DT)]
    for changed in (replace(steps, kp=kp), replace(steps, joint_target=target)):
        lost = judge(changed, state, imu, PROFILE, SETTINGS).masks["tracking_lost"]
        assert lost[_rows(3.04, 5)].mean() > 0.9
        assert not lost[: round(2.98 / DT)].any()


def test_fall_rules_out_half_a_second_before_and_all_after(standing: tuple[ControlSteps, Clocked, Clocked]) -> None:
    steps, state, imu = standing
    quat = np.array(steps.root_quat)
    quat[_rows(3, 5)] = [np.cos(np.pi / 6), 0, np.sin(np.pi / 6), 0]
    quality = judge(replace(steps, root_quat=quat), state, imu, PROFILE, SETTINGS)
    np.testing.assert_array_equal(np.flatnonzero(quality.masks["fall"]), np.arange(125, 250))
    short = np.array(steps.root_quat)
    short[_rows(3, 3.08)] = quat[-1]
    assert not judge(replace(steps, root_quat=short), state, imu, PROFILE, SETTINGS).masks["fall"].any()


def test_a_gantry_is_seen_and_flight_is_not_one(standing: tuple[ControlSteps, Clocked, Clocked]) -> None:
    steps, state, imu = standing
    torque = steps.joint_torque.copy()
    torque[_rows(2, 3)] = 0
    lifted = judge(replace(steps, joint_torque=torque), state, imu, PROFILE, SETTINGS).masks["lifted"]
    np.testing.assert_array_equal(np.flatnonzero(lifted), np.arange(100, 150))
    acc = np.array(steps.root_lin_acc)
    acc[_rows(2, 3)] = 0
    flying = replace(steps, joint_torque=torque, root_lin_acc=acc)
    assert not judge(flying, state, imu, PROFILE, SETTINGS).masks["lifted"].any()


def test_saturation_is_marked_and_rules_out_only_where_it_stays(
    standing: tuple[ControlSteps, Clocked, Clocked],
) -> None:
    steps, state, imu = standing
    torque = steps.joint_torque.copy()
    torque[100, 3] = PROFILE.joint_torque_limit[3]
    once = judge(replace(steps, joint_torque=torque), state, imu, PROFILE, SETTINGS)
    np.testing.assert_array_equal(np.flatnonzero(once.masks["torque_saturated"]), [100])
    assert once.usable.all()
    torque[100:110, 3] = PROFILE.joint_torque_limit[3]
    long = judge(replace(steps, joint_torque=torque), state, imu, PROFILE, SETTINGS)
    assert long.masks["torque_saturated"].sum() == 10
    assert not long.usable[100:110].any()


def test_short_runs_are_left_out() -> None:
    good = np.array([1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1], bool)
    usable, runs = good_runs(good, 3)
    assert runs == ((0, 3), (7, 11))
    assert usable.sum() == 7


def test_base_gap(standing: tuple[ControlSteps, Clocked, Clocked]) -> None:
    steps, state, imu = standing
    place = np.tile([0.0, 0.0, 0.79], (STEPS, 1))
    place[60:70] = np.nan
    quality = judge(steps, state, imu, PROFILE, SETTINGS, place)
    np.testing.assert_array_equal(np.flatnonzero(quality.masks["base_gap"]), np.arange(60, 70))
    assert quality.runs == ((0, 60), (70, 250))
