"""A log that the writer wrote says what was given, to this reader and to the MCAP library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

from asap_core.rollouts.ingest.bench import write_plain_log
from asap_core.rollouts.ingest.lowstate_log import MocapMessage, write_g1_log
from asap_core.rollouts.ingest.readers import read_log

N, M, K, J = 50, 5, 12, 29


def inputs() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    quat = rng.normal(size=(N, 4))
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    return {
        "time": 1e9 + 0.002 * np.arange(N),
        "joint_pos": rng.normal(size=(N, J)),
        "joint_vel": rng.normal(size=(N, J)),
        "joint_torque": rng.normal(size=(N, J)),
        "imu_quat": quat,
        "ang_vel": rng.normal(size=(N, 3)),
        "lin_acc": rng.normal(size=(N, 3)),
        "command_time": 1e9 + 0.02 * np.arange(M),
        "joint_target": rng.normal(size=(M, J)),
        "kp": rng.uniform(10, 100, J),
        "kd": rng.uniform(1, 3, (M, J)),
        "mocap_time": 1e9 + np.arange(K) / 120,
        "mocap_pos": rng.normal(size=(K, 3)),
        "mocap_quat": quat[:K],
        "mocap_receive_time": 1e9 + np.arange(K) / 120 + 0.035,
    }


@pytest.mark.parametrize("message", ["geometry_msgs/msg/PoseStamped", "mocap4r2_msgs/msg/RigidBodies"])
def test_everything_given_comes_back(tmp_path: Path, message: MocapMessage) -> None:
    given = inputs()
    temperature = np.arange(N * J).reshape(N, J) % 90
    remote = np.zeros((N, 40), np.uint8)
    remote[30:, 2:4] = [1 << 5, 1 << 1]
    extra = {"temperature": temperature, "motor_error": np.eye(N, J, dtype=int), "wireless_remote": remote}
    write_g1_log(
        tmp_path / "log.mcap", **given, **extra, mocap_message=message, mocap_frame=100 + np.arange(K), mode_machine=4
    )
    log = read_log(tmp_path / "log.mcap")
    state, imu, command, mocap = log.streams
    assert log.notes == ()
    f4 = np.float32
    for field in ("joint_pos", "joint_vel", "joint_torque"):
        np.testing.assert_array_equal(state.values[field], np.pad(given[field].astype(f4), ((0, 0), (0, 35 - J))))
    np.testing.assert_array_equal(state.values["temperature"][:, :J], np.stack([temperature] * 2, axis=-1))
    np.testing.assert_array_equal(state.values["motor_error"][:, :J], np.eye(N, J))
    np.testing.assert_array_equal(state.values["mode_machine"], np.full(N, 4))
    np.testing.assert_array_equal(state.values["emergency_stop"], np.arange(N) >= 30)
    assert state.values["crc_ok"].all()
    np.testing.assert_array_equal(state.sequence, 2 * np.arange(N))
    np.testing.assert_allclose(state.receive_time, given["time"], atol=1e-6)
    for field, name in (("quat", "imu_quat"), ("ang_vel", "ang_vel"), ("lin_acc", "lin_acc")):
        np.testing.assert_array_equal(imu.values[field], given[name].astype(f4))
    np.testing.assert_array_equal(command.values["joint_target"][:, :J], given["joint_target"].astype(f4))
    np.testing.assert_array_equal(command.values["kp"][:, :J], np.tile(given["kp"].astype(f4), (M, 1)))
    np.testing.assert_array_equal(command.values["kd"][:, :J], given["kd"].astype(f4))
    assert command.values["crc_ok"].all()
    np.testing.assert_array_equal(mocap.values["pos"], given["mocap_pos"])
    np.testing.assert_array_equal(mocap.values["quat"], np.roll(given["mocap_quat"], -1, axis=1))
    np.testing.assert_allclose(mocap.source_time, given["mocap_time"], atol=1e-6)
    np.testing.assert_allclose(mocap.receive_time, given["mocap_receive_time"], atol=1e-6)
    if "Rigid" in message:
        assert mocap.name == "/rigid_bodies/pelvis"
        np.testing.assert_array_equal(mocap.sequence, 100 + np.arange(K))


def test_roll_pitch_yaw_is_that_of_the_quaternion(tmp_path: Path) -> None:
    from scipy.spatial.transform import Rotation

    given = inputs()
    write_g1_log(tmp_path / "log.mcap", **given)
    imu = read_log(tmp_path / "log.mcap").streams[1]
    yaw_pitch_roll = Rotation.from_quat(given["imu_quat"], scalar_first=True).as_euler("ZYX")
    np.testing.assert_allclose(imu.values["rpy"], yaw_pitch_roll[:, ::-1], atol=2e-6)


def test_the_mcap_library_reads_it_in_the_order_of_arrival(tmp_path: Path) -> None:
    write_g1_log(tmp_path / "log.mcap", **inputs())
    with open(tmp_path / "log.mcap", "rb") as stream:
        reader = make_reader(stream, validate_crcs=True, decoder_factories=[DecoderFactory()])
        read = [
            (channel.topic, message.log_time, decoded)
            for _, channel, message, decoded in reader.iter_decoded_messages()
        ]
    assert [when for _, when, _ in read] == sorted(when for _, when, _ in read)
    assert {topic for topic, _, _ in read} == {"/lowstate", "/lowcmd", "/mocap/pelvis/pose"}
    assert len(read) == N + M + K
    state = next(decoded for topic, _, decoded in read if topic == "/lowstate")
    assert len(state.motor_state) == 35
    assert state.motor_state[0].vol == 48.0


def test_a_simulators_log_has_no_checksums(tmp_path: Path) -> None:
    write_plain_log(tmp_path / "log.mcap", 0.2, with_crc=False)
    log = read_log(tmp_path / "log.mcap")
    assert {stream.name: stream.num_samples for stream in log.streams} == {
        "/lowstate": 100,
        "/lowstate.imu_state": 100,
        "/lowcmd": 10,
        "/mocap/pelvis/pose": 24,
    }
    assert not any("crc_ok" in stream.values for stream in log.streams)


def test_long_logs_carry_right_checksums_in_every_slab(tmp_path: Path) -> None:
    write_plain_log(tmp_path / "log.mcap", 10.0, with_others=False)
    state = read_log(tmp_path / "log.mcap").streams[0]
    assert state.num_samples == 5000
    assert state.values["crc_ok"].all()
