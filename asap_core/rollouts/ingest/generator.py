"""Takes with a known truth: a robot's base that walks, an IMU on it, and a mocap system with a clock of its own.

Tests and `asap bench ingest` measure the clock and the base velocity on these.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

from asap_core.rollouts.ingest.streams import Log, Stream
from asap_core.rotations import Array, quat_mul, rotate, rotate_inverse, rotvec_to_quat

GRAVITY = 9.81
_GRID_HZ = 1000.0
_ANGLE_RATES = np.array([0.45, 0.45, 0.5])
"""rad/s rms of roll, pitch and yaw rates."""
_SPEEDS = np.array([0.3, 0.15, 0.1])
"""m/s rms."""
_MARGIN_S = 3.0


@dataclass(frozen=True)
class TakeSettings:
    """What a take is like; the defaults are those of the yardstick."""

    duration_s: float = 20.0
    imu_hz: float = 500.0
    mocap_hz: float = 120.0
    pos_noise: float = 3e-4
    """m, each axis."""
    rot_noise: float = float(np.radians(0.11))
    """rad, each axis."""
    gyro_noise: float = 5e-3
    """rad/s, each sample."""
    accel_noise: float = 0.1
    """m/s², each sample."""
    gyro_bias: float = 0.02
    """rad/s, standard deviation of the bias of an axis."""
    accel_bias: float = 0.05
    """m/s²."""
    drop_share: float = 0.02
    gap_s: float = 0.4
    max_offset_s: float = 1.0
    max_drift: float = 60e-6
    arrival_delay_s: float = 2e-3
    """Mean of the exponential delay of a mocap packet."""
    impacts: bool = False
    """Footfalls: the speed jumps within 10 ms, twice a second."""


@dataclass(frozen=True)
class Truth:
    """What the take was made from, at the IMU's samples. mocap time = IMU time + offset + drift · (IMU time)."""

    offset_s: float
    drift: float
    mount_quat: Array
    """(4,) wxyz, from the mocap body's frame to the IMU's."""
    gyro_bias: Array
    accel_bias: Array
    lever: Array
    """(3,) m, mocap body's origin from the IMU, in the IMU's frame."""
    pos: Array
    """(N, 3) m of the IMU, world."""
    quat: Array
    """(N, 4) wxyz of the IMU."""
    lin_vel: Array
    """(N, 3) m/s of the IMU, world."""


@dataclass(frozen=True)
class Take:
    """What the sensors saw."""

    imu: Stream
    """Stamped by the IMU's clock, from 0 on."""
    mocap: Stream
    """Numbered frames, stamped on arrival by the mocap's clock."""
    truth: Truth

    @property
    def log(self) -> Log:
        """Both streams as a log."""
        return Log(Path("take"), "generated", "0" * 64, (self.imu, self.mocap))


def make_take(seed: int, settings: TakeSettings | None = None) -> Take:
    """A take, the same for the same seed and settings."""
    s = settings or TakeSettings()
    rng = np.random.default_rng(seed)
    motion = _Motion(rng, s)
    offset = float(rng.uniform(-s.max_offset_s, s.max_offset_s))
    drift = float(rng.uniform(-s.max_drift, s.max_drift))
    mount = rotvec_to_quat(rng.normal(0.0, 0.5, 3))
    lever = rng.normal(0.0, 0.05, 3)
    gyro_bias, accel_bias = rng.normal(0.0, s.gyro_bias, 3), rng.normal(0.0, s.accel_bias, 3)
    time = np.arange(0.0, s.duration_s, 1 / s.imu_hz)
    pos, quat, lin_vel = motion.pose(time)
    acc = rotate_inverse(quat, motion.lin_acc(time) + np.array([0.0, 0.0, GRAVITY]))
    imu = Stream(
        "imu",
        "imu",
        {
            "ang_vel": motion.body_rates(time) + gyro_bias + rng.normal(0.0, s.gyro_noise, (len(time), 3)),
            "lin_acc": acc + accel_bias + rng.normal(0.0, s.accel_noise, (len(time), 3)),
        },
        source_time=time,
    )
    truth = Truth(offset, drift, mount, gyro_bias, accel_bias, lever, pos, quat, lin_vel)
    return Take(imu, _mocap(rng, s, motion, truth), truth)


