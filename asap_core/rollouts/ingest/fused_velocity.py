"""Base velocity from mocap and IMU together: the smoothest path through the frames that the accelerometer allows.

Unknown are position and velocity of the IMU at every frame, the lever to the mocap body and the accelerometer's bias.
Between frames the accelerometer, turned into the world, carries both; its error counts as white noise, and more where
it jumps between two samples, as in a footfall. This is the Kalman smoother of that model, solved as one sparse least
squares; the axes share one matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import butter, sosfiltfilt
from scipy.sparse import coo_matrix, csc_matrix
from scipy.sparse.linalg import splu

from asap_core.rollouts.ingest.base_velocity import BaseMotion, inside
from asap_core.rotations import (
    Array,
    quat_conj,
    quat_mul,
    quat_to_matrix,
    rotate,
    rotvec_to_quat,
    slerp,
)

GRAVITY = np.array([0.0, 0.0, 9.81])
ACCEL_NOISE = 0.15
"""m/s² of one sample: noise, and what wrong attitude lets in."""
_LEVER_PRIOR_M = 0.2
_BIAS_PRIOR = 0.3
"""m/s²."""
_DRIFT_HZ = 0.5
"""Below, the mocap's attitude counts; above, the gyro's."""


@dataclass(frozen=True)
class ImuSamples:
    """N samples on the clock that the mocap's frames have been brought to."""

    time: Array
    """(N,) s."""
    ang_vel: Array
    """(N, 3) rad/s."""
    lin_acc: Array
    """(N, 3) m/s², specific force."""


def fused_base(
    time: Array,
    pos: Array,
    quat: Array,
    imu: ImuSamples,
    at: Array,
    mount_quat: Array,
    gyro_bias: Array,
    imu_offset: Array | None = None,
) -> BaseMotion:
    """The base at times (K,).

    Args:
        time, pos, quat: (M,) s on the IMU's clock, (M, 3) m, (M, 4) wxyz of the mocap body; z up.
        mount_quat, gyro_bias: as `Sync` gives them.
        imu_offset: (3,) m of the IMU in the base's frame, whose axes are the IMU's; the base's origin if left out.

    Returns:
        kind `mocap+imu`; valid where frames are no more than 100 ms apart and the IMU covers them.
    """
    kept = (time >= imu.time[0]) & (time <= imu.time[-1])
    time, pos, quat = time[kept], pos[kept], quat[kept]
    rates = imu.ang_vel - gyro_bias
    attitude = _attitude(time, quat_mul(quat, np.broadcast_to(quat_conj(mount_quat), quat.shape)), imu.time, rates)
    carried = _Carried(imu, attitude, time)
    path = _solve(time, pos, carried)
    frame = np.searchsorted(time, at, side="right").clip(1, len(time)) - 1
    since = at - time[frame]
    speed = carried.speed_at(at, path.bias) - carried.speed_at(time, path.bias)[frame]
    velocity = path.velocity[frame] + speed
    place = path.place[frame] + 0.5 * (path.velocity[frame] + velocity) * since[:, None]
    turns = slerp(attitude, imu.time, at)
    spin = rotate(turns, np.stack([np.interp(at, imu.time, column) for column in rates.T], axis=1))
    offset = np.zeros(3) if imu_offset is None else np.asarray(imu_offset, float)
    arm = rotate(turns, np.broadcast_to(-offset, place.shape))
    valid = inside(time, at)
    lin_vel = np.where(valid[:, None], velocity + np.cross(spin, arm), np.nan)
    return BaseMotion("mocap+imu", place + arm, turns, lin_vel, spin, valid, path.lever + offset)


def _attitude(time: Array, quat: Array, imu_time: Array, rates: Array) -> Array:
    """IMU orientations (N, 4): the gyro's turning, drawn slowly to the mocap's attitude (M, 4)."""
    steps = np.diff(imu_time)[:, None]
    turned = _running_product(np.vstack([[1.0, 0, 0, 0], rotvec_to_quat((rates[1:] + rates[:-1]) / 2 * steps)]))
    away = quat_mul(quat, quat_conj(slerp(turned, imu_time, time)))
    away *= np.where(np.cumprod(np.append(1.0, np.sign((away[1:] * away[:-1]).sum(axis=1)))) < 0, -1.0, 1.0)[:, None]
    period = float(np.median(np.diff(time)))
    grid = np.arange(time[0], time[-1] + period, period)
    even = np.stack([np.interp(grid, time, column) for column in away.T], axis=1)
    sections = butter(2, _DRIFT_HZ, fs=1 / period, output="sos")
    pad = min(len(grid) - 1, round(1.0 / period))
    slow = sosfiltfilt(sections, even, axis=0, padtype="even", padlen=pad)
    slow = np.stack([np.interp(imu_time, grid, column) for column in slow.T], axis=1)
    return quat_mul(slow / np.linalg.norm(slow, axis=1, keepdims=True), turned)


def _running_product(quats: Array) -> Array:
    """Products (N, 4) of the first, the first two, … quaternions, in log N passes."""
    out = quats.copy()
    reach = 1
    while reach < len(out):
        out[reach:] = quat_mul(out[:-reach], out[reach:])
        reach *= 2
    return out / np.linalg.norm(out, axis=1, keepdims=True)


