"""Tracking errors against trajectories whose errors are known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.metrics import failure_frame, tracking_errors


def _reference(frames: int = 20, links: int = 27) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(frames, links, 3))


def test_constant_offset_is_global_error_only() -> None:
    ref = _reference()
    errors = tracking_errors(ref + np.array([0.03, 0.0, 0.04]), ref)
    assert errors.E_g_mpjpe == pytest.approx(50.0)
    assert errors.E_mpjpe == pytest.approx(0.0, abs=1e-9)
    assert errors.E_vel == pytest.approx(0.0, abs=1e-9)
    assert errors.success == 1.0
    assert errors.frames == 20


def test_constant_drift_is_velocity_error() -> None:
    ref = _reference()
    drift = 0.002 * np.arange(20)[:, None, None] * np.array([1.0, 0.0, 0.0])
    errors = tracking_errors(ref + drift, ref)
    assert errors.E_vel == pytest.approx(2.0)
    assert errors.E_vel_root == pytest.approx(2.0)
    assert errors.E_acc == pytest.approx(0.0, abs=1e-9)
    assert errors.E_g_mpjpe == pytest.approx(2.0 * 9.5)


def test_quadratic_drift_is_acceleration_error() -> None:
    ref = _reference()
    drift = 0.001 * (np.arange(20) ** 2)[:, None, None] * np.array([0.0, 1.0, 0.0])
    assert tracking_errors(ref + drift, ref).E_acc == pytest.approx(2.0)


def test_one_link_counts_by_its_share_and_the_root_moves_the_local_error() -> None:
    ref = _reference()
    one = ref.copy()
    one[:, 5, 2] += 0.027
    assert tracking_errors(one, ref).E_g_mpjpe == pytest.approx(1.0)
    root = ref.copy()
    root[:, 0, 0] += 0.027
    assert tracking_errors(root, ref).E_mpjpe == pytest.approx(27.0 * 26 / 27)


def test_failure_ends_the_count() -> None:
    ref = _reference()
    pos = ref.copy()
    pos[12:, :, 0] += 0.51
    assert failure_frame(pos, ref) == 12
    errors = tracking_errors(pos, ref)
    assert (errors.success, errors.frames, errors.E_g_mpjpe) == (0.0, 12, 0.0)


def test_mean_distance_decides_not_any_link() -> None:
    ref = _reference()
    pos = ref.copy()
    pos[:, 3, 0] += 5.0
    assert tracking_errors(pos, ref).success == 1.0


def test_dead_frames_are_a_failure() -> None:
    ref = _reference()
    alive = np.arange(20) < 15
    errors = tracking_errors(ref, ref, alive)
    assert (errors.success, errors.frames) == (0.0, 15)


def test_not_finite_is_a_failure() -> None:
    ref = _reference()
    pos = ref.copy()
    pos[7] = np.nan
    assert tracking_errors(pos, ref).frames == 7


def test_refuses_unlike_shapes_and_a_dead_start() -> None:
    ref = _reference()
    with pytest.raises(ValueError, match="must both be"):
        tracking_errors(ref[:-1], ref)
    with pytest.raises(ValueError, match="first frame"):
        tracking_errors(ref + 1.0, ref)
