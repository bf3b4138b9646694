"""Units of angles, rates, accelerations and lengths, the up axis, and the frame of stored velocities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from asap_core.evidence import Decision, decide
from asap_core.rollouts.ingest.understanding.rates import WINDOW, Slope, rate_slope, turning, windows
from asap_core.rotations import Array, rotate

ANGLE_UNITS: Mapping[str, float] = {"rad": 1.0, "deg": float(np.radians(1.0))}
GYRO_UNITS: Mapping[str, float] = {"rad/s": 1.0, "deg/s": float(np.radians(1.0))}
ACCEL_UNITS: Mapping[str, float] = {"m/s2": 1.0, "g": 9.80665}
LENGTH_UNITS: Mapping[str, float] = {"m": 1.0, "cm": 0.01, "mm": 0.001}
UP_AXES = ("x", "y", "z")
FRAMES = ("world", "body")

_LARGEST_ANGLE = 3.2
"""rad; no joint of a humanoid goes further."""
_HUMANOID_WIDTHS = (23, 27, 29, 35)
_LEAST_RANGE_DEG = 5.0
"""A robot that stands or moves has some joint this far from 0."""
_SLOPE_R2 = 0.7
_SLOPE_MARGIN = 1.0
"""ln."""
_STILL = 0.05
"""Of the size of the positions: axes that spread less are all steady."""
_HEIGHT = (0.4, 1.2)
"""m, a root's median height."""


def angle_unit(question: str, option: str, joint_pos: Array) -> Decision:
    """Degrees where an angle is beyond any joint's limit in rad; rad where degrees would mean no pose at all.

    Joints of machines that are no humanoid may turn further, so theirs are then left open.
    """
    size = float(np.nanpercentile(np.abs(joint_pos), 99.9))
    beyond = 0.0 if joint_pos.shape[1] in _HUMANOID_WIDTHS else 0.8
    scores = {
        "rad": 1.0 if size <= _LARGEST_ANGLE else beyond,
        "deg": min(size / _LEAST_RANGE_DEG, 1.0) if size <= np.degrees(_LARGEST_ANGLE) else 0.0,
    }
    how = f"largest angle {size:.3g}; share that a humanoid's joints allow"
    return decide(question, scores, how, option, 0.3, 0.5)


def target_unit(question: str, option: str, target: Array, joint_pos: Array) -> Decision:
    """Unit of joint targets (N, J) by their size over that of the positions (M, J) in rad that follow them.

    A target may lie beyond any joint's limit, so its size alone tells less than that of a position.
    """
    ratio = float(np.sqrt(np.nanmean(target**2)) / max(float(np.sqrt(np.nanmean(joint_pos**2))), 1e-6))
    scores = {unit: -abs(float(np.log(max(ratio, 1e-9) * factor))) for unit, factor in ANGLE_UNITS.items()}
    how = f"targets over positions {ratio:.3g}"
    return replace(decide(question, scores, how, option, _SLOPE_MARGIN), unit="ln")


def velocity_unit(question: str, option: str, slope: Slope, angle: str) -> Decision:
    """Unit of joint velocities beside angles in `angle`, by their slope over what positions and stamps show."""
    if not slope.r2 >= _SLOPE_R2:
        how = f"velocities explain {0 if np.isnan(slope.r2) else slope.r2:.2f} of the positions' change"
        return Decision(question, None, 0.0, None, float("inf"), how, option)
    expected = {unit: ANGLE_UNITS[angle] / ANGLE_UNITS[unit] for unit in ANGLE_UNITS}
    scores = {unit: -abs(np.log(abs(slope.slope) / value)) for unit, value in expected.items()}
    how = f"velocity over change of position {slope.slope:.3g}, R² {slope.r2:.2f}"
    return replace(decide(question, scores, how, option, _SLOPE_MARGIN, -0.7), unit="ln")


