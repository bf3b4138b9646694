"""Messages whose numbers have the same shape in every message: which numbers are read, and what streams they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.rollouts.ingest.streams import Kind, Stream

Columns = Mapping[str, NDArray[Any]]
"""By dotted path in the message, (N, ...)."""


@dataclass(frozen=True)
class Times:
    """Clocks of N messages."""

    receive: NDArray[np.float64]
    """(N,) s."""
    source: NDArray[np.float64] | None
    """(N,) s, None if the messages carry no stamp."""
    sequence: NDArray[np.int64] | None = None
    """(N,) counter of ROS 1's header, None if the messages carry none."""


@dataclass(frozen=True)
class Family:
    """A kind of message."""

    required: tuple[str, ...]
    """Paths without which nothing can be read."""
    optional: tuple[str, ...]
    """Paths that some versions of the message have."""
    build: Callable[[str, Columns, Times], list[Stream]]
    """(topic, columns, times) → streams."""


def family_of(type_name: str) -> str | None:
    """Key in `FAMILIES` (or of the messages with names, `named`) of a message type, whatever its writing, or None.

    `unitree_hg/msg/LowState`, `unitree_hg::msg::dds_::LowState_` and `unitree_hg.msg.dds_.LowState_` are the same.
    """
    parts = [part for part in type_name.replace("::", "/").replace(".", "/").split("/") if part not in ("msg", "dds_")]
    package, name = (parts[0] if len(parts) > 1 else ""), parts[-1].rstrip("_")
    owners = _OWNERS.get(name)
    return name if owners is not None and (not package or package in owners) else None


