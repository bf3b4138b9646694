"""What can be wrong with a control step of a real robot, one question a function. Every mask is (K,), True is bad."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.ingest.clock import Clocked
from asap_core.rollouts.ingest.foot_contact import feel_feet
from asap_core.rollouts.ingest.steps import ControlSteps
from asap_core.rotations import rotate

if TYPE_CHECKING:
    from asap_core.rollouts.ingest.quality import QualitySettings

Mask = NDArray[np.bool_]

GRAVITY = 9.81
_FALL_LASTS_S = 0.1
_BEFORE_FALL_S = 0.5
_LIFT_LASTS_S = 0.3
_IN_FLIGHT = 0.3
"""A specific force below this share of gravity is flight."""
_GLITCH = 3.0
"""A reading that jumps by more than this many times what the speed limit allows is none."""
_STILL = 0.05
"""rad/s; slower joints do not move."""
_WINDOW_S = 1.0


def at_ticks(steps: ControlSteps, state: Clocked, samples: Mask) -> Mask:
    """Rows during whose step, or at whose start, a marked sample (N,) of the stream was taken."""
    row = np.searchsorted(steps.time, state.time, side="right") - 1
    inside = (row >= 0) & (state.time < steps.time[-1] + steps.control_dt)
    out = np.zeros(len(steps.time), dtype=bool)
    out[row[inside & samples]] = True
    before = np.searchsorted(state.time, steps.time, side="right").clip(1) - 1
    return out | samples[before]


def flagged(steps: ControlSteps, state: Clocked, name: str, default: bool = False) -> Mask:
    """Rows whose samples carry the flag `name`; for a default of True, rows of which all samples do."""
    values = state.stream.values.get(name)
    if values is None:
        return np.full(len(steps.time), default)
    marked = np.asarray(values, dtype=bool)
    return ~at_ticks(steps, state, ~marked) if default else at_ticks(steps, state, marked)


def frozen(steps: ControlSteps, state: Clocked, longest_s: float) -> Mask:
    """All joints read exactly the same for longer than `longest_s` although a driver's noise never repeats."""
    pos = np.asarray(state.stream.values["joint_pos"], float)
    same = np.append(False, (np.diff(pos, axis=0) == 0).all(axis=1))
    return at_ticks(steps, state, _lasting(same, state.time, longest_s))


def glitches(state: Clocked, steps: ControlSteps, profile: RobotProfile) -> Mask:
    """(N,) samples whose reading jumps further than three times what the joint's speed limit allows, and back."""
    labels = state.stream.labels or ()
    known = [(labels.index(name), limit) for name, limit in zip(profile.joint_names, profile.joint_velocity_limit,
                                                              strict=True) if name in labels]  # fmt: skip
    if not known:
        return np.zeros(len(state.time), dtype=bool)
    pos = np.asarray(state.stream.values["joint_pos"], float)[:, [column for column, _ in known]]
    limit = np.array([speed for _, speed in known])
    step = np.diff(state.time)[:, None]
    period = float(np.median(step))
    jump = np.abs(np.diff(pos, axis=0)) > _GLITCH * limit * np.maximum(step, period)
    return np.append(False, jump.any(axis=1)) | np.append(jump.any(axis=1), False)


def tracking_lost(steps: ControlSteps, longest_s: float) -> Mask:
    """Gains at zero, or a command that stays the same while the joints move on: damping mode, or a dead policy."""
    lost = np.zeros(len(steps.time), dtype=bool)
    if steps.kp is not None:
        lost |= (steps.kp == 0).all(axis=1)
    moving = (np.abs(steps.joint_vel) > _STILL).any(axis=1)
    stays = np.append(False, (np.diff(steps.joint_target, axis=0) == 0).all(axis=1)) & moving
    return lost | _lasting(stays, steps.time, longest_s)


def motor_error(steps: ControlSteps, state: Clocked) -> Mask:
    """A motor reports error bits."""
    values = state.stream.values.get("motor_error")
    if values is None:
        return np.zeros(len(steps.time), dtype=bool)
    bits = np.asarray(values)
    return at_ticks(steps, state, _any(bits != 0))


