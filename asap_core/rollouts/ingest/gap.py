"""How a robot's joints followed their commands, joint by joint: the gap as a log shows it, before any simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.rollouts.ingest.clock import Clocked
from asap_core.rollouts.ingest.lag import Lag
from asap_core.rollouts.ingest.steps import ControlSteps

Float64 = NDArray[np.float64]

LONGEST_FOLLOW_S = 0.3
_FINER = 10
"""Lags are searched in tenths of a control step."""
_LEAST_MOTION = 0.01
"""rad of standard deviation below which a joint's lag and gain mean nothing."""


@dataclass(frozen=True)
class JointGap:
    """One joint over the usable control steps. What the log cannot tell is NaN."""

    joint: str
    lag_ms: float
    """By which the angle follows its target, by correlation."""
    gain: float
    """Slope of the angle on the target at that lag; 1 follows fully."""
    rmse_rad: float
    """Of the angle against the target of the same time."""
    pd_r2: float
    """Share of the measured torque's variance that the PD law explains."""
    torque_residual_nm: float
    """rms of measured torque minus the PD law's."""
    saturated: float
    """Share of the steps at the torque limit."""
    temperature_max_c: float

    FIELDS = ("lag_ms", "gain", "rmse_rad", "pd_r2", "torque_residual_nm", "saturated", "temperature_max_c")


def gap_of_logs(reports: Sequence[Mapping[str, Any]]) -> tuple[JointGap, ...]:
    """The table over several logs, from their reports: means weighted by usable seconds, the highest temperature."""
    rows: dict[str, list[tuple[float, Mapping[str, Any]]]] = {}
    for report in reports:
        for gap in report.get("gaps") or ():
            rows.setdefault(str(gap["joint"]), []).append((float(report.get("usable_s") or 0.0), gap))
    return tuple(
        JointGap(joint, **{name: _joined(name, [(w, gap.get(name)) for w, gap in found]) for name in JointGap.FIELDS})
        for joint, found in rows.items()
    )


def _joined(name: str, values: list[tuple[float, float | None]]) -> float:
    known = [(weight, float(value)) for weight, value in values if value is not None]
    if not known:
        return float("nan")
    if name == "temperature_max_c":
        return max(value for _, value in known)
    total = sum(weight for weight, _ in known)
    return sum(w * v for w, v in known) / total if total else float(np.mean([v for _, v in known]))


def joint_gaps(
    steps: ControlSteps, usable: NDArray[np.bool_], state: Clocked, lag: Lag, saturated: NDArray[np.bool_] | None
) -> tuple[JointGap, ...]:
    """The table, one row a joint of `steps`.

    Args:
        usable: (K,) rows to look at; all of them if none is usable.
        state: for temperatures.
        lag: command-to-state lag with the PD law's fit by joint.
        saturated: (K, J) at the torque limit; None where the limits are unknown.
    """
    rows = usable if usable.any() else np.ones(len(usable), bool)
    count = len(steps.joint_names)
    full = np.full(count, np.nan) if saturated is None else saturated[rows].mean(axis=0)
    residual = _torque_residual(steps, lag.lag_s or 0.0)[rows]
    heat = _temperatures(steps, state)
    gaps = []
    for j, name in enumerate(steps.joint_names):
        target, pos = steps.joint_target[:, j], steps.joint_pos[:, j]
        delay, gain = follow(target, pos, rows, steps.control_dt)
        known = residual[:, j][np.isfinite(residual[:, j])]
        gaps.append(
            JointGap(
                joint=name,
                lag_ms=1e3 * delay,
                gain=gain,
                rmse_rad=float(np.sqrt(((pos - target)[rows] ** 2).mean())),
                pd_r2=lag.joint_r2.get(name, float("nan")),
                torque_residual_nm=float(np.sqrt((known**2).mean())) if len(known) else float("nan"),
                saturated=float(full[j]),
                temperature_max_c=heat.get(name, float("nan")),
            )
        )
    return tuple(gaps)


def follow(target: Float64, pos: Float64, rows: NDArray[np.bool_], control_dt: float) -> tuple[float, float]:
    """Lag in s and gain of `pos` behind `target` (K,), over `rows`; NaN for a joint that hardly moves."""
    if target[rows].std() < _LEAST_MOTION or pos[rows].std() < _LEAST_MOTION / 10:
        return float("nan"), float("nan")
    time = np.arange(len(target)) * control_dt
    most = round(LONGEST_FOLLOW_S / control_dt)
    kept = rows.copy()
    kept[:most] = False
    if kept.sum() < 3:
        kept = rows
    lags = np.arange(most * _FINER + 1) * control_dt / _FINER
    best, lag, gain = -np.inf, 0.0, 0.0
    centred = pos[kept] - pos[kept].mean()
    for candidate in lags:
        shifted = np.interp(time[kept] - candidate, time, target)
        shifted = shifted - shifted.mean()
        power = float(shifted @ shifted)
        if power == 0:
            continue
        fit = float(shifted @ centred)
        if fit > 0 and fit**2 / power > best:
            best, lag, gain = fit**2 / power, float(candidate), fit / power
    return lag, gain


def _torque_residual(steps: ControlSteps, lag_s: float) -> Float64:
    """(K, J) measured torque minus kp (target − angle) − kd speed with the target that had arrived; NaN if unknown."""
    if steps.kp is None or steps.kd is None:
        return np.full(steps.joint_pos.shape, np.nan)
    late = round(lag_s / steps.control_dt)
    held = np.maximum(np.arange(len(steps.time)) - late, 0)
    law = steps.kp[held] * (steps.joint_target[held] - steps.joint_pos) - steps.kd[held] * steps.joint_vel
    return np.asarray(steps.joint_torque - law)


def _temperatures(steps: ControlSteps, state: Clocked) -> dict[str, float]:
    values, labels = state.stream.values.get("temperature"), state.stream.labels
    if values is None or labels is None:
        return {}
    heat = np.asarray(values, float)
    hottest = heat.reshape(len(heat), len(labels), -1).max(axis=(0, 2))
    return {name: float(hottest[labels.index(name)]) for name in steps.joint_names if name in labels}
