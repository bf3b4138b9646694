"""Every message family is read as the libraries decode it, whatever its byte order."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from ros_messages import START_NS, Recorded, header, make, pose, random_message, vector, write_mcap

from asap_core.rollouts.ingest.readers import read_log
from asap_core.rollouts.ingest.readers.definitions import known_layout, known_types
from asap_core.rollouts.ingest.readers.families import family_of
from asap_core.rollouts.ingest.readers.unitree_crc import checksums
from asap_core.rollouts.ingest.streams import Stream

NUM_FIELDS = {
    "unitree_hg/msg/LowState": 14,
    "unitree_hg/msg/LowCmd": 8,
    "unitree_hg/msg/IMUState": 5,
    "unitree_go/msg/LowState": 10,
    "unitree_go/msg/LowCmd": 6,
    "unitree_go/msg/IMUState": 5,
}
UNITREE = list(NUM_FIELDS)
MOTOR_STATE = {
    "joint_pos": "q",
    "joint_vel": "dq",
    "joint_acc": "ddq",
    "joint_torque": "tau_est",
    "temperature": "temperature",
    "voltage": "vol",
    "motor_error": "motorstate",
}
MOTOR_CMD = {
    "joint_target": "q",
    "joint_vel_target": "dq",
    "joint_torque_target": "tau",
    "kp": "kp",
    "kd": "kd",
    "motor_mode": "mode",
}
IMU = {
    "quat": "quaternion",
    "ang_vel": "gyroscope",
    "lin_acc": "accelerometer",
    "rpy": "rpy",
    "temperature": "temperature",
}


def of(type_name: str, messages: list[Any], topic: str = "/topic") -> list[Recorded]:
    return [Recorded(topic, type_name, START_NS + 2_000_000 * k, message) for k, message in enumerate(messages)]


def streams_of(path: Path, type_name: str, messages: list[Any], **options: Any) -> tuple[Stream, ...]:
    write_mcap(path, of(type_name, messages), **options)
    return read_log(path).streams


def decoded(path: Path) -> list[Any]:
    with open(path, "rb") as stream:
        return [
            message for *_, message in make_reader(stream, decoder_factories=[DecoderFactory()]).iter_decoded_messages()
        ]


@pytest.mark.parametrize("little_endian", [True, False])
@pytest.mark.parametrize("type_name", UNITREE)
def test_unitree_messages_equal_the_librarys_decoding_bit_for_bit(
    tmp_path: Path, type_name: str, little_endian: bool
) -> None:
    rng = np.random.default_rng(3)
    path = tmp_path / "log.mcap"
    streams = streams_of(
        path, type_name, [random_message(type_name, rng) for _ in range(40)], little_endian=little_endian
    )
    expected = decoded(path)
    compared = 0
    for stream in streams:
        for field, values in stream.values.items():
            if field in ("crc_ok", "remote_buttons", "emergency_stop"):
                continue
            np.testing.assert_array_equal(values, [_field(message, stream, field) for message in expected])
            compared += 1
    assert compared == NUM_FIELDS[type_name]
    if type_name.endswith("LowState"):
        np.testing.assert_array_equal(streams[0].sequence, [message.tick for message in expected])
        np.testing.assert_array_equal(streams[1].sequence, [message.tick for message in expected])


def _field(message: Any, stream: Stream, field: str) -> Any:
    if field in ("mode_pr", "mode_machine"):
        return getattr(message, field)
    if stream.kind == "imu":
        return getattr(getattr(message, "imu_state", message), IMU[field])
    if stream.kind == "joint_state":
        return [getattr(motor, MOTOR_STATE[field]) for motor in message.motor_state]
    return [getattr(motor, MOTOR_CMD[field]) for motor in message.motor_cmd]


def test_layouts_are_those_of_the_robots_sdk() -> None:
    """CDR offsets of `shared/spec/ingest.md` and the C structures that unitree_sdk2_python packs for its checksum."""
    wire = known_layout("unitree_hg/msg/LowState", "cdr")
    assert wire.size + 4 == 2092
    places = {"mode_pr": 8, "mode_machine": 9, "tick": 12, "wireless_remote": 2028, "reserve": 2068, "crc": 2084}
    assert {path: int(wire.leaves[path].offsets.flat[0]) for path in places} == places
    np.testing.assert_array_equal(wire.leaves["motor_state.q"].offsets, 72 + 56 * np.arange(35))
    np.testing.assert_array_equal(wire.leaves["motor_state.mode"].offsets, [70, *(124 + 56 * np.arange(34))])
    packed = {
        "unitree_hg/msg/LowState": "<2I2B2xI13fh2x" + "B3x4f2hf7I" * 35 + "40B5I",
        "unitree_hg/msg/LowCmd": "<2B2x" + "B3x5fI" * 35 + "5I",
        "unitree_go/msg/LowState": "<4B4IH2x13fb3x" + "B3x7fb3x3I" * 20 + "4BiH4b15H8hI41B3xf2b2x2f4h2I",
        "unitree_go/msg/LowCmd": "<4B4IH2x" + "B3x5f3I" * 20 + "4B55Bx2I",
    }
    for name, form in packed.items():
        assert known_layout(name, "c").size == struct.calcsize(form), name


@pytest.mark.parametrize("type_name", [name for name in UNITREE if "IMU" not in name])
def test_checksums_are_those_of_unitrees_bit_loop(type_name: str) -> None:
    wire, c_struct = known_layout(type_name, "cdr"), known_layout(type_name, "c")
    rows = np.random.default_rng(0).integers(0, 256, (3, wire.size), np.uint8)
    words = c_struct.encode({path: wire.decode(rows, path) for path in wire.leaves}, 3)[:, :-4].view("<u4")
    assert checksums(rows, wire, c_struct).tolist() == [_bit_loop(row.tolist()) for row in words]


def _bit_loop(words: list[int]) -> int:
    """The loop of unitree_sdk2's crc32_core."""
    crc = 0xFFFFFFFF
    for word in words:
        for bit in range(31, -1, -1):
            crc = ((crc << 1) & 0xFFFFFFFF) ^ (0x04C11DB7 if crc & 0x80000000 else 0)
            crc ^= 0x04C11DB7 if word >> bit & 1 else 0
    return crc


