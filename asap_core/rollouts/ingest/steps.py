"""Control steps of a log: one row per policy tick, the state just before the action and the action held after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, sosfiltfilt

from asap_core.errors import StageError, unknown_name
from asap_core.rollouts.ingest.actions import ActionRule
from asap_core.rollouts.ingest.clock import Clocked, is_line
from asap_core.rotations import slerp

Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

LOW_PASS_HZ = 100.0
"""Lower, and what footfalls and 50 Hz targets do to the velocities goes with the noise. At 20 Hz the joint velocities
of a published dance on a twin are wrong by 0.089 rad/s rms instead of 0.026, and the twin's own physics, replayed from
such states, miss it by 12.4 mm after 1 s instead of 6.5; of a robot that only stands both are alike (1.1 mm)."""
LONGEST_STATE_GAP_S = 0.06
_SAME_RATE = 0.1
"""A log whose samples are as far apart as the control steps, within this share, is taken row by row."""
_SAME_TIME_S = 1e-4


@dataclass(frozen=True)
class Ticks:
    """When the K actions of a command stream began to be commanded."""

    time: Float64
    """(K,) s, regular unless `loose`."""
    row: NDArray[np.intp]
    """(K,) sample of the command stream whose values hold from this tick on."""
    changed: Mask
    """(K,) the command changed here; where not, it was the same as before, or the packet is missing."""
    period: float
    """s."""
    residual_s: float
    """95th percentile distance of the changes from the line."""
    loose: bool
    """The loop slipped: times are those of the changes, not of a line."""


@dataclass(frozen=True)
class ControlSteps:
    """K control steps; joints in the order of `joint_names`. Row k is s_k and the action a_k applied from it."""

    time: Float64
    """(K,) s, the state's clock."""
    control_dt: float
    joint_names: tuple[str, ...]
    joint_pos: Float64
    """(K, J) rad."""
    joint_vel: Float64
    """(K, J) rad/s."""
    joint_torque: Float64
    """(K, J) Nm, mean over the step that begins here; NaN where the log has none."""
    joint_target: Float64
    """(K, J) rad, held."""
    action: Float64
    """(K, J) raw policy output, recovered from the target."""
    saturated: Mask
    """(K, J) the action stands at its clip, or the target at a joint limit."""
    kp: Float64 | None
    """(K, J) Nm/rad, held."""
    kd: Float64 | None
    """(K, J) Nm s/rad, held."""
    root_quat: Float64 | None
    """(K, 4) wxyz of the IMU."""
    root_ang_vel: Float64 | None
    """(K, 3) rad/s of the IMU, in its own frame."""
    root_lin_acc: Float64 | None
    """(K, 3) m/s² specific force, mean over the step, in the IMU's frame."""
    valid_state: Mask
    """(K,) state samples on both sides, no further apart than 60 ms; the next row too, of a log taken row by row."""
    ticks: Ticks


def command_ticks(command: Clocked, control_dt: float = 0.02) -> Ticks:
    """Policy ticks from the times at which the joint targets change, fitted to a line.

    Raises:
        StageError: the targets never change, or change at another rate than `control_dt`.
    """
    target = np.asarray(command.stream.values["joint_target"], float)
    changes = np.flatnonzero(np.append(True, (np.diff(target, axis=0) != 0).any(axis=1)))
    if len(changes) < 3:
        raise StageError(f"stream {command.stream.name}: the joint targets change {len(changes) - 1} times only")
    times = command.time[changes]
    steps = np.diff(times)
    whole = np.round(steps / control_dt)
    if np.median(np.abs(steps - control_dt)) > _SAME_RATE * control_dt or (whole < 1).mean() > 0.02:
        raise StageError(
            f"stream {command.stream.name}: the joint targets change every {np.median(steps) * 1e3:.1f} ms, expected "
            f"{control_dt * 1e3:.1f} ms; say the policy's rate with --control-dt"
        )
    number = np.append(0, np.cumsum(np.maximum(whole, 1))).astype(np.intp)
    slope, offset = _robust_line(number.astype(float), times)
    residual = np.abs(times - offset - slope * number)
    loose = not is_line(residual, (steps - whole * slope)[whole > 0], slope)
    every = np.arange(number[-1] + 1)
    at = np.searchsorted(number, every, side="right") - 1
    grid = np.interp(every, number, times) if loose else offset + slope * every
    return Ticks(grid, changes[at], number[at] == every, float(slope), float(np.percentile(residual, 95)), loose)


