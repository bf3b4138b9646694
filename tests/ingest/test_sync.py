"""The mocap's clock: known truth is recovered within what is reported, and what cannot be known is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from asap_core.errors import StageError
from asap_core.rollouts.ingest.clock import clocked
from asap_core.rollouts.ingest.generator import Take, TakeSettings, make_take
from asap_core.rollouts.ingest.sync import Sync, synchronise
from asap_core.rotations import quat_conj, quat_mul, quat_to_rotvec, rotvec_to_quat, slerp


def _synchronise(take: Take, **options: float) -> Sync:
    mocap = clocked(take.mocap)
    assert take.imu.source_time is not None
    return synchronise(
        take.imu.source_time, take.imu.values["ang_vel"], mocap.time, mocap.stream.values["quat"], **options
    )


def _error(take: Take, sync: Sync, at: float) -> float:
    truth = take.truth
    return float(sync.clock.to_mocap(np.array(at))) - (at + truth.offset_s + truth.drift * at)


def test_offsets_of_20_s_takes_are_right_and_the_uncertainty_honest() -> None:
    takes = [make_take(seed) for seed in range(12)]
    results = [_synchronise(take) for take in takes]
    start = np.array([_error(t, r, 0.0) for t, r in zip(takes, results, strict=True)])
    middle = np.array([_error(t, r, r.clock.reference_s) for t, r in zip(takes, results, strict=True)])
    assert np.sqrt((start**2).mean()) < 1e-3
    ratio = np.sqrt(((middle / [r.offset_sigma_s for r in results]) ** 2).mean())
    assert 0.5 < ratio < 1.6
    assert all(r.refused == () and not r.drift_fitted for r in results)


def test_mount_and_bias_are_found() -> None:
    take = make_take(3)
    result = _synchronise(take)
    away = quat_to_rotvec(quat_mul(quat_conj(result.mount_quat), take.truth.mount_quat))
    assert np.degrees(np.linalg.norm(away)) < 0.4
    np.testing.assert_allclose(result.gyro_bias, take.truth.gyro_bias, atol=2e-3)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_drift_is_fitted_on_a_take_of_75_s(seed: int) -> None:
    take = make_take(seed, TakeSettings(duration_s=75.0))
    result = _synchronise(take)
    assert result.drift_fitted
    assert abs(result.clock.drift - take.truth.drift) < 8e-6
    assert abs(result.clock.drift - take.truth.drift) < 3.5 * result.drift_sigma
    assert max(abs(_error(take, result, at)) for at in (0.0, 75.0)) < 0.5e-3


def test_a_known_drift_is_used_on_a_short_take() -> None:
    take = make_take(5, TakeSettings(max_drift=400e-6))
    without, known = _synchronise(take), _synchronise(take, known_drift=take.truth.drift)
    assert known.clock.drift == take.truth.drift
    assert abs(_error(take, known, 20.0)) < 0.4e-3 < abs(_error(take, without, 20.0))


def test_clocks_of_different_epochs_are_found() -> None:
    take = make_take(7)
    assert take.mocap.receive_time is not None
    moved = replace(take, mocap=replace(take.mocap, receive_time=take.mocap.receive_time + 1.7e9))
    result = _synchronise(moved)
    assert _error(moved, result, result.clock.reference_s) == pytest.approx(1.7e9, abs=1e-3)


def test_the_map_goes_both_ways() -> None:
    clock = _synchronise(make_take(1)).clock
    times = np.linspace(0.0, 20.0, 7)
    np.testing.assert_allclose(clock.to_imu(clock.to_mocap(times)), times, atol=1e-12)


def _turning(rates: np.ndarray, seconds: float = 20.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """IMU at 500 Hz and orientation at 120 Hz of a body that turns about z with `rates(t)` given at 12 kHz."""
    fine = np.arange(len(rates)) / 12000.0
    angle = np.append(0.0, np.cumsum((rates[1:] + rates[:-1]) / 2)) / 12000.0
    imu, mocap = np.arange(0.0, seconds, 1 / 500), np.arange(0.0, seconds, 1 / 120)
    gyro = np.zeros((len(imu), 3))
    gyro[:, 2] = np.interp(imu, fine, rates)
    turn = np.zeros((len(mocap), 3))
    turn[:, 2] = np.interp(mocap, fine, angle)
    return imu, gyro, mocap, rotvec_to_quat(turn)


def test_a_motion_that_repeats_is_refused() -> None:
    fine = np.arange(0.0, 20.0, 1 / 12000)
    result = synchronise(*_turning(1.0 + np.sin(2 * np.pi * fine)))
    assert any("repeats itself" in reason for reason in result.refused)


def test_uncertainty_is_honest_where_the_turning_is_slow() -> None:
    """The mocap's noise changes faster than what it measures, and must not pass for motion."""
    misses = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        imu, mocap = np.arange(0.0, 8.0, 1 / 500), np.arange(0.0, 8.0, 1 / 120)
        rates, phases = rng.uniform(1.0, 4.0, (3, 2)), rng.uniform(0.0, 2 * np.pi, (3, 2))
        gyro = (np.sin(imu[:, None, None] * rates + phases)).sum(axis=2) / 4
        result = synchronise(*_measured(imu, gyro, mocap, rng))
        assert result.refused == ()
        misses.append(result.clock.offset_s / result.offset_sigma_s)
    assert 0.4 < np.sqrt(np.square(misses).mean()) < 1.6