def gyro_unit(question: str, option: str, time: Array, quat: Array | None, ang_vel: Array) -> Decision:
    """By the turning of the IMU's own quaternions (wxyz), else by size."""
    if quat is not None:
        slope = rate_slope(*windows(time, turning(quat), ang_vel))
        if slope.r2 >= _SLOPE_R2:
            scores = {unit: -abs(np.log(abs(slope.slope) * value)) for unit, value in GYRO_UNITS.items()}
            how = f"gyro over turning of the quaternions {slope.slope:.3g}, R² {slope.r2:.2f}"
            return replace(decide(question, scores, how, option, _SLOPE_MARGIN, -0.7), unit="ln")
    size = float(np.sqrt(np.nanmean(ang_vel**2) * 3))
    scores = {"rad/s": 1.0 if size < 3.0 else 0.0, "deg/s": 1.0 if size > 1.0 else 0.0}
    return decide(question, scores, f"{size:.3g} rms; share of what robots turn at", option, 0.5)


def accel_unit(question: str, option: str, lin_acc: Array) -> Decision:
    """By the median size, which is one g for what stands or walks."""
    size = float(np.nanmedian(np.linalg.norm(lin_acc, axis=1)))
    scores = {unit: -abs(np.log(max(size, 1e-9) * value / 9.81)) for unit, value in ACCEL_UNITS.items()}
    return replace(decide(question, scores, f"median {size:.3g}", option, 0.5, -0.2), unit="ln")


def length_and_up(
    option_unit: str, option_axis: str, name: str, pos: Array, up: str | None = None
) -> tuple[Decision, Decision]:
    """Unit and up axis of root positions (N, 3) or markers' mean (N, 3): the steady axis at a root's height is up.

    Args:
        up: the up axis where it is known otherwise; the unit is then judged by it alone.
    """
    median, spread = np.nanmedian(pos, axis=0), np.nanstd(pos, axis=0)
    steady = 1 - spread / max(float(spread.max()), _STILL * float(np.abs(median).max()), 1e-12)
    units, axes = dict.fromkeys(LENGTH_UNITS, 0.0), dict.fromkeys(UP_AXES, 0.0)
    for unit, metres in LENGTH_UNITS.items():
        for k, axis in enumerate(UP_AXES):
            if up in (None, axis) and _HEIGHT[0] <= median[k] * metres <= _HEIGHT[1]:
                units[unit] = max(units[unit], 0.5 + 0.5 * float(steady[k]))
                axes[axis] = max(axes[axis], 0.5 + 0.5 * float(steady[k]))
    where = ", ".join(f"{v:.3g}" for v in median)
    how = f"median ({where}); steadiness of an axis at 0.4 to 1.2 m"
    return (
        decide(f"length unit of {name}", units, how, option_unit, 0.2, 0.5),
        decide(f"up axis of {name}", axes, how, option_axis, 0.2, 0.85),
    )


def up_by_gravity(question: str, option: str, gravity: Array) -> Decision:
    """By the direction (3,) of an IMU's mean specific force in the mocap's world."""
    scores = {axis: float(gravity[k] / np.linalg.norm(gravity)) for k, axis in enumerate(UP_AXES)}
    return decide(question, scores, "share of the accelerometer along the axis", option, 0.3, 0.9)


def twist_frame(question: str, option: str, time: Array, pos: Array, quat: Array, lin_vel: Array) -> Decision:
    """Which frame's velocities (N, 3) m/s integrate to the positions (N, 3) m; quat wxyz."""
    residual = {}
    for frame in FRAMES:
        world = lin_vel if frame == "world" else rotate(quat, lin_vel)
        change, integral = windows(time, pos, world)
        if len(change) < WINDOW or not (change**2).sum() > 0:
            return Decision(question, None, 0.0, None, float("inf"), "nothing moves", option)
        share = float(((change - integral) ** 2).sum() / (change**2).sum())
        residual[frame] = -0.5 * np.log(max(share, 1e-12))
    how = "ln of the positions' change over what velocities leave of it"
    return decide(question, residual, how, option, np.log(1.5), np.log(1.5))