def control_steps(
    state: Clocked, command: Clocked, imu: Clocked | None, rule: ActionRule, control_dt: float = 0.02
) -> ControlSteps:
    """The control steps of a log, on the command's own ticks.

    Args:
        state: joint_pos, joint_vel and, if known, joint_torque; `labels` name the joints.
        command: joint_target and, if known, kp and kd; `labels` name the joints. Same clock as `state`.
        imu: quat wxyz, ang_vel, lin_acc of the root's IMU; same clock.
        rule: joints wanted, and how their targets come from raw actions.
        control_dt: s, the policy's.

    Returns:
        Positions, velocities and rates low-passed at 100 Hz without delay and interpolated at the ticks, orientation by
        slerp, torque and acceleration the mean over the step, targets and gains held. A log that already has the
        control rate is taken row by row, unfiltered.

    Raises:
        StageError: `command_ticks` finds no ticks.
        UnknownNameError: a joint of `rule` is not in the log.
    """
    names = rule.joint_names
    ticks = _row_ticks(command) if _has_control_rate(state, command, control_dt) else command_ticks(command, control_dt)
    target = _joints(command, "joint_target", names)[ticks.row]
    sampled = _Sampler(state, ticks, control_dt)
    pos = sampled.smooth(_joints(state, "joint_pos", names))
    torque = (
        sampled.mean(_joints(state, "joint_torque", names))
        if "joint_torque" in state.stream.values
        else np.full_like(target, np.nan)
    )
    inertial = None if imu is None else _Sampler(imu, ticks, control_dt)
    action, saturated = rule.recover(target)
    return ControlSteps(
        time=ticks.time,
        control_dt=ticks.period,
        joint_names=names,
        joint_pos=pos,
        joint_vel=sampled.smooth(_joints(state, "joint_vel", names)),
        joint_torque=torque,
        joint_target=target,
        action=action,
        saturated=saturated,
        kp=_joints(command, "kp", names)[ticks.row] if "kp" in command.stream.values else None,
        kd=_joints(command, "kd", names)[ticks.row] if "kd" in command.stream.values else None,
        root_quat=None if inertial is None else inertial.orientation(),
        root_ang_vel=None if inertial is None else inertial.smooth(inertial.values("ang_vel")),
        root_lin_acc=None if inertial is None else inertial.mean(inertial.values("lin_acc")),
        valid_state=sampled.valid if inertial is None else sampled.valid & inertial.valid,
        ticks=ticks,
    )


def _has_control_rate(state: Clocked, command: Clocked, control_dt: float) -> bool:
    same = len(state.time) == len(command.time) and bool(np.array_equal(state.time, command.time))
    return same and bool(abs(np.median(np.diff(state.time)) - control_dt) < _SAME_RATE * control_dt)


def _row_ticks(command: Clocked) -> Ticks:
    rows = np.arange(len(command.time))
    period = float(np.median(np.diff(command.time)))
    target = np.asarray(command.stream.values["joint_target"], float)
    changed = np.append(True, (np.diff(target, axis=0) != 0).any(axis=1))
    return Ticks(command.time, rows, changed, period, 0.0, False)


def _robust_line(x: Float64, y: Float64) -> tuple[float, float]:
    """Slope and offset of the least absolute deviations line, by reweighted least squares."""
    weight = np.ones(len(x))
    slope = offset = 0.0
    for _ in range(20):
        slope, offset = np.polyfit(x, y, 1, w=np.sqrt(weight))
        weight = 1 / np.maximum(np.abs(y - offset - slope * x), 1e-6)
    return float(slope), float(offset)