class _Carried:
    """What the accelerometer adds to speed and place, as running integrals; a bias enters linearly."""

    def __init__(self, imu: ImuSamples, attitude: Array, frames: Array) -> None:
        self._time = imu.time
        self.frames = frames
        turn = quat_to_matrix(attitude)
        acc = np.einsum("nij,nj->ni", turn, imu.lin_acc) - GRAVITY
        steps = np.diff(imu.time)
        self._speed, self._place = self._integrals(acc, steps)
        self._bias_speed, self._bias_place = self._integrals(-turn.reshape(-1, 9), steps)
        self.turn = quat_to_matrix(slerp(attitude, imu.time, frames))
        jump = (np.diff(acc, axis=0) ** 2).mean(axis=1) * steps**2 / 12
        noise = ACCEL_NOISE**2 * steps**2
        self._noise = np.append(0.0, np.cumsum(jump + noise))

    @staticmethod
    def _integrals(values: Array, steps: Array) -> tuple[Array, Array]:
        zero = np.zeros((1, values.shape[1]))
        speed = np.vstack([zero, np.cumsum((values[1:] + values[:-1]) / 2 * steps[:, None], axis=0)])
        within = speed[:-1] * steps[:, None] + (2 * values[:-1] + values[1:]) / 6 * steps[:, None] ** 2
        return speed, np.vstack([zero, np.cumsum(within, axis=0)])

    def _at(self, at: Array, values: Array) -> Array:
        return np.stack([np.interp(at, self._time, column) for column in values.T], axis=1)

    def speed_at(self, at: Array, bias: Array) -> Array:
        """(K, 3) m/s since the first sample."""
        return self._at(at, self._speed) + self._at(at, self._bias_speed).reshape(-1, 3, 3) @ bias

    def between_frames(self) -> tuple[Array, Array, Array, Array, Array]:
        """Per step between frames: change of speed (M−1, 3) and its bias matrix (M−1, 3, 3), the same of the place
        beyond start speed · time, and the variance of the speed's change (M−1,)."""
        steps = np.diff(self.frames)[:, None]
        speed, place = self._at(self.frames, self._speed), self._at(self.frames, self._place)
        bias_speed, bias_place = self._at(self.frames, self._bias_speed), self._at(self.frames, self._bias_place)
        variance = np.diff(np.interp(self.frames, self._time, self._noise))
        return (
            np.diff(speed, axis=0),
            np.diff(bias_speed, axis=0).reshape(-1, 3, 3),
            np.diff(place, axis=0) - speed[:-1] * steps,
            (np.diff(bias_place, axis=0) - bias_speed[:-1] * steps).reshape(-1, 3, 3),
            np.maximum(variance, 1e-10),
        )


@dataclass(frozen=True)
class _Path:
    place: Array
    velocity: Array
    lever: Array
    bias: Array


def _solve(time: Array, pos: Array, carried: _Carried) -> _Path:
    """Least squares over place and velocity (M, 3) of the IMU at the frames, lever and bias."""
    count, steps = len(time), np.diff(time)
    d_speed, bias_speed, d_place, bias_place, variance = carried.between_frames()
    half = steps[:, None] / 2
    rows = _rows(count, steps)
    # Unknowns of an axis: M places, then M velocities. Rows: frames; changes of speed; changes of place less half of
    # the speeds', whose error is independent of theirs.
    noise = np.concatenate([np.full(count, _frame_noise(time, pos) ** 2), variance, variance * steps**2 / 12])
    known = np.concatenate([pos, d_speed, d_place - half * d_speed])
    shared = np.zeros((len(noise), 3, 6))
    shared[:count, :, :3] = carried.turn
    shared[count : 2 * count - 1, :, 3:] = -bias_speed
    shared[2 * count - 1 :, :, 3:] = -(bias_place - half[:, :, None] * bias_speed)
    weighted = csc_matrix(rows.T.multiply(1 / noise))
    factor = splu(csc_matrix(weighted @ rows))
    right = np.concatenate([known[:, :, None], shared], axis=2).reshape(len(noise), -1)
    solved = factor.solve(weighted @ right)
    left = (right - rows @ solved).reshape(len(noise), 3, 7)
    prior = np.diag([1 / _LEVER_PRIOR_M**2] * 3 + [1 / _BIAS_PRIOR**2] * 3)
    gram = np.einsum("nap,n,naq->pq", shared, 1 / noise, left[:, :, 1:]) + prior
    theta = np.linalg.solve(gram, np.einsum("nap,n,na->p", shared, 1 / noise, left[:, :, 0]))
    columns = solved.reshape(2 * count, 3, 7)
    state = columns[:, :, 0] - columns[:, :, 1:] @ theta
    return _Path(state[:count], state[count:], theta[:3], theta[3:])


def _rows(count: int, steps: Array) -> csc_matrix:
    """The matrix (3 M − 2, 2 M) that all axes share."""
    k = np.arange(count - 1)
    one, zero = np.ones(count - 1), count
    blocks = [
        (np.arange(count), np.arange(count), np.ones(count)),
        (zero + k, count + k, -one),
        (zero + k, count + k + 1, one),
        (2 * count - 1 + k, k, -one),
        (2 * count - 1 + k, k + 1, one),
        (2 * count - 1 + k, count + k, -steps / 2),
        (2 * count - 1 + k, count + k + 1, -steps / 2),
    ]
    row, column, value = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return csc_matrix(coo_matrix((value, (row, column)), shape=(3 * count - 2, 2 * count)))


def _frame_noise(time: Array, pos: Array) -> float:
    """Standard deviation in m of the frames' noise, from third differences of regular frames; at least 0.05 mm."""
    steps = np.diff(time)
    even = steps < 1.5 * np.median(steps)
    regular = even[:-2] & even[1:-1] & even[2:]
    third = np.diff(pos, n=3, axis=0)[regular]
    return max(1.4826 * float(np.median(np.abs(third))) / np.sqrt(20.0), 5e-5) if len(third) else 3e-4