def _kept(columns: Columns, names: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """The columns that are there, under the names of a stream."""
    return {name: columns[path] for path, name in names.items() if path in columns}


def _xyz(columns: Columns, path: str, letters: str = "xyz") -> NDArray[Any]:
    return np.stack([columns[f"{path}.{letter}"] for letter in letters], axis=-1)


def _low_state(topic: str, columns: Columns, times: Times) -> list[Stream]:
    scalars = _kept(columns, {"mode_pr": "mode_pr", "mode_machine": "mode_machine", "crc_ok": "crc_ok"})
    scalars |= _remote(columns)
    joints = _kept(columns, _MOTOR_STATE)
    imu = _kept(columns, {f"imu_state.{path}": name for path, name in _IMU_STATE.items()})
    tick = np.asarray(columns["tick"]).astype(np.int64) if "tick" in columns else None
    owner = "unitree_hg" if "mode_machine" in columns else "unitree_go"
    streams = [
        _stream(topic, "joint_state", joints | scalars, times, tick, joint_order=owner, angle_unit="rad"),
    ]
    if imu:
        streams.append(_stream(f"{topic}.imu_state", "imu", imu, times, tick, quat_order="wxyz", angle_unit="rad"))
    return streams


def _low_cmd(topic: str, columns: Columns, times: Times) -> list[Stream]:
    values = _kept(columns, _MOTOR_CMD)
    values |= _kept(columns, {"mode_pr": "mode_pr", "mode_machine": "mode_machine", "crc_ok": "crc_ok"})
    owner = "unitree_hg" if "mode_machine" in columns else "unitree_go"
    return [_stream(topic, "joint_command", values, times, None, joint_order=owner, angle_unit="rad")]


def _imu_state(topic: str, columns: Columns, times: Times) -> list[Stream]:
    return [_stream(topic, "imu", _kept(columns, _IMU_STATE), times, None, quat_order="wxyz", angle_unit="rad")]


def _imu(topic: str, columns: Columns, times: Times) -> list[Stream]:
    values = {"ang_vel": _xyz(columns, "angular_velocity"), "lin_acc": _xyz(columns, "linear_acceleration")}
    quat = _xyz(columns, "orientation", "xyzw")
    if "orientation_covariance" in columns:
        absent = columns["orientation_covariance"][:, 0] == -1
        quat = np.where(absent[:, None], np.nan, quat)
    if not np.isnan(quat).all():
        values["quat"] = quat
    return [_stream(topic, "imu", values, times, None, quat_order="xyzw", angle_unit="rad")]


def _pose(topic: str, columns: Columns, times: Times) -> list[Stream]:
    values = {"pos": _xyz(columns, "pose.position"), "quat": _xyz(columns, "pose.orientation", "xyzw")}
    return [_stream(topic, "pose", values, times, None, quat_order="xyzw", length_unit="m")]


def _odometry(topic: str, columns: Columns, times: Times) -> list[Stream]:
    values = {
        "pos": _xyz(columns, "pose.pose.position"),
        "quat": _xyz(columns, "pose.pose.orientation", "xyzw"),
        "lin_vel": _xyz(columns, "twist.twist.linear"),
        "ang_vel": _xyz(columns, "twist.twist.angular"),
    }
    # nav_msgs says that the twist is in child_frame_id; publishers differ, so evidence decides later.
    return [_stream(topic, "odometry", values, times, None, quat_order="xyzw", length_unit="m", twist_frame="body")]


def _stream(
    name: str,
    kind: Kind,
    values: Mapping[str, NDArray[Any]],
    times: Times,
    sequence: NDArray[np.int64] | None,
    **declared: str,
) -> Stream:
    counter = times.sequence if sequence is None else sequence
    return Stream(name, kind, values, times.receive, times.source, counter, None, {"time_unit": "s", **declared})


def _remote(columns: Columns) -> dict[str, NDArray[Any]]:
    """Buttons of Unitree's remote control: bytes 2 and 3 of its 40, if any byte ever differs from 0.

    Bits: R1 L1 start select R2 L2 F1 F2 A B X Y up right down left. L2 with B is the damping stop.
    """
    remote = columns.get("wireless_remote")
    if remote is None or remote.ndim != 2 or remote.shape[1] < 4 or not remote.any():
        return {}
    buttons = remote[:, 2].astype(np.uint16) | (remote[:, 3].astype(np.uint16) << 8)
    return {"remote_buttons": buttons, "emergency_stop": (buttons & _STOP) == _STOP}


_STOP = (1 << 5) | (1 << 9)

_MOTOR_STATE = {
    "motor_state.q": "joint_pos",
    "motor_state.dq": "joint_vel",
    "motor_state.ddq": "joint_acc",
    "motor_state.tau_est": "joint_torque",
    "motor_state.temperature": "temperature",
    "motor_state.vol": "voltage",
    "motor_state.motorstate": "motor_error",
}
_MOTOR_CMD = {
    "motor_cmd.q": "joint_target",
    "motor_cmd.dq": "joint_vel_target",
    "motor_cmd.tau": "joint_torque_target",
    "motor_cmd.kp": "kp",
    "motor_cmd.kd": "kd",
    "motor_cmd.mode": "motor_mode",
}
_IMU_STATE = {
    "quaternion": "quat",
    "gyroscope": "ang_vel",
    "accelerometer": "lin_acc",
    "rpy": "rpy",
    "temperature": "temperature",
}


def _letters(path: str, letters: str = "xyz") -> tuple[str, ...]:
    return tuple(f"{path}.{letter}" for letter in letters)


_POSE = (*_letters("pose.position"), *_letters("pose.orientation", "xyzw"))

FAMILIES: Mapping[str, Family] = {
    "LowState": Family(
        ("motor_state.q", "motor_state.dq", "motor_state.tau_est"),
        (
            *(path for path in _MOTOR_STATE if path not in ("motor_state.q", "motor_state.dq", "motor_state.tau_est")),
            *(f"imu_state.{path}" for path in _IMU_STATE),
            *("mode_pr", "mode_machine", "tick", "wireless_remote"),
        ),
        _low_state,
    ),
    "LowCmd": Family(
        ("motor_cmd.q", "motor_cmd.kp", "motor_cmd.kd"),
        ("motor_cmd.dq", "motor_cmd.tau", "motor_cmd.mode", "mode_pr", "mode_machine"),
        _low_cmd,
    ),
    "IMUState": Family(("quaternion", "gyroscope", "accelerometer"), ("rpy", "temperature"), _imu_state),
    "Imu": Family(
        (
            *_letters("orientation", "xyzw"),
            *_letters("angular_velocity"),
            *_letters("linear_acceleration"),
        ),
        ("orientation_covariance",),
        _imu,
    ),
    "PoseStamped": Family(_POSE, (), _pose),
    "PoseInFrame": Family(_POSE, (), _pose),
    "Odometry": Family(
        (
            *(f"pose.{path}" for path in _POSE),
            *_letters("twist.twist.linear"),
            *_letters("twist.twist.angular"),
        ),
        (),
        _odometry,
    ),
}
"""Kinds of messages of one shape, by the last part of the type's name."""

_OWNERS: Mapping[str, tuple[str, ...]] = {
    "LowState": ("unitree_hg", "unitree_go"),
    "LowCmd": ("unitree_hg", "unitree_go"),
    "IMUState": ("unitree_hg", "unitree_go"),
    "Imu": ("sensor_msgs",),
    "JointState": ("sensor_msgs",),
    "PoseStamped": ("geometry_msgs",),
    "PoseInFrame": ("foxglove",),
    "Odometry": ("nav_msgs",),
    "RigidBodies": ("mocap4r2_msgs",),
    "NamedPoseArray": ("motion_capture_tracking_interfaces",),
}
"""Packages that own a message of the name; a type without package is taken by its name."""