def _mocap(rng: np.random.Generator, s: TakeSettings, motion: _Motion, truth: Truth) -> Stream:
    frame = np.arange(int(s.duration_s * s.mocap_hz))
    taken = frame / s.mocap_hz
    kept = rng.random(len(frame)) > s.drop_share
    start = int(rng.integers(len(frame) // 3, len(frame) // 2))
    kept[start : start + int(s.gap_s * s.mocap_hz)] = False
    pos, quat, _ = motion.pose(taken)
    body = quat_mul(quat, truth.mount_quat)
    values = {
        "pos": pos + rotate(quat, truth.lever) + rng.normal(0.0, s.pos_noise, pos.shape),
        "quat": quat_mul(body, rotvec_to_quat(rng.normal(0.0, s.rot_noise, pos.shape))),
    }
    stamp = taken + truth.offset_s + truth.drift * taken
    arrival = stamp + rng.exponential(s.arrival_delay_s, len(frame))
    arrival = np.maximum.accumulate(arrival)
    return Stream(
        "mocap/pelvis",
        "pose",
        {name: value[kept] for name, value in values.items()},
        receive_time=arrival[kept],
        sequence=(frame + 1000)[kept],
    )


class _Motion:
    """Roll, pitch, yaw and position as smooth functions of time, with exact derivatives on a 1 kHz grid."""

    def __init__(self, rng: np.random.Generator, s: TakeSettings) -> None:
        count = int((s.duration_s + 2 * _MARGIN_S) * _GRID_HZ)
        self._time = np.arange(count) / _GRID_HZ - _MARGIN_S
        pulses = _footfalls(rng, count) if s.impacts else np.zeros(count)
        rates = [_wander(rng, count, rms) for rms in _ANGLE_RATES]
        rates[1] = rates[1] + _integral(pulses - pulses.mean()) * 0.4
        speeds = [_wander(rng, count, rms) for rms in _SPEEDS]
        jumps = _integral(pulses - pulses.mean()) * np.array([[-0.3], [0.05], [0.8]])
        self._angles = _spline(self._time, [_integral(rate) for rate in rates])
        self._rates = _spline(self._time, rates)
        self._speeds = _spline(self._time, list(np.stack(speeds) + jumps))
        self._pos = _spline(self._time, [_integral(x) for x in np.stack(speeds) + jumps])

    def pose(self, at: Array) -> tuple[Array, Array, Array]:
        """Position (N, 3), orientation (N, 4) wxyz and world velocity (N, 3)."""
        roll, pitch, yaw = self._angles(at).T
        turns = [_about(axis, angle) for axis, angle in ((2, yaw), (1, pitch), (0, roll))]
        quat = quat_mul(quat_mul(turns[0], turns[1]), turns[2])
        return self._pos(at) + np.array([0.0, 0.0, 0.75]), quat, self._speeds(at)

    def lin_acc(self, at: Array) -> Array:
        """(N, 3) m/s², world."""
        out: Array = self._speeds(at, 1)
        return out

    def body_rates(self, at: Array) -> Array:
        """(N, 3) rad/s in the body's frame, from the rates of yaw, pitch, roll turned in this order."""
        roll, pitch, _ = self._angles(at).T
        d_roll, d_pitch, d_yaw = self._rates(at).T
        return np.stack(
            [
                d_roll - d_yaw * np.sin(pitch),
                d_pitch * np.cos(roll) + d_yaw * np.sin(roll) * np.cos(pitch),
                -d_pitch * np.sin(roll) + d_yaw * np.cos(roll) * np.cos(pitch),
            ],
            axis=1,
        )


def _about(axis: int, angle: Array) -> Array:
    out = np.zeros((len(angle), 4))
    out[:, 0], out[:, 1 + axis] = np.cos(angle / 2), np.sin(angle / 2)
    return out


def _spline(time: Array, columns: list[Array]) -> CubicSpline:
    return CubicSpline(time, np.stack(columns, axis=1))


def _wander(rng: np.random.Generator, count: int, rms: float) -> Array:
    """A random periodic signal whose spectrum is flat from 0.3 to 2 Hz, falls with f⁻¹·⁵ and ends at 8 Hz."""
    freq = np.fft.rfftfreq(count, 1 / _GRID_HZ)
    size = np.where((freq > 0.3) & (freq < 8.0), np.minimum(1.0, (np.maximum(freq, 1e-9) / 2.0) ** -1.5), 0.0)
    out = np.fft.irfft(size * (rng.normal(size=len(freq)) + 1j * rng.normal(size=len(freq))), count)
    scaled: Array = out * (rms / out.std())
    return scaled


def _footfalls(rng: np.random.Generator, count: int) -> Array:
    """Pulses (1/s) of unit area, 10 ms wide, about twice a second."""
    out = np.zeros(count)
    time = np.arange(count) / _GRID_HZ
    at = 0.3
    while at < time[-1]:
        out += rng.uniform(0.5, 1.0) * np.exp(-0.5 * ((time - at) / 2.5e-3) ** 2) / (2.5e-3 * np.sqrt(2 * np.pi))
        at += rng.uniform(0.4, 0.6)
    return out


def _integral(values: Array) -> Array:
    """The periodic integral without mean of a periodic signal without mean."""
    freq = np.fft.rfftfreq(len(values), 1 / _GRID_HZ)
    spectrum = np.fft.rfft(values)
    spectrum[0] = 0.0
    spectrum[1:] /= 2j * np.pi * freq[1:]
    out: Array = np.fft.irfft(spectrum, len(values))
    return out
