"""Writing what a G1's ROS 2 recorder writes: LowState, LowCmd and a mocap pose in one MCAP, from arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from mcap.writer import CompressionType, Writer
from numpy.typing import ArrayLike, NDArray

from asap_core.files import atomic_file
from asap_core.rollouts.ingest.readers.definitions import definition_text, known_layout, known_types
from asap_core.rollouts.ingest.readers.unitree_crc import checksums
from asap_core.rollouts.ingest.streams import SOURCE

NUM_MOTORS = 35
"""Motor slots of `unitree_hg`; a G1 uses the first 29."""

MocapMessage = Literal["geometry_msgs/msg/PoseStamped", "mocap4r2_msgs/msg/RigidBodies"]

_HEADER_CDR = np.array([0, 1, 0, 0], np.uint8)
_SLAB = 4096
_STATE, _COMMAND = "unitree_hg/msg/LowState", "unitree_hg/msg/LowCmd"


@dataclass(frozen=True)
class Topic:
    """Messages of one topic."""

    name: str
    type_name: str
    time: NDArray[np.float64]
    """(N,) s, when the recorder got them."""
    messages: NDArray[np.uint8]
    """(N, size) with the encapsulation header."""


def write_g1_log(
    path: Path | str,
    *,
    time: ArrayLike,
    joint_pos: ArrayLike,
    joint_vel: ArrayLike,
    joint_torque: ArrayLike,
    imu_quat: ArrayLike,
    ang_vel: ArrayLike,
    lin_acc: ArrayLike,
    command_time: ArrayLike,
    joint_target: ArrayLike,
    kp: ArrayLike,
    kd: ArrayLike,
    mocap_time: ArrayLike | None = None,
    mocap_pos: ArrayLike | None = None,
    mocap_quat: ArrayLike | None = None,
    mocap_receive_time: ArrayLike | None = None,
    mocap_frame: ArrayLike | None = None,
    mocap_body: str = "pelvis",
    mocap_message: MocapMessage = "geometry_msgs/msg/PoseStamped",
    tick: ArrayLike | None = None,
    imu_rpy: ArrayLike | None = None,
    joint_acc: ArrayLike = 0.0,
    temperature: ArrayLike = 35,
    voltage: ArrayLike = 48.0,
    motor_error: ArrayLike = 0,
    joint_vel_target: ArrayLike = 0.0,
    joint_torque_target: ArrayLike = 0.0,
    mode_pr: ArrayLike = 0,
    mode_machine: ArrayLike = 5,
    wireless_remote: ArrayLike = 0,
    with_crc: bool = True,
    source: Mapping[str, str] | None = None,
) -> None:
    """Write topics `/lowstate`, `/lowcmd` and, with mocap, `/mocap/<body>/pose` or `/rigid_bodies`.

    Joint arrays have J ≤ 35 columns in motor order; motors beyond J are zero. Values that are scalars hold for all.

    Args:
        path: the `.mcap` to write, atomically.
        time: (N,) s, arrival of the states at the recorder.
        joint_pos: (N, J) rad.
        joint_vel: (N, J) rad/s.
        joint_torque: (N, J) N·m, the driver's estimate.
        imu_quat: (N, 4) wxyz, body to world.
        ang_vel: (N, 3) rad/s in the body frame.
        lin_acc: (N, 3) m/s², specific force in the body frame.
        command_time: (M,) s, arrival of the commands.
        joint_target: (M, J) rad.
        kp: (J,) or (M, J) N·m/rad.
        kd: (J,) or (M, J) N·m·s/rad.
        mocap_time: (K,) s, the stamp in the messages' header.
        mocap_pos: (K, 3) m.
        mocap_quat: (K, 4) wxyz; the file holds xyzw as ROS does.
        mocap_receive_time: (K,) s, arrival; `mocap_time` if left out.
        mocap_frame: (K,) frame numbers of RigidBodies, counted from 0 if left out.
        mocap_body: name of the rigid body.
        mocap_message: type that carries it.
        tick: (N,) the robot's counter; milliseconds of `time` since its start if left out.
        imu_rpy: (N, 3) rad; computed from `imu_quat` if left out.
        joint_acc: (N, J) rad/s².
        temperature: (N, J) or (N, J, 2) °C.
        voltage: (N, J) V.
        motor_error: (N, J) error bits.
        joint_vel_target: (M, J) rad/s.
        joint_torque_target: (M, J) N·m.
        mode_pr: (N,) 0 series, 1 parallel ankle and waist; the commands carry the scalar or the first value.
        mode_machine: (N,) variant of the robot; as above.
        wireless_remote: (N, 40) bytes of the remote control.
        with_crc: compute the checksums; 0 as simulators leave it otherwise.
        source: what made the log, kept as metadata `asap.source`; `kind: twin` marks a simulator's.
    """
    state_time = np.asarray(time, np.float64)
    num = len(state_time)
    state: dict[str, Any] = {
        "mode_pr": mode_pr,
        "mode_machine": mode_machine,
        "tick": np.round((state_time - state_time[:1]) * 1e3) if tick is None else tick,
        "imu_state.quaternion": imu_quat,
        "imu_state.gyroscope": ang_vel,
        "imu_state.accelerometer": lin_acc,
        "imu_state.rpy": _rpy(np.asarray(imu_quat, np.float64)) if imu_rpy is None else imu_rpy,
        "motor_state.q": _motors(joint_pos),
        "motor_state.dq": _motors(joint_vel),
        "motor_state.ddq": _motors(joint_acc),
        "motor_state.tau_est": _motors(joint_torque),
        "motor_state.temperature": _temperatures(temperature, num),
        "motor_state.vol": _motors(voltage),
        "motor_state.motorstate": _motors(motor_error),
        "wireless_remote": wireless_remote,
    }
    ticks = np.asarray(command_time, np.float64)
    command: dict[str, Any] = {
        "mode_pr": np.ravel(mode_pr)[0],
        "mode_machine": np.ravel(mode_machine)[0],
        "motor_cmd.mode": 1,
        "motor_cmd.q": _motors(joint_target),
        "motor_cmd.dq": _motors(joint_vel_target),
        "motor_cmd.tau": _motors(joint_torque_target),
        "motor_cmd.kp": _motors(kp),
        "motor_cmd.kd": _motors(kd),
    }
    topics = [
        Topic("/lowstate", _STATE, state_time, _unitree(_STATE, state, num, with_crc)),
        Topic("/lowcmd", _COMMAND, ticks, _unitree(_COMMAND, command, len(ticks), with_crc)),
    ]
    if mocap_time is not None:
        stamp = np.asarray(mocap_time, np.float64)
        arrival = stamp if mocap_receive_time is None else np.asarray(mocap_receive_time, np.float64)
        pose = np.concatenate([np.asarray(mocap_pos), np.roll(np.asarray(mocap_quat), -1, axis=-1)], axis=-1)
        frame = np.arange(len(stamp)) if mocap_frame is None else np.asarray(mocap_frame)
        if mocap_message == "mocap4r2_msgs/msg/RigidBodies":
            name, messages = "/rigid_bodies", _rigid_bodies(mocap_body, stamp, pose, frame)
        else:
            name, messages = f"/mocap/{mocap_body}/pose", _poses(stamp, pose)
        topics.append(Topic(name, mocap_message, arrival, messages))
    write_topics(path, topics, source=source)


def write_topics(
    path: Path | str, topics: list[Topic], *, chunk_size: int = 1 << 20, source: Mapping[str, str] | None = None
) -> None:
    """Write topics of ROS 2 messages as MCAP, in the order of their times, chunks compressed with LZ4.

    Args:
        path: the `.mcap` to write, atomically.
        topics: types must be ROS 2 standard messages or in `readers.definitions`.
        chunk_size: bytes of a chunk before compression.
        source: kept as metadata `asap.source`.
    """
    with atomic_file(path) as partial, open(partial, "wb") as stream:
        writer = Writer(stream, chunk_size=chunk_size, compression=CompressionType.LZ4)
        writer.start(profile="ros2", library="asap")
        if source is not None:
            writer.add_metadata(SOURCE, dict(source))
        channels = []
        for topic in topics:
            text = definition_text(topic.type_name).encode()
            schema = writer.register_schema(topic.type_name, "ros2msg", text)
            channels.append(writer.register_channel(topic.name, "cdr", schema))
        for which, when, message in _in_order(topics):
            writer.add_message(channels[which], log_time=when, publish_time=when, data=message)
        writer.finish()  # type: ignore[no-untyped-call]


def _in_order(topics: list[Topic]) -> Iterator[tuple[int, int, bytes]]:
    """(index of the topic, ns, message) by time, stable."""
    stamps = [np.round(topic.time * 1e9).astype(np.int64) for topic in topics]
    owner = np.repeat(np.arange(len(topics)), [len(stamp) for stamp in stamps])
    row = np.concatenate([np.arange(len(stamp)) for stamp in stamps])
    when = np.concatenate(stamps)
    for k in np.argsort(when, kind="stable"):
        yield int(owner[k]), int(when[k]), topics[owner[k]].messages[row[k]].tobytes()


def _unitree(type_name: str, values: dict[str, Any], num: int, with_crc: bool) -> NDArray[np.uint8]:
    wire, struct = known_layout(type_name, "cdr"), known_layout(type_name, "c")
    start = len(_HEADER_CDR)
    rows = wire.encode({path: np.asarray(value) for path, value in values.items()}, num, start=start)
    rows[:, :start] = _HEADER_CDR
    for at in range(0, num if with_crc else 0, _SLAB):
        slab = rows[at : at + _SLAB]
        slab[:, -4:] = checksums(slab[:, start:], wire, struct).view(np.uint8).reshape(-1, 4)
    return rows


def _motors(value: ArrayLike) -> NDArray[Any]:
    """Columns up to `NUM_MOTORS`, zeros beyond those given; a scalar stays one."""
    array = np.asarray(value)
    if array.ndim == 0:
        return array
    array = array.astype(np.float32) if array.dtype.kind == "f" else array
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, NUM_MOTORS - array.shape[-1])])


def _temperatures(value: ArrayLike, num: int) -> NDArray[Any]:
    """(N, 35, 2): both sensors the same if one is given."""
    array = np.asarray(value)
    pair = array if array.ndim == 3 else np.stack([array, array], axis=-1)
    if array.ndim == 0:
        return np.broadcast_to(pair, (num, NUM_MOTORS, 2))
    return np.pad(pair, [(0, 0), (0, NUM_MOTORS - pair.shape[1]), (0, 0)])


def _rpy(quat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Roll, pitch, yaw (ZYX) of (N, 4) wxyz."""
    w, x, y, z = quat.T
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))
    return np.stack([roll, pitch, np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))], axis=-1)


