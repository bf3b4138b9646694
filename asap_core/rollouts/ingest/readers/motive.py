"""CSV exports of OptiTrack Motive, format 1.2x.

Line 1 holds pairs of key and value, then come rows Type, Name, ID and (from 1.24) Parent, a row Rotation/Position and
a row `Frame, Time (Seconds), X, Y, Z, W, …`. Quaternions are xyzw. Euler angles are in degrees about the body's own
axes in the order that `Rotation Type` names (Motive 1.6 on) and become wxyz quaternions. Empty cells are lost frames.
The time column is rounded (0.67 ms at 120 Hz), so t = Frame / Export Frame Rate. The up axis is a setting of the
export, y unless changed, and not written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.rollouts.ingest.readers.mocap import (
    Clock,
    Float,
    frames,
    length_unit,
    marker_stream,
    pose_stream,
    rate,
    unique,
)
from asap_core.rollouts.ingest.readers.text import Lines, cells, first_line, read_numbers, separator_of
from asap_core.rollouts.ingest.streams import Log, Stream

FORMAT = "motive_csv"
_HEADER_ROWS = 16
_LABELS = ("Type", "Name", "ID", "Parent")
_BODIES = ("Rigid Body", "Bone", "RigidBody")
_MARKERS = ("Marker", "Rigid Body Marker", "Bone Marker")
_EULER = re.compile(r"[XYZ]{3}")
_CAPTURE_START = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d{1,2})[.:](\d\d)[.:](\d\d)[.:,](\d{1,6})\s*(\S*)")
_BEFORE_NOON = {"am", "a.m.", "上午", "午前", "오전", "vorm."}
_AFTER_NOON = {"pm", "p.m.", "下午", "午後", "오후", "nachm."}


def sniff(path: Path) -> bool:
    """Text that starts with `Format Version`."""
    return path.is_file() and first_line(path).lstrip('"').startswith("Format Version")


@dataclass(frozen=True)
class _Column:
    """One column of numbers."""

    index: int
    type: str
    name: str
    id: str
    component: str
    axis: str


def read(path: Path) -> Log:
    """Rigid bodies and bones as poses, all labelled and unlabelled markers as one stream of markers.

    Raises:
        InputFileError: the header is cut or of another layout, or no frame can be read.
    """
    lines = Lines(path)
    header = next(lines, "")
    separator = separator_of(header)
    pairs = cells(header, separator)
    meta = dict(zip(pairs[::2], pairs[1::2], strict=False))
    columns = _columns(path, lines, separator)
    wanted = [0, 1, *(column.index for column in columns)]
    table = read_numbers(lines, separator, wanted, pad=True)
    values = {index: table.values[:, i] for i, index in enumerate(wanted)}
    clock, notes = _clock(path, meta, frames(path, values[0]), values[1])
    streams = tuple(_streams(path, meta, clock, columns, values))
    if not streams:
        raise InputFileError(path, f"no rigid body or marker among the columns; found types {_types(columns)}")
    left = sorted({column.component or column.axis for column in columns} - {"Rotation", "Position"} - {""})
    notes += [f"not read: columns {', '.join(left)}"] if left else []
    total = meta.get("Total Exported Frames", "")
    if total.isdigit() and int(total) != len(clock.frame):
        notes.append(f"the header tells of {total} frames, {len(clock.frame)} were read")
    return Log(path, FORMAT, sha256_file(path), streams, (*table.notes, *notes), _metadata(meta))


def _columns(path: Path, lines: Lines, separator: str) -> list[_Column]:
    """The columns of numbers below the header rows."""
    rows: list[list[str]] = []
    for line in lines:
        row = cells(line, separator)
        if row and row[0] == "Frame":
            break
        if len(rows) >= _HEADER_ROWS:
            raise InputFileError(path, f"no row that starts with Frame in the first {_HEADER_ROWS} lines")
        if any(row):
            rows.append(row)
    else:
        raise InputFileError(path, "ends before the row that starts with Frame")
    if len(rows) < 2:
        raise InputFileError(path, "no rows Type and Rotation/Position above the row that starts with Frame")
    named = {label: found for found in rows[:-1] for label in _LABELS if label in found[:2]}
    if not named:
        named = dict(zip(("Type", "Name", "ID"), rows[:-1], strict=False))
    width = len(row)

    def cell(label: str, i: int) -> str:
        found = named.get(label, [])
        return found[i] if i < len(found) else ""

    def component(i: int) -> str:
        return rows[-1][i] if i < len(rows[-1]) else ""

    return [
        _Column(i, cell("Type", i), cell("Name", i), cell("ID", i), component(i), row[i].upper())
        for i in range(2, width)
        if component(i)
    ]


def _types(columns: Sequence[_Column]) -> str:
    return ", ".join(sorted({column.type for column in columns}))[:200] or "none"


def _clock(path: Path, meta: dict[str, str], frame: NDArray[np.int64], stamped: Float) -> tuple[Clock, list[str]]:
    """Times by frame number; by the stamps if the two do not belong together."""
    key = "Export Frame Rate" if "Export Frame Rate" in meta else "Capture Frame Rate"
    if key not in meta:
        raise InputFileError(path, "field Export Frame Rate: missing")
    hertz = rate(path, key, meta[key])
    time = frame / hertz
    seen = np.isfinite(stamped)
    shift = np.median(stamped[seen] - time[seen]) if seen.any() else 0.0
    if seen.any() and np.abs(stamped[seen] - time[seen] - shift).max() > 0.5 / hertz:
        return Clock(stamped, frame), [f"Frame / {key} does not give the times of the file; its Time column is used"]
    return Clock(time, frame), []


def _streams(
    path: Path, meta: dict[str, str], clock: Clock, columns: Sequence[_Column], values: dict[int, Float]
) -> Iterator[Stream]:
    unit = length_unit(meta.get("Length Units", ""))
    things: dict[tuple[str, str, str], dict[tuple[str, str], int]] = {}
    for column in columns:
        thing = things.setdefault((column.type, column.name, column.id), {})
        thing.setdefault((column.component, column.axis), column.index)
    bodies = [key for key in things if key[0] in _BODIES and ("Position", "X") in things[key]]
    for key, name in zip(bodies, unique(key[1] for key in bodies), strict=True):
        pos = _vector(values, things[key], "Position", "XYZ")
        quat, order = _orientation(path, meta.get("Rotation Type", ""), values, things[key])
        if pos is not None and quat is not None:
            yield pose_stream(name, clock, pos, quat, {**unit, **order})
    markers = [key for key in things if key[0] in _MARKERS]
    found = [(key[1], _vector(values, things[key], "Position", "XYZ")) for key in markers]
    whole = [(name, pos) for name, pos in found if pos is not None]
    if whole:
        positions = np.stack([pos for _, pos in whole], axis=1)
        yield marker_stream("markers", clock, positions, [name for name, _ in whole], unit)


def _vector(values: dict[int, Float], thing: dict[tuple[str, str], int], component: str, axes: str) -> Float | None:
    if any((component, axis) not in thing for axis in axes):
        return None
    return np.stack([values[thing[component, axis]] for axis in axes], axis=1)


def _orientation(
    path: Path, kind: str, values: dict[int, Float], thing: dict[tuple[str, str], int]
) -> tuple[Float | None, dict[str, str]]:
    """Quaternions as written (xyzw), or wxyz from Euler angles."""
    quat = _vector(values, thing, "Rotation", "XYZW")
    if quat is not None:
        return quat, {"quat_order": "xyzw"}
    angles = _vector(values, thing, "Rotation", "XYZ")
    if angles is None:
        return None, {}
    if not _EULER.fullmatch(kind):
        raise InputFileError(path, f"field Rotation Type: found {kind!r}, expected Quaternion or an order such as XYZ")
    from scipy.spatial.transform import Rotation

    ordered = angles[:, ["XYZ".index(axis) for axis in kind]]
    out = np.full((len(angles), 4), np.nan)
    seen = np.isfinite(ordered).all(axis=1)
    if seen.any():
        out[seen] = Rotation.from_euler(kind, ordered[seen], degrees=True).as_quat(scalar_first=True)
    return out, {"quat_order": "wxyz"}


def _metadata(meta: dict[str, str]) -> dict[str, str]:
    start = capture_start(meta.get("Capture Start Time", ""))
    keys = ("Format Version", "Take Name", "Capture Start Time", "Rotation Type", "Length Units", "Coordinate Space")
    kept = {key.lower().replace(" ", "_"): meta[key] for key in keys if key in meta}
    return kept | ({"capture_start_local": start} if start else {})


def capture_start(text: str) -> str | None:
    """'2023-03-29 06.23.40.520 下午' as '2023-03-29T18:23:40.520' (the zone is not written); None if not understood."""
    found = _CAPTURE_START.match(text.strip())
    if not found:
        return None
    year, month, day, hour, minute, second, part, half = found.groups()
    number = int(hour)
    if half.lower() in _AFTER_NOON:
        number = number % 12 + 12
    elif half.lower() in _BEFORE_NOON:
        number %= 12
    elif half:
        return None
    return f"{year}-{month}-{day}T{number:02d}:{minute}:{second}.{part}"
