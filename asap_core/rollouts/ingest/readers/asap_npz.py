"""`motion_<n>.npz` of ASAP's `listener_deltaa.py`: 50 Hz rows of the latest state, command and mocap pose.

One time column (the host's clock when the row was taken) serves all streams, so each is up to one period stale.
The no-ROS fork has no mocap keys. Joints are in the motors' order of Unitree's SDK. Quaternions are wxyz (the
listener reorders the mocap's). The frame of `lin_vel` and `ang_vel` is the odometry publisher's choice.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.rollouts.ingest.readers.assembly import Field, make_streams, unread
from asap_core.rollouts.ingest.streams import SOURCE, Kind, Log

FORMAT = "asap_npz"
_MAX_BYTES = 1 << 30
_UNITREE_JOINTS = 29
_KEYS: Mapping[str, tuple[Kind, str]] = {
    "joint_pos": ("joint_state", "joint_pos"),
    "joint_vel": ("joint_state", "joint_vel"),
    "tau_est": ("joint_state", "joint_torque"),
    "joint_pos_cmd": ("joint_command", "joint_target"),
    "joint_vel_cmd": ("joint_command", "joint_vel_target"),
    "tau_cmd": ("joint_command", "joint_torque_target"),
    "kp": ("joint_command", "kp"),
    "kd": ("joint_command", "kd"),
    "IMU_quaternion": ("imu", "quat"),
    "IMU_gyro": ("imu", "ang_vel"),
    "IMU_acc": ("imu", "lin_acc"),
    "pos": ("odometry", "pos"),
    "quat": ("odometry", "quat"),
    "lin_vel": ("odometry", "lin_vel"),
    "ang_vel": ("odometry", "ang_vel"),
}
_WIDTHS = {"IMU_quaternion": 4, "quat": 4} | dict.fromkeys(("IMU_gyro", "IMU_acc", "pos", "lin_vel", "ang_vel"), 3)
_NEEDED = ("time", "joint_pos", "joint_pos_cmd")


def sniff(path: Path) -> bool:
    """A zip that holds `time`, `joint_pos` and `joint_pos_cmd` as npy."""
    if not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False
    return {f"{name}.npy" for name in _NEEDED} <= names


def read(path: Path) -> Log:
    """All streams of the file; a file without mocap keys gives no odometry.

    Raises:
        InputFileError: cut, without a needed key, or arrays of another shape.
    """
    arrays = load_arrays(path)
    missing = [key for key in _NEEDED if key not in arrays]
    if missing:
        raise InputFileError(path, f"missing {', '.join(missing)}; found {', '.join(arrays)}")
    time = arrays.pop("time").reshape(-1)
    twin = bool(arrays.pop("is_twin", np.zeros(1)).any())
    joints = arrays["joint_pos"].shape[-1] if arrays["joint_pos"].ndim == 2 else 0
    for key in _KEYS.keys() & arrays.keys():
        expected = (len(time), _WIDTHS.get(key, joints))
        if arrays[key].shape != expected or not joints:
            raise InputFileError(path, f"field {key}: found shape {arrays[key].shape}, expected {expected}")
    fields = [_field(key, values, joints) for key, values in arrays.items() if key in _KEYS]
    absent = [key for key in _KEYS if key not in arrays]
    notes = (f"has no {', '.join(absent)}",) if absent else ()
    return Log(
        path,
        FORMAT,
        sha256_file(path),
        make_streams(path.stem, fields, receive_time=time, declared={"time_unit": "s", "angle_unit": "rad"}),
        notes + unread("arrays", [key for key in arrays if key not in _KEYS]),
        {SOURCE: {"kind": "twin"}} if twin else {},
    )


def _field(key: str, values: NDArray[np.float64], joints: int) -> Field:
    kind, name = _KEYS[key]
    declared = {"quat_order": "wxyz"} if name == "quat" else {}
    if kind in ("joint_state", "joint_command") and joints == _UNITREE_JOINTS:
        declared = {"joint_order": "unitree29"}
    return Field(kind, name, values, declared=declared)


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The numeric arrays of an npz as float64, in file order.

    Raises:
        InputFileError: missing, no zip, cut, too large once unpacked, or not numbers.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(item.file_size for item in archive.infolist())
        if size > _MAX_BYTES:
            raise InputFileError(path, f"{size} bytes once unpacked, expected at most {_MAX_BYTES}")
        with np.load(path, allow_pickle=False) as content:
            arrays = {key: content[key] for key in content.files}
    except FileNotFoundError:
        raise InputFileError(path, "missing") from None
    except zipfile.BadZipFile as error:
        raise InputFileError(
            path, f"damaged or cut short (the index at the end of an npz is needed): {error}"
        ) from None
    except InputFileError:
        raise
    except Exception as error:  # numpy and zipfile raise nearly anything on a damaged member
        raise InputFileError(path, f"not a readable npz: {error or type(error).__name__}") from None
    for key, values in arrays.items():
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
            raise InputFileError(path, f"field {key}: found no numbers")
    return {key: values.astype(np.float64) for key, values in arrays.items()}