@pytest.mark.parametrize("little_endian", [True, False])
def test_a_wrong_checksum_is_told_from_a_right_one_and_from_none(tmp_path: Path, little_endian: bool) -> None:
    rng = np.random.default_rng(1)
    name = "unitree_hg/msg/LowState"
    wire, c_struct = known_layout(name, "cdr"), known_layout(name, "c")
    messages = [random_message(name, rng) for _ in range(6)]
    for message in messages:
        body = np.frombuffer(known_types().serialize_cdr(message, name, little_endian=True), np.uint8)[None, 4:]
        message.crc = int(checksums(body, wire, c_struct)[0])
    messages[2].motor_state[7].q += 0.5
    messages[4].crc = 0
    (state, _) = streams_of(tmp_path / "log.mcap", name, messages, little_endian=little_endian)
    assert state.values["crc_ok"].tolist() == [True, True, False, True, False, True]
    for message in messages:
        message.crc = 0
    assert "crc_ok" not in streams_of(tmp_path / "none.mcap", name, messages)[0].values


def test_the_stop_on_the_remote_control_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    messages = [random_message("unitree_hg/msg/LowState", rng) for _ in range(4)]
    for message, buttons in zip(messages, (0, 1 << 5, 1 << 9, 1 << 5 | 1 << 9), strict=True):
        message.wireless_remote[:] = 0
        message.wireless_remote[2:4] = np.frombuffer(struct.pack("<H", buttons), np.uint8)
    state = streams_of(tmp_path / "log.mcap", "unitree_hg/msg/LowState", messages)[0]
    assert state.values["remote_buttons"].tolist() == [0, 32, 512, 544]
    assert state.values["emergency_stop"].tolist() == [False, False, False, True]