def _poses(stamp: NDArray[np.float64], pose: NDArray[np.float64]) -> NDArray[np.uint8]:
    """PoseStamped in frame `world`; `pose` is (K, 7) position and xyzw."""
    return _stamped(_template("geometry_msgs/msg/PoseStamped", header=_header(), pose=_pose()), stamp, pose)


def _rigid_bodies(
    body: str, stamp: NDArray[np.float64], pose: NDArray[np.float64], frame: NDArray[Any]
) -> NDArray[np.uint8]:
    """RigidBodies with one body and no markers."""
    one = known_types().types["mocap4r2_msgs/msg/RigidBody"](rigid_body_name=body, markers=[], pose=_pose())
    template = _template("mocap4r2_msgs/msg/RigidBodies", header=_header(), frame_number=0, rigidbodies=[one])
    rows = _stamped(template, stamp, pose)
    at = 4 + 8 + 4 + len("world\0") + 2
    rows[:, at : at + 4] = np.asarray(frame).astype("<u4").reshape(-1, 1).view(np.uint8)
    return rows


def _header() -> Any:
    types = known_types().types
    return types["std_msgs/msg/Header"](stamp=types["builtin_interfaces/msg/Time"](sec=0, nanosec=0), frame_id="world")


def _pose() -> Any:
    types = known_types().types
    return types["geometry_msgs/msg/Pose"](
        position=types["geometry_msgs/msg/Point"](x=0.0, y=0.0, z=0.0),
        orientation=types["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=0.0, w=1.0),
    )


def _template(type_name: str, **fields: Any) -> NDArray[np.uint8]:
    store = known_types()
    return np.frombuffer(store.serialize_cdr(store.types[type_name](**fields), type_name, little_endian=True), np.uint8)


def _stamped(template: NDArray[np.uint8], stamp: NDArray[np.float64], pose: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Copies of a message that begins with a header and ends with a pose, each with its own stamp and pose."""
    rows = np.tile(template, (len(stamp), 1))
    nanoseconds = np.round(stamp * 1e9).astype(np.int64)
    rows[:, 4:8] = (nanoseconds // 10**9).astype("<i4").reshape(-1, 1).view(np.uint8)
    rows[:, 8:12] = (nanoseconds % 10**9).astype("<u4").reshape(-1, 1).view(np.uint8)
    rows[:, -56:] = np.ascontiguousarray(pose, "<f8").view(np.uint8)
    return rows