def _joints(source: Clocked, field: str, names: tuple[str, ...]) -> Float64:
    """(N, J) columns of `field` by name."""
    labels = source.stream.labels or ()
    for name in names:
        if name not in labels:
            raise unknown_name(f"joint in stream {source.stream.name}", name, labels)
    return np.asarray(source.stream.values[field], float)[:, [labels.index(name) for name in names]]


class _Sampler:
    """Values of one stream at the ticks of another."""

    def __init__(self, source: Clocked, ticks: Ticks, control_dt: float) -> None:
        self._source = source
        self._at = ticks.time
        self._period = ticks.period
        time = source.time
        self._as_rows = len(time) == len(ticks.time) and bool(np.array_equal(time, ticks.time))
        after = np.searchsorted(time, self._at - _SAME_TIME_S, side="left").clip(0, len(time) - 1)
        before = np.searchsorted(time, self._at + _SAME_TIME_S, side="right").clip(1) - 1
        inside = (self._at >= time[0] - _SAME_TIME_S) & (self._at <= time[-1] + _SAME_TIME_S)
        self.valid: Mask = inside & (time[after] - time[before] <= max(LONGEST_STATE_GAP_S, 1.5 * control_dt))
        if self._as_rows:
            self.valid &= np.append(np.diff(time) < 1.5 * control_dt, True)

    def values(self, field: str) -> Float64:
        """(N, 3); NaN where the stream does not have the field."""
        found = self._source.stream.values.get(field)
        return np.full((len(self._source.time), 3), np.nan) if found is None else np.asarray(found, float)

    def smooth(self, values: Float64) -> Float64:
        """(K, C) of values (N, C), low-passed where there is room for it."""
        if self._as_rows:
            return values
        return at_times(self._at, self._source.time, low_pass(self._source.time, values, LOW_PASS_HZ))

    def mean(self, values: Float64) -> Float64:
        """(K, C) means over [tick, tick + period); the nearest earlier sample where there is none."""
        if self._as_rows:
            return values
        time = self._source.time
        first = np.searchsorted(time, self._at - 1e-9).clip(0, len(time) - 1)
        end = np.searchsorted(time, self._at + self._period - 1e-9).clip(0, len(time))
        total = np.vstack([np.zeros(values.shape[1]), np.cumsum(values, axis=0)])
        count = np.maximum(end - first, 1)
        out: Float64 = (total[np.minimum(first + count, len(time))] - total[first]) / count[:, None]
        return out

    def orientation(self) -> Float64 | None:
        """(K, 4) wxyz."""
        quat = self._source.stream.values.get("quat")
        if quat is None:
            return None
        quat = np.asarray(quat, float)
        quat = quat / np.linalg.norm(quat, axis=1, keepdims=True)
        return quat if self._as_rows else np.asarray(slerp(quat, self._source.time, self._at), float)


def low_pass(time: Float64, values: Float64, cutoff_hz: float) -> Float64:
    """Values (N, C) at `time` (N,) after a 4th-order Butterworth run forward and back, so without delay.

    Gaps are bridged linearly for the filter. Streams too slow or too short for the cutoff come back as they are.
    """
    period = float(np.median(np.diff(time)))
    if 0.5 / period <= 1.2 * cutoff_hz or len(time) < 30:
        return values
    grid = np.arange(time[0], time[-1] + 0.5 * period, period)
    sections = butter(4, cutoff_hz, fs=1 / period, output="sos")
    filtered = sosfiltfilt(sections, at_times(grid, time, values), axis=0)
    return at_times(time, grid, filtered)


def at_times(at: NDArray[np.floating], time: NDArray[np.floating], values: NDArray[np.floating]) -> Float64:
    """Values (N, C) at `time` (N,), interpolated at times (K,): (K, C)."""
    return np.stack([np.interp(at, time, column) for column in values.T], axis=1)
