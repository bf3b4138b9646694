"""What labs call the quantities of a log, and which field of a stream each name means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from asap_core.rollouts.ingest.streams import FIELDS, SCALARS, Kind

_NAMES: Mapping[tuple[Kind, str], str] = {
    ("joint_state", "joint_pos"): "q joint_pos dof_pos actual_q joint_position joint_positions q_actual q_meas "
    "q_measured motor_q motor_pos encoders position positions pos",
    ("joint_state", "joint_vel"): "dq joint_vel dof_vel actual_dq qd qvel joint_velocity joint_velocities dq_actual "
    "dq_meas motor_dq motor_vel velocity velocities vel",
    ("joint_state", "joint_acc"): "ddq joint_acc dof_acc qdd joint_acceleration",
    ("joint_state", "joint_torque"): "tau tau_est tauest dof_torque joint_torque joint_torques motor_torque torque "
    "torques effort efforts joint_effort motor_tau",
    ("joint_state", "temperature"): "temperature temperatures temp motor_temperature motor_temp",
    ("joint_state", "voltage"): "vol voltage motor_vol motor_voltage",
    ("joint_state", "motor_error"): "motorstate motor_error motor_state_bits",
    ("joint_command", "joint_target"): "q_des target_q joint_pos_cmd dof_pos_target des_dof_pos joint_target q_cmd "
    "q_target desired_q des_q goal_position joint_pos_target target_dof_pos command_q joint_pos_des",
    ("joint_command", "joint_vel_target"): "dq_des target_dq joint_vel_cmd dof_vel_target joint_vel_target dq_cmd "
    "dq_target",
    ("joint_command", "joint_torque_target"): "tau_cmd tau_ff tau_des tau_target target_tau joint_torque_target",
    ("joint_command", "kp"): "kp kps stiffness",
    ("joint_command", "kd"): "kd kds damping",
    ("joint_command", "action"): "action actions raw_action policy_action raw_actions",
    ("imu", "quat"): "imu_quaternion imu_quat quaternion quat imu_orientation",
    ("imu", "ang_vel"): "imu_gyro gyro gyroscope ang_vel angular_velocity imu_ang_vel imu_angular_velocity",
    ("imu", "lin_acc"): "imu_acc accelerometer acc linear_acceleration lin_acc imu_accelerometer imu_lin_acc",
    ("imu", "rpy"): "rpy imu_rpy",
    ("odometry", "pos"): "root_pos base_pos root_trans root_trans_offset base_position root_position "
    "global_translation",
    ("odometry", "quat"): "root_quat base_quat root_rot base_orientation orientation root_orientation",
    ("odometry", "lin_vel"): "root_lin_vel base_lin_vel lin_vel root_linear_velocity",
    ("odometry", "ang_vel"): "root_ang_vel base_ang_vel root_angular_velocity",
}
"""Names in falling order of preference: the first that a file has is the field, another for it stays unread."""

SYNONYMS: Mapping[str, tuple[Kind, str, int]] = {
    name: (kind, field, rank) for (kind, field), names in _NAMES.items() for rank, name in enumerate(names.split())
}
"""Name in lower case to kind, field and its place in the order of preference."""

TIME_NAMES = (
    "time",
    "timestamp",
    "timestamps",
    "t",
    "stamp",
    "unix_time",
    "sim_time",
    "elapsed",
    "elapsed_time",
)
_TIME_UNIT = re.compile(
    r"^(?P<name>.+?)[ _]*[\[(]?(?P<unit>(?<![a-z])(?:s|sec|secs|seconds|ms|us|ns|msec|usec|nsec))[\])]?$"
)
_SECONDS = {"s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "ms": 1e-3, "msec": 1e-3} | {
    "us": 1e-6,
    "usec": 1e-6,
    "ns": 1e-9,
    "nsec": 1e-9,
}
_JOINT_WORD = re.compile(
    r"hip|knee|ankle|waist|torso|shoulder|elbow|wrist|thigh|calf|joint|motor|finger|neck|head|pitch|roll|yaw|jaw|gripper",
    re.IGNORECASE,
)
_AXES = {"x": 0, "y": 1, "z": 2}
_QUAT_AXES = "wxyz"
_VECTOR_SIZE = {"quat": 4, "ang_vel": 3, "lin_acc": 3, "rpy": 3, "pos": 3, "lin_vel": 3}


@dataclass(frozen=True)
class ColumnGroup:
    """Columns of a table that make one field."""

    kind: Kind
    field: str
    stem: str
    """The name that the file uses."""
    columns: tuple[str, ...]
    """In the order of the field's last axis."""
    labels: tuple[str, ...] | None = None
    """Joint names where the columns bear them."""
    quat_order: str | None = None
    """'wxyz' where the columns of a quaternion bear their letters."""


def seconds_per(unit: str) -> float | None:
    """Seconds in a unit of time, None for an unknown name."""
    return _SECONDS.get(unit.lower())


def time_column(names: Iterable[str]) -> tuple[str, float | None] | None:
    """The column that holds the time and its unit in s if the name states it; None if there is none."""
    found: list[tuple[int, str, float | None]] = []
    for name in names:
        plain, unit = name.strip().lower(), None
        if plain not in TIME_NAMES and (match := _TIME_UNIT.match(plain)):
            plain, unit = match["name"].strip(" _"), _SECONDS[match["unit"]]
        if plain in TIME_NAMES:
            found.append((TIME_NAMES.index(plain), name, unit))
    return min(found)[1:] if found else None


