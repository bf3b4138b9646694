"""Generated takes agree with themselves, and the clock's yardstick is met on a hundred of them."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.rollouts.ingest.clock_bench import offset_figures
from asap_core.rollouts.ingest.generator import GRAVITY, TakeSettings, make_take
from asap_core.rotations import quat_conj, quat_mul, quat_to_rotvec, rotate, rotate_inverse

_SILENT = TakeSettings(
    duration_s=8.0, pos_noise=0, rot_noise=0, gyro_noise=0, accel_noise=0, arrival_delay_s=0, impacts=True
)


def test_the_same_seed_gives_the_same_take() -> None:
    first, second, other = make_take(4), make_take(4), make_take(5)
    np.testing.assert_array_equal(first.mocap.values["pos"], second.mocap.values["pos"])
    assert first.truth.offset_s != other.truth.offset_s


def test_the_imu_measures_the_motion() -> None:
    take = make_take(0, _SILENT)
    truth, time = take.truth, take.imu.source_time
    assert time is not None
    turned = quat_to_rotvec(quat_mul(quat_conj(truth.quat[:-2]), truth.quat[2:])) / (time[2] - time[0])
    np.testing.assert_allclose(take.imu.values["ang_vel"][1:-1] - truth.gyro_bias, turned, atol=0.02)
    speed = np.gradient(truth.pos, time, axis=0)
    np.testing.assert_allclose(truth.lin_vel[1:-1], speed[1:-1], atol=0.02)
    force = rotate_inverse(truth.quat, np.gradient(truth.lin_vel, time, axis=0) + np.array([0, 0, GRAVITY]))
    away = take.imu.values["lin_acc"][1:-1] - truth.accel_bias - force[1:-1]
    # The finest footfall is 2.5 ms wide, so differences over 4 ms round its peak.
    assert np.sqrt((away**2).mean()) < 0.1 * np.abs(force).max()
    assert np.median(np.abs(away)) < 0.05


def test_the_mocap_sees_the_imu_through_lever_mount_and_clock() -> None:
    take = make_take(1, _SILENT)
    truth, imu_time, stamps = take.truth, take.imu.source_time, take.mocap.receive_time
    assert imu_time is not None
    assert stamps is not None
    at = (stamps - truth.offset_s) / (1 + truth.drift)
    rows = np.round(at * 500).astype(int)
    exact = np.abs(at * 500 - rows) < 1e-3
    assert exact.sum() > 30
    rows = rows[exact]
    place = truth.pos[rows] + rotate(truth.quat[rows], np.tile(truth.lever, (len(rows), 1)))
    np.testing.assert_allclose(take.mocap.values["pos"][exact], place, atol=1e-5)
    body = quat_mul(truth.quat[rows], np.tile(truth.mount_quat, (len(rows), 1)))
    np.testing.assert_allclose(np.abs((take.mocap.values["quat"][exact] * body).sum(axis=1)), 1.0, atol=1e-9)


def test_takes_have_drops_and_a_gap() -> None:
    take = make_take(2)
    assert take.mocap.sequence is not None
    steps = np.diff(take.mocap.sequence)
    assert 0.4 * 120 <= steps.max() <= 0.4 * 120 + 4
    assert 0.005 < (steps == 2).mean() < 0.04


@pytest.mark.slow
def test_offset_yardstick_on_a_hundred_takes() -> None:
    figures = offset_figures(20.0, 100)
    assert figures["offset_rms_ms"] <= 1.0
    assert figures["start_rms_ms"] <= 1.0
    assert 0.7 < figures["sigma_ratio"] < 1.4
    assert figures["refused"] == 0.0
