"""How long after a command the motors act on it: the lag at which the drives' PD law explains the torques best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.rollouts.ingest.clock import Clocked

Float64 = NDArray[np.float64]

LONGEST_LAG_S = 0.04
LEAST_R2 = 0.5
_STEP_S = 5e-4
_SIDE_S = 6e-3
"""How far to each side of the best lag the two lines are fitted."""


@dataclass(frozen=True)
class Lag:
    """Command-to-state lag, or why it is not known."""

    lag_s: float | None
    r2: float
    """Of torque = kp (target − pos) − kd vel over all moving joints at the best lag; NaN where it was not tried."""
    r2_at_zero: float
    joint_r2: dict[str, float]
    """The same by joint, at the best lag."""
    refused: str | None
    """The reason where there is no lag."""


def command_lag(state: Clocked, command: Clocked) -> Lag:
    """Lag of the command's effect behind its stamp, 0 to 40 ms.

    Args:
        state: joint_pos, joint_vel, joint_torque. command: joint_target, kp, kd, on the same clock. Joints are matched
            by label.

    Returns:
        A targets is held from its stamp on, so the misfit grows in proportion to the distance from the true lag: it
        is read off where the lines on both sides meet, which is finer than a sample.
    """
    refusal = _missing(state, command)
    if refusal is not None:
        return _refused(refusal)
    joints = [name for name in state.stream.labels or () if name in (command.stream.labels or ())]
    if not joints:
        return _refused("state and command name no joint in common")
    fit = _Fit(state, command, joints)
    if not fit.has_rows:
        return _refused("state and command overlap by less than 1 s")
    lags = np.arange(0.0, LONGEST_LAG_S + _STEP_S / 2, _STEP_S)
    misfit = np.array([fit.misfit(lag).sum() for lag in lags])
    best = int(misfit.argmin())
    lag = _valley(lags, misfit, best)
    r2 = 1 - fit.misfit(lag).sum() / fit.spread.sum()
    zero = 1 - misfit[0] / fit.spread.sum()
    by_joint = dict(zip(joints, (1 - fit.misfit(lag) / fit.spread).tolist(), strict=True))
    reason = None
    if r2 < LEAST_R2:
        reason = f"the PD law explains {max(r2, 0):.2f} of the torques, expected >= {LEAST_R2}"
    elif best == len(lags) - 1:
        reason = f"the best lag is at the end of the search, {LONGEST_LAG_S * 1e3:.0f} ms or more"
    return Lag(None if reason else lag, float(r2), float(zero), by_joint, reason)


def _refused(reason: str) -> Lag:
    return Lag(None, float("nan"), float("nan"), {}, reason)


def _missing(state: Clocked, command: Clocked) -> str | None:
    lacking = [f"command {n}" for n in ("joint_target", "kp", "kd") if n not in command.stream.values]
    lacking += [f"state {n}" for n in ("joint_pos", "joint_vel", "joint_torque") if n not in state.stream.values]
    return f"the log has no {', no '.join(lacking)}" if lacking else None


class _Fit:
    """Misfit of the PD law by lag, in torque normalised by each joint's limits of variation."""

    def __init__(self, state: Clocked, command: Clocked, joints: list[str]) -> None:
        self._command_time = command.time
        inside = (state.time >= command.time[0] + LONGEST_LAG_S) & (state.time <= command.time[-1])
        self._time = state.time[inside]
        self.has_rows = len(self._time) > 1 and np.ptp(self._time) >= 1.0
        pos, vel, torque = (_columns(state, n, joints)[inside] for n in ("joint_pos", "joint_vel", "joint_torque"))
        target, kp, kd = (_columns(command, n, joints) for n in ("joint_target", "kp", "kd"))
        self._pos, self._vel, self._torque = pos, vel, torque
        self._target, self._kp, self._kd = target, kp, kd
        if "joint_vel_target" in command.stream.values:
            self._vel_target = _columns(command, "joint_vel_target", joints)
        else:
            self._vel_target = np.zeros_like(target)
        self._feedforward = np.zeros_like(target)
        if "joint_torque_target" in command.stream.values:
            self._feedforward = _columns(command, "joint_torque_target", joints)
        if self.has_rows:
            self._size = torque.std(axis=0) + 1e-9
            self.spread: Float64 = ((torque - torque.mean(axis=0)) ** 2).sum(axis=0) / self._size**2 + 1e-12

    def misfit(self, lag: float) -> Float64:
        """(J,) squared residuals of torques at a lag, in each joint's standard deviations."""
        held = np.searchsorted(self._command_time, self._time - lag + 1e-9, side="right") - 1
        demand = self._kp[held] * (self._target[held] - self._pos) + self._feedforward[held]
        demand += self._kd[held] * (self._vel_target[held] - self._vel)
        out: Float64 = (((demand - self._torque) / self._size) ** 2).sum(axis=0)
        return out


def _columns(source: Clocked, field: str, joints: list[str]) -> Float64:
    labels = source.stream.labels or ()
    return np.asarray(source.stream.values[field], float)[:, [labels.index(name) for name in joints]]


def _valley(lags: Float64, misfit: Float64, best: int) -> float:
    """Where the lines through both sides of the lowest misfit meet; its own lag at the ends of the search."""
    reach = round(_SIDE_S / _STEP_S)
    left = slice(max(0, best - reach), best)
    right = slice(best + 1, best + 1 + reach)
    if len(lags[left]) < 3 or len(lags[right]) < 3:
        return float(lags[best])
    falling, a = np.polyfit(lags[left], misfit[left], 1)
    rising, b = np.polyfit(lags[right], misfit[right], 1)
    if not rising > falling:
        return float(lags[best])
    return float(np.clip((a - b) / (rising - falling), lags[best] - _STEP_S * 4, lags[best] + _STEP_S * 4))
