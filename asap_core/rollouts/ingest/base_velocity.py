"""Velocity of the robot's base from mocap: Savitzky–Golay on positions, or joined with the IMU's accelerometer.

The first needs the mocap alone and smears a footfall over its window; the second follows footfalls, since between two
frames the accelerometer carries the speed. Velocities are in the world, at the origin of the base.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.signal import savgol_coeffs

from asap_core.rotations import Array, quat_conj, quat_mul, rotate, slerp

Kind = Literal["mocap", "mocap+imu", "estimated", "simulated"]

WINDOW_S = 0.12
ORDER = 2
LONGEST_GAP_S = 0.1


@dataclass(frozen=True)
class BaseMotion:
    """The base at K times; NaN where it is not known."""

    kind: Kind
    """`mocap` and `mocap+imu` are measured; `estimated` comes from the robot's own sensors, and the two never mix in
    one set."""
    pos: Array
    """(K, 3) m, world."""
    quat: Array
    """(K, 4) wxyz."""
    lin_vel: Array
    """(K, 3) m/s, world, at the base's origin."""
    ang_vel: Array
    """(K, 3) rad/s, world."""
    valid: NDArray[np.bool_]
    """(K,)."""
    lever: Array
    """(3,) m, the mocap body's origin from the base, in the base's frame."""


def savgol_velocity(time: Array, pos: Array, window_s: float = WINDOW_S, order: int = ORDER) -> Array:
    """Derivative (M, 3) in m/s of positions (M, 3) at frame times (M,).

    Frames are put on their regular grid and single missing ones interpolated; NaN within half a window of a longer gap
    and of the ends.
    """
    period = float(np.median(np.diff(time)))
    number = np.round((time - time[0]) / period).astype(int)
    grid = np.arange(number[-1] + 1)
    regular = np.stack([np.interp(grid, number, column) for column in pos.T], axis=1)
    half = max(round(window_s / period / 2), order)
    weights = savgol_coeffs(2 * half + 1, order, deriv=1, delta=period, use="dot")
    out = np.full(regular.shape, np.nan)
    if len(grid) > 2 * half:
        for axis in range(3):
            out[half:-half, axis] = np.convolve(regular[:, axis], weights[::-1], mode="valid")
    for start in np.flatnonzero(np.diff(number) > 2):
        out[max(number[start] - half + 1, 0) : number[start + 1] + half] = np.nan
    return out[number]


def mocap_base(
    time: Array,
    pos: Array,
    quat: Array,
    at: Array,
    mount_quat: Array,
    lever: Array,
    window_s: float = WINDOW_S,
) -> BaseMotion:
    """The base at times (K,) from mocap alone.

    Args:
        time, pos, quat: (M,) s on the clock of `at`, (M, 3) m, (M, 4) wxyz of the mocap body.
        mount_quat: (4,) from the mocap body's frame to the base's, as `Sync.mount_quat`.
        lever: (3,) m, the mocap body's origin from the base, in the base's frame.
    """
    base = quat_mul(quat, np.broadcast_to(quat_conj(mount_quat), quat.shape))
    place = pos - rotate(base, np.broadcast_to(lever, pos.shape))
    speed = savgol_velocity(time, place, window_s)
    velocity = np.stack([np.interp(at, time, column) for column in speed.T], axis=1)
    valid = np.isfinite(velocity).all(axis=1) & inside(time, at)
    turns = slerp(base, time, at)
    step = float(np.median(np.diff(time)))
    before, after = slerp(base, time, at - step), slerp(base, time, at + step)
    spin = 2 * quat_mul(after, quat_conj(before))[:, 1:] / (2 * step)
    where = np.stack([np.interp(at, time, column) for column in place.T], axis=1)
    return BaseMotion("mocap", where, turns, np.where(valid[:, None], velocity, np.nan), spin, valid, lever)


def inside(time: Array, at: Array) -> NDArray[np.bool_]:
    """Which of the times (K,) lie between two frames no more than 100 ms apart."""
    after = np.searchsorted(time, at).clip(1, len(time) - 1)
    near = (time[after] - time[after - 1]) <= LONGEST_GAP_S
    return np.asarray(near & (at >= time[0]) & (at <= time[-1]), bool)
