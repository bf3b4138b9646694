"""Base velocity from mocap, alone and with the IMU."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from asap_core.robots import get_profile
from asap_core.rollouts.ingest.base_velocity import BaseMotion, mocap_base, savgol_velocity
from asap_core.rollouts.ingest.fused_velocity import ImuSamples, fused_base
from asap_core.rollouts.ingest.walking_twin import Walk, walk
from asap_core.rotations import Array, quat_mul, rotate, rotvec_to_quat, slerp

_LEVER = np.array([0.05, -0.02, 0.1])
_MOUNT = rotvec_to_quat(np.array([0.1, -0.2, 0.4]))
_BIAS = np.full(3, 0.01)
_HZ = 120.0
_LEVEL = np.array([1.0, 0.0, 0.0, 0.0])


def test_savgol_is_exact_on_a_parabola() -> None:
    time = np.arange(0.0, 2.0, 1 / _HZ)
    pos = np.stack([3 * time, 0.5 * time**2, 1 - time + 2 * time**2], axis=1)
    speed = savgol_velocity(time, pos)
    known = np.isfinite(speed).all(axis=1)
    assert np.flatnonzero(~known).tolist() == [*range(7), *range(len(time) - 7, len(time))]
    wanted = np.stack([np.full_like(time, 3.0), time, 4 * time - 1], axis=1)
    np.testing.assert_allclose(speed[known], wanted[known], atol=1e-9)


def test_savgol_has_the_noise_of_its_window() -> None:
    """15 frames at 120 Hz: sigma · rate / sqrt(280), 2.15 mm/s for 0.3 mm."""
    rng = np.random.default_rng(0)
    time = np.arange(0.0, 200.0, 1 / _HZ)
    speed = savgol_velocity(time, rng.normal(0.0, 3e-4, (len(time), 3)))
    assert np.nanstd(speed) == pytest.approx(3e-4 * _HZ / np.sqrt(280), rel=0.03)


def test_velocity_near_a_gap_is_unknown() -> None:
    time = np.arange(0.0, 4.0, 1 / _HZ)
    kept = (time < 2.0) | (time > 2.2)
    pos = np.stack([time, time * 0, time * 0], axis=1)
    speed = savgol_velocity(time[kept], pos[kept])
    unknown = time[kept][~np.isfinite(speed[:, 0])]
    middle = unknown[(unknown > 1.0) & (unknown < 3.0)]
    assert middle.min() == pytest.approx(2.0 - 7 / _HZ, abs=1 / _HZ)
    assert middle.max() == pytest.approx(2.2 + 7 / _HZ, abs=1 / _HZ)


def test_single_missing_frames_are_bridged() -> None:
    time = np.delete(np.arange(0.0, 2.0, 1 / _HZ), [100, 150])
    speed = savgol_velocity(time, np.stack([2 * time] * 3, axis=1))
    np.testing.assert_allclose(speed[10:-10], 2.0, atol=1e-9)


def test_the_lever_is_taken_out() -> None:
    """A body that only turns about its base, 2 rad/s: the marker moves, the base does not."""
    time = np.arange(0.0, 3.0, 1 / _HZ)
    quat = rotvec_to_quat(np.stack([time * 0, time * 0, 2 * time], axis=1))
    marker = rotate(quat, np.tile(_LEVER, (len(time), 1)))
    at = np.arange(0.5, 2.5, 0.02)
    base = mocap_base(time, marker, quat, at, _LEVEL, _LEVER)
    np.testing.assert_allclose(base.lin_vel, 0.0, atol=1e-9)
    np.testing.assert_allclose(base.ang_vel, np.tile([0.0, 0.0, 2.0], (len(at), 1)), atol=2e-4)
    assert base.valid.all()


@cache
def _walk() -> Walk:
    return walk(get_profile("g1_23dof"), 8.0, seed=1)


def _frames(rng: np.random.Generator, w: Walk, noise: float = 3e-4) -> tuple[Array, Array, Array]:
    time = np.arange(0.1, w.time[-1] - 0.1, 1 / _HZ)
    quat = slerp(w.root_quat, w.time, time)
    pos = np.stack([np.interp(time, w.time, column) for column in w.root_pos.T], axis=1)
    pos = pos + rotate(quat, np.tile(_LEVER, (len(time), 1))) + rng.normal(0.0, noise, pos.shape)
    wobble = rotvec_to_quat(rng.normal(0.0, np.radians(0.11), pos.shape))
    return time, pos, quat_mul(quat_mul(quat, np.tile(_MOUNT, (len(time), 1))), wobble)


def _imu(rng: np.random.Generator, w: Walk) -> ImuSamples:
    gyro = w.ang_vel + rng.normal(0.0, 5e-3, w.ang_vel.shape) + _BIAS
    return ImuSamples(w.time, gyro, w.lin_acc + rng.normal(0.0, 0.1, gyro.shape) + [0.05, -0.03, 0.04])


def _rms_mm_s(base: BaseMotion, w: Walk, at: Array) -> float:
    truth = np.stack([np.interp(at, w.time, column) for column in w.root_lin_vel.T], axis=1)
    return float(np.sqrt(np.nanmean((base.lin_vel - truth) ** 2)) * 1e3)


def test_the_walk_has_footfalls() -> None:
    w = _walk()
    assert 0.02 < (w.foot_force.sum(axis=1) < 1.0).mean() < 0.3
    assert np.abs(w.lin_acc[:, 2]).max() > 30.0
    assert w.root_pos[-1, 0] > 2.0
    assert (w.root_pos[500:, 2] > 0.55).all()


def test_mocap_with_the_imu_follows_footfalls_to_6_mm_s() -> None:
    w, rng = _walk(), np.random.default_rng(0)
    at = np.arange(0.5, 7.5, 0.02)
    frames = _frames(rng, w)
    fused = fused_base(*frames, _imu(rng, w), at, _MOUNT, _BIAS)
    alone = mocap_base(*frames, at, _MOUNT, _LEVER)
    assert fused.valid.all()
    assert fused.kind == "mocap+imu"
    assert _rms_mm_s(fused, w, at) < 6.0
    assert _rms_mm_s(alone, w, at) > 15.0
    np.testing.assert_allclose(fused.lever, _LEVER, atol=8e-3)


def test_without_noise_the_fused_path_is_the_true_one() -> None:
    """A body in free fall that turns: the accelerometer reads nothing, position and speed are known in closed form."""
    time, frames = np.arange(0.0, 3.0, 2e-3), np.arange(0.1, 2.9, 1 / _HZ)
    at = np.arange(0.2, 2.8, 0.02)
    yaw_rate, roll, roll_rate = 2 * np.cos(2 * time), 0.8 * np.sin(3 * time), 2.4 * np.cos(3 * time)
    rates = np.stack([roll_rate, yaw_rate * np.sin(roll), yaw_rate * np.cos(roll)], axis=1)
    imu = ImuSamples(time, rates, np.zeros((len(time), 3)))
    z, x = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    yaw = rotvec_to_quat(np.sin(2 * frames)[:, None] * z)
    quat = quat_mul(yaw, rotvec_to_quat(0.8 * np.sin(3 * frames)[:, None] * x))
    fall = np.array([0.0, 0.0, -9.81])
    pos = frames[:, None] * [1.0, 0.5, 2.0] + 0.5 * frames[:, None] ** 2 * fall
    base = fused_base(frames, pos + rotate(quat, np.tile(_LEVER, (len(frames), 1))), quat, imu, at, _LEVEL, np.zeros(3))
    np.testing.assert_allclose(base.lin_vel, [1.0, 0.5, 2.0] + at[:, None] * fall, atol=2e-3)
    np.testing.assert_allclose(base.pos, at[:, None] * [1.0, 0.5, 2.0] + 0.5 * at[:, None] ** 2 * fall, atol=1e-3)
    np.testing.assert_allclose(base.lever, _LEVER, atol=1e-3)


def test_a_long_gap_is_not_bridged() -> None:
    w, rng = _walk(), np.random.default_rng(0)
    time, pos, quat = _frames(rng, w)
    kept = (time < 3.0) | (time > 3.3)
    at = np.arange(0.501, 7.5, 0.02)
    base = fused_base(time[kept], pos[kept], quat[kept], _imu(rng, w), at, _MOUNT, _BIAS)
    left = time[kept]
    np.testing.assert_array_equal(base.valid, (at <= left[left < 3.1].max()) | (at >= left[left > 3.1].min()))
    assert np.isnan(base.lin_vel[~base.valid]).all()
    assert np.isfinite(base.lin_vel[base.valid]).all()


def test_an_imu_away_from_the_origin_is_accounted_for() -> None:
    w, rng = _walk(), np.random.default_rng(0)
    offset = np.array([0.045, 0.0, -0.083])
    rate = np.gradient(w.ang_vel, 2e-3, axis=0)
    there = w.lin_acc + np.cross(rate, offset) + np.cross(w.ang_vel, np.cross(w.ang_vel, offset))
    imu = ImuSamples(w.time, w.ang_vel, there)
    at = np.arange(0.5, 7.5, 0.02)
    base = fused_base(*_frames(rng, w), imu, at, _MOUNT, np.zeros(3), offset)
    assert _rms_mm_s(base, w, at) < 6.0
    np.testing.assert_allclose(base.lever, _LEVER, atol=8e-3)
