"""SAGE recordings: a folder with control.csv, state_motor.csv and, mostly, event.csv and joint_list.txt.

Cells hold quoted lists. Stamps count microseconds in the SO-101 recorder and tens of them in the Unitree recorder
while SAGE's own analysis divides by 1e6, so the unit is left open; `receive_time` is the stamp as written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.files import sha256_tree
from asap_core.rollouts.ingest.readers.assembly import Field, make_streams, unread
from asap_core.rollouts.ingest.readers.text import Lines, cells, first_line, to_number
from asap_core.rollouts.ingest.streams import Kind, Log, Stream

FORMAT = "sage"
_FILES: Mapping[str, Kind] = {"state_motor.csv": "joint_state", "control.csv": "joint_command"}
_FIELDS: Mapping[Kind, Mapping[str, str]] = {
    "joint_state": {"positions": "joint_pos", "velocities": "joint_vel", "torques": "joint_torque"}
    | {"temperatures": "temperature"},
    "joint_command": {"positions": "joint_target", "velocities": "joint_vel_target", "torques": "joint_torque_target"},
}


def sniff(path: Path) -> bool:
    """A folder with state_motor.csv and control.csv of SAGE's columns."""
    return path.is_dir() and all(first_line(path / name).startswith("type,timestamp,") for name in _FILES)


def read(path: Path) -> Log:
    """Motor states, commands and events.

    Raises:
        InputFileError: a file is missing, has no usable row, or lists of different lengths.
    """
    names, notes = _joint_names(path)
    streams: list[Stream] = []
    for file, kind in _FILES.items():
        stream, said = _motors(path / file, kind, names)
        streams.append(stream)
        notes += said
    if (path / "event.csv").is_file():
        stream, said = _events(path / "event.csv")
        streams.append(stream)
        notes += said
    return Log(path, FORMAT, sha256_tree(path), tuple(streams), tuple(notes))


def _joint_names(path: Path) -> tuple[tuple[str, ...] | None, list[str]]:
    file = path / "joint_list.txt"
    if not file.is_file():
        return None, ["has no joint_list.txt: the joints' names and order are open"]
    return tuple(line.strip() for line in Lines(file) if line.strip()), []


def _motors(path: Path, kind: Kind, names: tuple[str, ...] | None) -> tuple[Stream, list[str]]:
    lines = Lines(path)
    header = cells(next(lines, ""), ",")
    known = {column: _FIELDS[kind][name] for column, name in enumerate(header) if name in _FIELDS[kind]}
    if "positions" not in header or "timestamp" not in header:
        raise InputFileError(path, f"columns: found {', '.join(header)[:200]}, expected type, timestamp, positions")
    times: list[float] = []
    values: dict[int, list[list[float]]] = {column: [] for column in known}
    notes: list[str] = []
    for row, problem in _rows(lines, len(header)):
        if problem is None:
            width = (
                len(values[min(known)][0]) if times else len(names or _numbers(row[header.index("positions")]) or ())
            )
            time, lists, problem = _sample(row, header.index("timestamp"), list(known), width)
        if problem is not None:
            notes.append(f"{path.name} line {lines.number}: {problem}; the rows from there on are left out")
            break
        times.append(time)
        for column, item in lists.items():
            values[column].append(item)
    if not times:
        raise InputFileError(path, notes[0] if notes else "no rows")
    fields = [Field(kind, known[column], np.array(rows), names) for column, rows in values.items()]
    rest = [name for column, name in enumerate(header) if column not in known and name not in ("type", "timestamp")]
    (stream,) = make_streams(path.stem, fields, receive_time=np.array(times))
    return stream, notes + list(unread(f"columns of {path.name}", rest))


def _sample(
    row: list[str], stamp: int, columns: list[int], width: int
) -> tuple[float, dict[int, list[float]], str | None]:
    """Time and lists of a row, and what is wrong with them."""
    time = to_number(row[stamp])
    lists = {column: _numbers(row[column]) for column in columns}
    whole = {column: item for column, item in lists.items() if item is not None and len(item) == width}
    if time is None or not np.isfinite(time) or len(whole) < len(columns):
        return 0.0, {}, f"expected a time and lists of {width} numbers"
    return time, whole, None


def _rows(lines: Lines, width: int) -> Iterator[tuple[list[str], str | None]]:
    """The cells of each row, or what is wrong with it."""
    for line in lines:
        if lines.open_end:
            yield [], "has no line end and may be cut"
            return
        if not line.strip():
            continue
        row = cells(line, ",")
        yield row, None if len(row) == width else f"found {len(row)} cells, expected {width}"


def _numbers(cell: str) -> list[float] | None:
    """The numbers of a list such as '[0.1, 0.2]', None if it is not one."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    found = [to_number(item.strip()) for item in text[1:-1].split(",")]
    return None if any(item is None for item in found) else [item for item in found if item is not None]


def _events(path: Path) -> tuple[Stream, list[str]]:
    lines = Lines(path)
    header = cells(next(lines, ""), ",")
    if "timestamp" not in header or "event" not in header:
        raise InputFileError(path, f"columns: found {', '.join(header)[:200]}, expected timestamp and event")
    times: list[float] = []
    texts: list[str] = []
    notes = []
    for row, problem in _rows(lines, len(header)):
        time = to_number(row[header.index("timestamp")]) if problem is None else None
        if time is None:
            notes.append(f"event.csv line {lines.number}: {problem or 'no time'}; the rows from there on are left out")
            break
        times.append(time)
        texts.append(row[header.index("event")])
    text: NDArray[np.str_] = np.array(texts, dtype=np.str_)
    return Stream("event/event", "event", {"text": text}, receive_time=np.array(times, dtype=np.float64)), notes