def warmer_than(steps: ControlSteps, state: Clocked, limit_c: float) -> Mask:
    """A motor is at or above `limit_c` °C."""
    values = state.stream.values.get("temperature")
    if values is None:
        return np.zeros(len(steps.time), dtype=bool)
    heat = np.asarray(values, float)
    with np.errstate(invalid="ignore"):
        return at_ticks(steps, state, _any(heat >= limit_c))


def saturated(steps: ControlSteps, profile: RobotProfile, share: float) -> Mask:
    """(K, J) the measured torque, or the one that the PD law asks for, is at the motor's limit."""
    limit = np.array([profile.joint_torque_limit[profile.joint_index(name)] for name in steps.joint_names])
    with np.errstate(invalid="ignore"):
        out = np.abs(steps.joint_torque) > share * limit
    if steps.kp is not None and steps.kd is not None:
        asked = steps.kp * (steps.joint_target - steps.joint_pos) - steps.kd * steps.joint_vel
        out |= np.abs(asked) > limit
    return np.asarray(out)


def saturated_long(steps: ControlSteps, profile: RobotProfile, share: float, most: float) -> Mask:
    """More than `most` of the second around a row has the same joint's measured torque at its limit."""
    limit = np.array([profile.joint_torque_limit[profile.joint_index(name)] for name in steps.joint_names])
    with np.errstate(invalid="ignore"):
        at_limit = (np.abs(steps.joint_torque) > share * limit).astype(float)
    window = max(1, round(_WINDOW_S / steps.control_dt))
    around = uniform_filter1d(at_limit, window, axis=0, mode="constant")
    return np.asarray((around > most).any(axis=1))


def fall(
    steps: ControlSteps, imu: Clocked | None, root_pos: NDArray[np.floating] | None, settings: QualitySettings
) -> Mask:
    """From half a second before a fall to the end of the log."""
    fallen = np.zeros(len(steps.time), dtype=bool)
    if steps.root_quat is not None:
        up = rotate(steps.root_quat, np.array([[0.0, 0.0, 1.0]]))[:, 2]
        tilted = up < np.cos(np.radians(settings.fall_tilt_deg))
        fallen |= _lasting(tilted, steps.time, _FALL_LASTS_S)
    if root_pos is not None:
        height = root_pos[:, 2]
        with np.errstate(invalid="ignore"):
            fallen |= height < settings.fall_height * np.nanmedian(height)
    if imu is not None and "lin_acc" in imu.stream.values:
        force = np.linalg.norm(np.asarray(imu.stream.values["lin_acc"], float), axis=1)
        fallen |= at_ticks(steps, imu, force > settings.fall_acc)
    if not fallen.any():
        return fallen
    first = int(np.argmax(fallen)) - round(_BEFORE_FALL_S / steps.control_dt)
    return np.asarray(np.arange(len(fallen)) >= max(first, 0))


def lifted(steps: ControlSteps, profile: RobotProfile, least: float) -> Mask:
    """The legs bear less than `least` of the weight for 0.3 s, and it is no flight: the robot hangs."""
    if steps.root_quat is None or not np.isfinite(steps.joint_torque).any():
        return np.zeros(len(steps.time), dtype=bool)
    order = [steps.joint_names.index(name) for name in profile.joint_names]
    torque = np.nan_to_num(steps.joint_torque[:, order])
    load = feel_feet(profile, steps.time, steps.root_quat, steps.joint_pos[:, order], torque).load
    weight = GRAVITY * sum(link.mass for link in (*profile.links, *profile.fixed_links))
    unloaded = load.sum(axis=1) < least * weight
    if steps.root_lin_acc is not None:
        acc = np.linalg.norm(steps.root_lin_acc, axis=1)
        unloaded &= np.where(np.isfinite(acc), acc, GRAVITY) > _IN_FLIGHT * GRAVITY
    return _lasting(unloaded, steps.time, _LIFT_LASTS_S)


def _any(mask: Mask) -> Mask:
    """(N,) rows of (N, …) in which anything is set."""
    return np.asarray(mask.reshape(len(mask), -1).any(axis=1))


def _lasting(mask: Mask, time: NDArray[np.floating], longest_s: float) -> Mask:
    """The rows of those runs of a mask that last longer than `longest_s`."""
    out = np.zeros(len(mask), dtype=bool)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        if time[end - 1] - time[max(first - 1, 0)] > longest_s:
            out[first:end] = True
    return out