def scalar(name: str) -> str | None:
    """The per-sample scalar that a column name means."""
    plain = name.strip().lower()
    return {"episode_index": "episode", "frame_index": "frame"}.get(plain, plain if plain in SCALARS else None)


def group_columns(names: Iterable[str]) -> tuple[list[ColumnGroup], list[str]]:
    """The fields that column names spell, and the names that no field took.

    `q_0`, `q[0]`, `q.0` and `q0` are joint 0 of `q`; `q_left_knee` and `left_knee.q` are a named joint; `gyro_x` is
    an axis. Of two names for one field the more specific is read.

    Raises:
        ValueError: the numbers of a group leave gaps.
    """
    names = list(names)
    parts = {name: part for name in names if (part := _split(name)) is not None}
    stems: dict[str, list[str]] = {}
    for name, (stem, _) in parts.items():
        stems.setdefault(stem, []).append(name)
    groups: dict[tuple[Kind, str], ColumnGroup] = {}
    by_rank = sorted(stems, key=lambda stem: SYNONYMS[stem][2])
    for stem in by_rank:
        kind, field = _meaning(stem, [parts[name][1] for name in stems[stem]], groups)
        if field is None or (kind, field) in groups:
            continue
        group = _group(kind, field, stem, {parts[name][1]: name for name in stems[stem]})
        if group is not None:
            groups[kind, field] = group
    taken = {column for group in groups.values() for column in group.columns}
    return list(groups.values()), [name for name in names if name not in taken]


def _split(name: str) -> tuple[str, str] | None:
    """A column name as (synonym, number, axis or joint name); None if it spells no field."""
    plain = name.strip().strip("/").replace("/", ".")
    low = plain.lower()
    for stem in sorted(SYNONYMS, key=len, reverse=True):
        if low == stem:
            return stem, ""
        if low.startswith(stem):
            rest = plain[len(stem) :].strip("]) ").lstrip("_.[( ")
            joined = low[len(stem)] not in "_.[( "
            if rest.isdigit() or (not joined and (rest.lower() in (*_AXES, "w", "roll", "pitch", "yaw"))):
                return stem, rest.lower()
            if not joined and _JOINT_WORD.search(rest):
                return stem, rest
        if low.endswith(("." + stem, "_" + stem)) and _JOINT_WORD.search(plain[: -len(stem) - 1]):
            return stem, plain[: -len(stem) - 1]
    return None


def _meaning(stem: str, parts: list[str], taken: Mapping[tuple[Kind, str], ColumnGroup]) -> tuple[Kind, str | None]:
    """Kind and field of a group; `position` and `velocity` beside named joint columns are the base's, if they fit."""
    kind, field, _ = SYNONYMS[stem]
    axes = set(parts) == set(_AXES)
    base: Mapping[str, str] = {"joint_pos": "pos", "joint_vel": "lin_vel"}
    if field in base and (axes or ((kind, field) in taken and len(parts) == 3 and set(parts) == {"0", "1", "2"})):
        return "odometry", base[field] if stem[:3] in ("pos", "vel") else None
    return kind, field


def _group(kind: Kind, field: str, stem: str, columns: Mapping[str, str]) -> ColumnGroup | None:
    """The columns (by number, axis or joint) in order; None if they do not fit the field."""
    if field in _VECTOR_SIZE and kind not in ("joint_state", "joint_command"):
        return _vector(kind, field, stem, columns)
    if all(part.isdigit() for part in columns if part) and len({bool(part) for part in columns}) == 1:
        numbered = sorted(columns, key=lambda part: int(part or 0))
        numbers = [int(part or 0) for part in numbered]
        if numbers not in ([*range(len(numbers))], [*range(1, len(numbers) + 1)]):
            raise ValueError(f"columns {stem}: found the numbers {_short(numbers)}, expected 0 to J-1 without gaps")
        return ColumnGroup(kind, field, stem, tuple(columns[part] for part in numbered))
    named = {part: name for part, name in columns.items() if part and not part.isdigit()}
    return ColumnGroup(kind, field, stem, tuple(named.values()), tuple(named)) if named else None


def _vector(kind: Kind, field: str, stem: str, columns: Mapping[str, str]) -> ColumnGroup | None:
    letters = {"quat": _QUAT_AXES, "rpy": ("roll", "pitch", "yaw")}.get(field, "xyz")
    size = _VECTOR_SIZE[field]
    for order in (
        tuple(letters),
        tuple("xyz")[:size],
        tuple(map(str, range(size))),
        tuple(map(str, range(1, size + 1))),
    ):
        if len(order) == size and set(columns) == set(order):
            declared = "wxyz" if field == "quat" and order == tuple(_QUAT_AXES) else None
            return ColumnGroup(kind, field, stem, tuple(columns[part] for part in order), quat_order=declared)
    return None


def _short(numbers: list[int]) -> str:
    text = ", ".join(map(str, numbers[:8]))
    return text + (", …" if len(numbers) > 8 else "")


assert all(field in FIELDS[kind] for kind, field, _ in SYNONYMS.values())