@pytest.mark.parametrize("little_endian", [True, False])
def test_poses_with_frame_names_of_changing_length_keep_their_order(tmp_path: Path, little_endian: bool) -> None:
    rng = np.random.default_rng(0)
    frames = ["map", "world", "map", "", "a much longer frame", "world"]
    messages = [
        make(
            "geometry_msgs/msg/PoseStamped",
            header=header(START_NS + k, f),
            pose=pose(rng.normal(size=3), rng.normal(size=4)),
        )
        for k, f in enumerate(frames)
    ]
    (stream,) = streams_of(
        tmp_path / "log.mcap", "geometry_msgs/msg/PoseStamped", messages, little_endian=little_endian
    )
    assert stream.kind == "pose"
    assert stream.declared["quat_order"] == "xyzw"
    for row, message in enumerate(messages):
        position, turn = message.pose.position, message.pose.orientation
        assert stream.values["pos"][row].tolist() == [position.x, position.y, position.z]
        assert stream.values["quat"][row].tolist() == [turn.x, turn.y, turn.z, turn.w]
    assert stream.source_time is not None
    np.testing.assert_allclose(stream.source_time, START_NS * 1e-9, atol=1e-6)


def test_imu_without_orientation_has_none(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    messages = [random_message("sensor_msgs/msg/Imu", rng) for _ in range(5)]
    for message in messages:
        message.orientation_covariance[0] = 0.0
    messages[3].orientation_covariance[0] = -1.0
    (stream,) = streams_of(tmp_path / "some.mcap", "sensor_msgs/msg/Imu", messages)
    assert np.isnan(stream.values["quat"]).all(axis=1).tolist() == [False, False, False, True, False]
    assert stream.values["ang_vel"][2].tolist() == [getattr(messages[2].angular_velocity, axis) for axis in "xyz"]
    for message in messages:
        message.orientation_covariance[0] = -1.0
    (stream,) = streams_of(tmp_path / "none.mcap", "sensor_msgs/msg/Imu", messages)
    assert "quat" not in stream.values


def test_odometry_is_read_with_its_twist(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    messages = [random_message("nav_msgs/msg/Odometry", rng) for _ in range(3)]
    (stream,) = streams_of(tmp_path / "log.mcap", "nav_msgs/msg/Odometry", messages)
    assert stream.kind == "odometry"
    assert stream.declared["twist_frame"] == "body"
    for row, message in enumerate(messages):
        twist = message.twist.twist
        assert stream.values["lin_vel"][row].tolist() == [twist.linear.x, twist.linear.y, twist.linear.z]
        assert stream.values["ang_vel"][row].tolist() == [twist.angular.x, twist.angular.y, twist.angular.z]
        assert stream.values["pos"][row].tolist() == [getattr(message.pose.pose.position, axis) for axis in "xyz"]


def joint_state(names: list[str], pos: list[float], vel: list[float] = (), effort: list[float] = ()) -> Any:  # type: ignore[assignment]
    arrays = {"position": pos, "velocity": vel, "effort": effort}
    values = {key: np.array(value, np.float64) for key, value in arrays.items()}
    return make("sensor_msgs/msg/JointState", header=header(START_NS), name=names, **values)


def test_joint_states_are_put_in_order_by_name(tmp_path: Path) -> None:
    messages = [
        joint_state(["hip", "knee", "ankle"], [1, 2, 3], [10, 20, 30]),
        joint_state(["ankle", "hip", "knee"], [3.5, 1.5, 2.5], [35, 15, 25]),
        joint_state(["knee", "wrist"], [2.25, 9]),
        joint_state(["hip", "knee", "ankle"], [1, 2, 3], []),
    ]
    path = tmp_path / "log.mcap"
    write_mcap(path, of("sensor_msgs/msg/JointState", messages))
    log = read_log(path)
    (stream,) = log.streams
    assert stream.labels == ("hip", "knee", "ankle", "wrist")
    nan = np.nan
    np.testing.assert_array_equal(
        stream.values["joint_pos"], [[1, 2, 3, nan], [1.5, 2.5, 3.5, nan], [nan, 2.25, nan, 9], [1, 2, 3, nan]]
    )
    np.testing.assert_array_equal(stream.values["joint_vel"][1], [15, 25, 35, nan])
    assert np.isnan(stream.values["joint_vel"][2:]).all()
    assert "joint_torque" not in stream.values
    assert any("2 messages name joints in another order" in note for note in log.notes)


def test_joint_states_that_contradict_themselves_are_left_out_and_said(tmp_path: Path) -> None:
    messages = [
        joint_state(["hip", "knee"], [1, 2]),
        joint_state(["hip", "hip"], [1, 2]),
        joint_state(["hip", "knee"], [1, 2, 3]),
        joint_state([], [1, 2]),
        joint_state(["hip", "knee"], [5, 6]),
    ]
    path = tmp_path / "log.mcap"
    write_mcap(path, of("sensor_msgs/msg/JointState", messages))
    log = read_log(path)
    np.testing.assert_array_equal(log.streams[0].values["joint_pos"], [[1, 2], [5, 6]])
    assert log.streams[0].receive_time is not None
    np.testing.assert_allclose(log.streams[0].receive_time - START_NS * 1e-9, [0, 0.008], atol=1e-6)
    text = " ".join(log.notes)
    assert "a joint named twice" in text
    assert "other lengths than the names" in text
    assert "without names" in text


def test_rigid_bodies_become_a_pose_each_with_their_markers(tmp_path: Path) -> None:
    def marker(index: int, point: list[float]) -> Any:
        name = "mocap4r2_msgs/msg/Marker"
        return make(name, id_type=1, marker_index=index, marker_name="", translation=vector("Point", point))

    def body(name: str, x: float, markers: list[Any]) -> Any:
        kind = "mocap4r2_msgs/msg/RigidBody"
        return make(kind, rigid_body_name=name, markers=markers, pose=pose([x, 0, 0.8], [0, 0, 0, 1]))

    frames = [
        [body("pelvis", 0.0, [marker(1, [1, 2, 3]), marker(2, [4, 5, 6])]), body("box", 9.0, [])],
        [body("pelvis", 0.1, [marker(2, [4, 5, 7])])],
        [body("box", 9.1, []), body("pelvis", 0.2, [])],
    ]
    messages = [
        make("mocap4r2_msgs/msg/RigidBodies", header=header(START_NS + k), frame_number=40 + k, rigidbodies=bodies)
        for k, bodies in enumerate(frames)
    ]
    streams = {s.name: s for s in streams_of(tmp_path / "log.mcap", "mocap4r2_msgs/msg/RigidBodies", messages)}
    assert set(streams) == {"/topic/pelvis", "/topic/pelvis/markers", "/topic/box"}
    np.testing.assert_array_equal(streams["/topic/pelvis"].values["pos"][:, 0], [0.0, 0.1, 0.2])
    np.testing.assert_array_equal(streams["/topic/pelvis"].sequence, [40, 41, 42])
    np.testing.assert_array_equal(streams["/topic/box"].sequence, [40, 42])
    assert streams["/topic/pelvis/markers"].labels == ("1", "2")
    marker_pos = streams["/topic/pelvis/markers"].values["marker_pos"]
    assert marker_pos[1, 1].tolist() == [4, 5, 7]
    assert np.isnan(marker_pos[1, 0]).all()


def test_named_poses_become_a_stream_each(tmp_path: Path) -> None:
    kind = "motion_capture_tracking_interfaces/msg/NamedPose"
    messages = [
        make(f"{kind}Array", header=header(START_NS), poses=[make(kind, name="g1", pose=pose([k, 0, 1], [0, 0, 0, 1]))])
        for k in range(3)
    ]
    (stream,) = streams_of(tmp_path / "log.mcap", f"{kind}Array", messages)
    assert stream.name == "/topic/g1"
    assert stream.values["pos"][:, 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("type_name", "family"),
    [
        ("unitree_hg::msg::dds_::LowState_", "LowState"),
        ("unitree_go.msg.dds_.LowCmd_", "LowCmd"),
        ("sensor_msgs/JointState", "JointState"),
        ("foxglove.PoseInFrame", "PoseInFrame"),
        ("LowState", "LowState"),
        ("my_robot/msg/LowState", None),
        ("tf2_msgs/msg/TFMessage", None),
    ],
)
def test_types_are_known_in_every_writing(type_name: str, family: str | None) -> None:
    assert family_of(type_name) == family


def test_topics_that_are_not_read_are_named_with_their_count(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "log.mcap"
    strings = [make("std_msgs/msg/String", data="standing") for _ in range(7)]
    states = [random_message("unitree_hg/msg/LowState", rng) for _ in range(2)]
    write_mcap(path, of("std_msgs/msg/String", strings, "/mode") + of("unitree_hg/msg/LowState", states))
    log = read_log(path)
    assert [stream.name for stream in log.streams] == ["/topic", "/topic.imu_state"]
    (note,) = log.notes
    assert note.startswith("topic /mode (std_msgs/msg/String, cdr): 7 messages not read")
