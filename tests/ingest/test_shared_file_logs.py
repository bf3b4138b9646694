"""The real recordings among the shared data open with the shapes and rates that are known of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from asap_core.rollouts.ingest.readers import read_log
from asap_core.rollouts.ingest.streams import Stream


@pytest.fixture
def samples(shared_dir: Path) -> Path:
    return shared_dir / "data" / "logs"


def rate(stream: Stream) -> float:
    clock = stream.receive_time if stream.receive_time is not None else stream.source_time
    assert clock is not None
    return float(1 / np.median(np.diff(clock)))


@pytest.mark.parametrize("take", ["chirp_sweep", "step_response"])
def test_sage_arm(samples: Path, take: str) -> None:
    log = read_log(samples / "sage_so101" / take)
    (state,) = log.of_kind("joint_state")
    assert state.values["joint_pos"].shape == (6000, 6)
    assert rate(state) == pytest.approx(1 / 20059, rel=1e-3, abs=0)
    steps = np.diff(np.unique(np.round(state.values["joint_pos"][:, 0], 9)))
    assert steps.min() == pytest.approx(0.001534, abs=1e-6)


def test_dfki_pendulum(samples: Path) -> None:
    stem = samples / "dfki_pendulum" / "results_control_method_"
    (state,) = read_log(Path(f"{stem}pd_system_identification_data_measured.csv")).of_kind("joint_state")
    assert (state.num_samples, round(rate(state))) == (1170, 300)
    (command,) = read_log(Path(f"{stem}pd_system_identification_data_desired.csv")).of_kind("joint_command")
    assert command.values["joint_target"].shape == (1170, 1)
    (state,) = read_log(Path(f"{stem}sac_data_measured.csv")).of_kind("joint_state")
    assert (state.num_samples, round(rate(state))) == (8000, 200)
    assert state.receive_time is not None
    gaps = np.diff(state.receive_time)
    np.testing.assert_allclose(gaps[gaps > 0.0125], 0.022, atol=1e-3)


@pytest.mark.parametrize(
    ("file", "kind", "field", "shape"),
    [
        ("encoders", "joint_state", "joint_pos", (20001, 14)),
        ("angular_velocity", "imu", "ang_vel", (20001, 3)),
        ("linear_acceleration", "imu", "lin_acc", (20001, 3)),
        ("gt_orientation", "odometry", "quat", (20001, 4)),
        ("gt_position", "odometry", "pos", (20418, 3)),
        ("gt_velocity", "odometry", "lin_vel", (20418, 3)),
        ("contact", "signal", "signal", (20001, 2)),
        ("X_init", "signal", "signal", (20001, 7, 7)),
    ],
)
def test_cassie_timeseries(samples: Path, file: str, kind: str, field: str, shape: tuple[int, ...]) -> None:
    (stream,) = read_log(samples / "cassie_inekf" / f"{file}.mat").streams
    assert stream.kind == kind
    assert stream.values[field].shape == shape
    assert rate(stream) == pytest.approx(2000)


def test_cassie_position_velocity_and_orientation_belong_together(samples: Path) -> None:
    folder = samples / "cassie_inekf"
    (pos,), (vel,) = (read_log(folder / f"gt_{name}.mat").streams for name in ("position", "velocity"))
    speed = np.gradient(pos.values["pos"], 1 / 2000, axis=0)
    from_second = slice(2, None)  # the first position of the file is zero
    assert np.sqrt(np.mean((speed - vel.values["lin_vel"])[from_second] ** 2)) < 0.04
    (turn,), (gyro,), (acc,) = (
        read_log(folder / f"{name}.mat").streams
        for name in ("gt_orientation", "angular_velocity", "linear_acceleration")
    )
    assert gyro.num_samples == acc.num_samples == turn.num_samples
    assert np.linalg.norm(acc.values["lin_acc"].mean(axis=0)) == pytest.approx(9.81, abs=0.5)


def test_human_takes_agree_in_c3d_and_vicon_csv(samples: Path) -> None:
    (c3d,), (csv,), (trc,) = (
        read_log(samples / "pyomeca" / name).streams
        for name in ("markers_analogs.c3d", "markers_vicon.csv", "markers.trc")
    )
    assert c3d.values["marker_pos"].shape == csv.values["marker_pos"].shape == (580, 51, 3)
    assert rate(c3d) == pytest.approx(100)
    assert 0.75 * np.isnan(c3d.values["marker_pos"]).mean() == pytest.approx(0.0077, abs=1e-4)
    np.testing.assert_array_equal(np.isnan(c3d.values["marker_pos"]), np.isnan(csv.values["marker_pos"]))
    assert c3d.labels == csv.labels
    np.testing.assert_allclose(c3d.values["marker_pos"], csv.values["marker_pos"], rtol=0, atol=5.1e-3)
    assert trc.values["marker_pos"].shape == (93, 51, 3)
    assert c3d.declared["up_axis"] == "z"


def test_synthetic_npz_in_asap_layout(samples: Path) -> None:
    log = read_log(samples / "synthetic_g1" / "motion_0_asap_layout.npz")
    (state,) = log.of_kind("joint_state")
    assert state.values["joint_pos"].shape == (500, 29)
    assert rate(state) == pytest.approx(50, rel=5e-3)
    assert {stream.kind for stream in log.streams} == {"joint_state", "joint_command", "imu", "odometry"}