def test_speeds_that_repeat_where_the_turning_does_not_are_no_reason_to_refuse() -> None:
    """Turning about one axis after another, equally fast each time: speeds say nothing, directions all."""
    imu, mocap = np.arange(0.0, 12.0, 1 / 500), np.arange(0.0, 12.0, 1 / 120)
    axis = (imu // 1.0).astype(int)
    order = np.array([0, 1, 2, 0, 2, 1, 1, 0, 2, 2, 1, 0])
    gyro = np.sin(np.pi * (imu % 1.0))[:, None] ** 2 * np.eye(3)[order[axis]]
    result = synchronise(*_measured(imu, gyro, mocap, np.random.default_rng(0)))
    assert result.refused == ()
    assert 0.0 < result.ambiguity < 0.1
    assert result.clock.offset_s == pytest.approx(0.0, abs=1.5e-3)


def _measured(time: np.ndarray, rates: np.ndarray, at: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """IMU at `time` and mocap at `at`, with noise, of a body that turns with `rates` (N, 3) rad/s in its own frame."""
    quats = [np.array([1.0, 0.0, 0.0, 0.0])]
    for step, rate in zip(np.diff(time), (rates[1:] + rates[:-1]) / 2, strict=True):
        quats.append(quat_mul(quats[-1], rotvec_to_quat(rate * step)))
    wobble = rotvec_to_quat(rng.normal(0.0, np.radians(0.11), (len(at), 3)))
    return time, rates + rng.normal(0.0, 5e-3, rates.shape), at, quat_mul(slerp(np.stack(quats), time, at), wobble)


def test_a_still_body_is_refused() -> None:
    rng = np.random.default_rng(0)
    imu, gyro, mocap, quat = _turning(np.zeros(240000))
    noisy = quat_mul(quat, rotvec_to_quat(rng.normal(0.0, 2e-3, (len(mocap), 3))))
    result = synchronise(imu, gyro + rng.normal(0.0, 5e-3, gyro.shape), mocap, noisy)
    assert any("rad/s rms" in reason for reason in result.refused)
    assert any("of the gyro" in reason for reason in result.refused)


def test_another_body_is_refused() -> None:
    take, other = make_take(0), make_take(1)
    result = _synchronise(replace(take, mocap=other.mocap))
    assert any("of the gyro" in reason for reason in result.refused)


def test_two_seconds_are_too_few() -> None:
    imu, gyro, mocap, quat = _turning(np.ones(24000), seconds=2.0)
    with pytest.raises(StageError, match="less than 3 s"):
        synchronise(imu, gyro, mocap, quat)
