"""A robot's log as a plain table: one header line, one row per sample, columns named as labs name them.

Read so are FSM deploy logs (`actual_q_0`, `target_q_0`, `kp_0`, …), the logger of unitree_cpp_deploy (`q_des_0`,
`q_0`, `dq_0`, `tau_0`, `imu_rpy_0`, …), the torque-limited pendulum of DFKI (`time,position,velocity,torque`) and
this product's own CSV export. What the names do not say, a `ColumnMap` does. Units are left open unless a name
states them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.rollouts.ingest.readers.assembly import make_streams, table_fields, unread
from asap_core.rollouts.ingest.readers.column_map import ColumnMap
from asap_core.rollouts.ingest.readers.field_names import (
    ColumnGroup,
    group_columns,
    scalar,
    seconds_per,
    time_column,
)
from asap_core.rollouts.ingest.readers.text import Lines, cells, first_line, read_numbers, separator_of
from asap_core.rollouts.ingest.streams import Kind, Log

FORMAT = "csv"
_COMMANDS = {"joint_pos": "joint_target", "joint_vel": "joint_vel_target", "joint_torque": "joint_torque_target"}


def sniff(path: Path) -> bool:
    """Text whose first line names the time and at least one joint field."""
    if not path.is_file():
        return False
    line = first_line(path)
    names = cells(line, separator_of(line))
    try:
        groups, _ = group_columns(names)
    except ValueError:
        return True
    return any(group.kind in ("joint_state", "joint_command") for group in groups)


@dataclass(frozen=True)
class _Plan:
    """Which columns are read as what."""

    groups: list[ColumnGroup]
    scalars: dict[str, str]
    """Column to scalar name."""
    time: str | None
    seconds: float | None
    """Per unit of the time column, None if open."""
    rest: list[str]


def read(path: Path, columns: ColumnMap | None = None) -> Log:
    """The table's streams, all on its one time column.

    Args:
        path: the table; separated by commas, semicolons or tabs.
        columns: what the columns' names do not say.

    Raises:
        InputFileError: no table, no joint column, a mapped column missing, or not one row of numbers.
    """
    columns = columns or ColumnMap()
    lines = Lines(path)
    header = next(lines, "")
    separator = separator_of(header)
    names = cells(header, separator)
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        names = [f"{name}#{i}" if name in twice else name for i, name in enumerate(names)]
    plan = _plan(path, names, columns)
    wanted = [column for group in plan.groups for column in group.columns] + list(plan.scalars)
    wanted += [plan.time] if plan.time else []
    numbers = read_numbers(lines, separator, [names.index(column) for column in wanted])
    if not len(numbers.values):
        raise InputFileError(path, numbers.notes[0] if numbers.notes else "a header without rows")
    table = dict(zip(wanted, numbers.values.T, strict=True))
    declared = dict(columns.declared) | ({"time_unit": "s"} if plan.seconds else {})
    streams = make_streams(
        path.stem,
        table_fields(path, plan.groups, table),
        {name: table[column] for column, name in plan.scalars.items()},
        receive_time=_scaled(table[plan.time], plan.seconds) if plan.time else None,
        declared=declared,
    )
    notes = numbers.notes + unread("columns", plan.rest)
    notes += () if plan.time else ("has no time column; name it in a column map",)
    return Log(
        path, FORMAT, sha256_file(path), streams, notes, {"columns": {g.field: list(g.columns) for g in plan.groups}}
    )


def _plan(path: Path, names: Sequence[str], columns: ColumnMap) -> _Plan:
    try:
        groups = columns.groups(names)
        spoken = {column for group in groups for column in group.columns} | {columns.time}
        found, rest = group_columns([name for name in names if name not in spoken])
    except ValueError as error:
        raise InputFileError(path, str(error)) from None
    settled = {(group.kind, group.field) for group in groups}
    for group in found:
        if (group.kind, group.field) in settled:
            rest += group.columns
        else:
            groups.append(group)
    if path.stem.lower().endswith(("_desired", "_target", "_cmd")):
        groups = [_as_command(group) for group in groups]
    if not any(group.kind in ("joint_state", "joint_command") for group in groups):
        shown = ", ".join(names)[:200]
        raise InputFileError(path, f"no column names a joint field (q_0, dq_0, …); found {shown}. Write a column map")
    time, seconds = columns.time, seconds_per(columns.time_unit) if columns.time_unit else None
    if time is None:
        time, seconds = time_column(rest) or (None, None)
    elif time not in names:
        raise InputFileError(path, f"column map: no column {time!r} for the time; found {', '.join(names)[:200]}")
    scalars = {name: known for name in rest if (known := scalar(name))}
    rest = [name for name in rest if name != time and name not in scalars and name]
    return _Plan(groups, scalars, time, seconds, rest)


def _as_command(group: ColumnGroup) -> ColumnGroup:
    """A file of desired values holds commands under the names of states."""
    if group.kind != "joint_state" or group.field not in _COMMANDS:
        return group
    kind: Kind = "joint_command"
    return replace(group, kind=kind, field=_COMMANDS[group.field])


def _scaled(values: NDArray[np.float64], seconds: float | None) -> NDArray[np.float64]:
    return values if seconds in (None, 1.0) else values * seconds
