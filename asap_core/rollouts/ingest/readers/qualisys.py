"""TSV exports of Qualisys Track Manager: 3D markers, and 6D rigid bodies with position, angles, residual, Rot[0..8].

Header lines are KEY<TAB>value. A frame has, if so exported, its number and time in front. 6D: the rotation matrix is
stored by columns; it becomes a wxyz quaternion. Lost bodies and markers are zeros or empty. Lengths are mm. The up axis
is a setting of the project and not written.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.rollouts.ingest.readers.assembly import matrices_to_quat
from asap_core.rollouts.ingest.readers.mocap import (
    Clock,
    Float,
    frames,
    marker_stream,
    pose_stream,
    rate,
    unique,
    zeros_to_nan,
)
from asap_core.rollouts.ingest.readers.text import Lines, Numbers, cells, first_line, read_numbers, to_number
from asap_core.rollouts.ingest.streams import Log, Stream

FORMAT = "qualisys_tsv"
_KEY = re.compile(r"[A-Z][A-Z_0-9]+")
_BODY_COLUMNS = 16
_HEADER_LINES = 1000
_UNIT = {"length_unit": "mm"}
_KEPT = ("TIME_STAMP", "DATA_INCLUDED", "FILE_VERSION")


def sniff(path: Path) -> bool:
    """Text whose first line is a key of QTM's header."""
    return path.is_file() and first_line(path).split("\t")[0] in ("NO_OF_FRAMES", "FILE_VERSION")


def read(path: Path) -> Log:
    """Markers of a 3D file or poses of a 6D file.

    Raises:
        InputFileError: the header lacks the rate or the names, columns do not fit the names, or no frame can be read.
    """
    lines = Lines(path)
    meta, titles = _header(path, lines)
    hertz = rate(path, "FREQUENCY", meta.get("FREQUENCY", [""])[0])
    names = [name for name in meta.get("MARKER_NAMES", []) + meta.get("BODY_NAMES", []) if name]
    bodies = "BODY_NAMES" in meta
    if not names:
        raise InputFileError(path, "header: no MARKER_NAMES and no BODY_NAMES")
    first = next(lines, "")
    lines.put_back(first)
    size = _BODY_COLUMNS if bodies else 3
    width = len(cells(first.rstrip("\t"), "\t"))
    front = _front(path, titles, width, size * len(names), bodies)
    table = read_numbers(lines, "\t", list(range(front + size * len(names))), pad=True)
    clock = _clock(path, table, front, titles, hertz)
    block = table.values[:, front:].reshape(len(clock.time), len(names), size)
    notes = list(table.notes)
    streams = _bodies(clock, block, names, notes) if bodies else _markers(clock, block, names, notes)
    count = meta.get("NO_OF_FRAMES", [""])[0]
    if count.isdigit() and int(count) != len(clock.time):
        notes.append(f"the header's NO_OF_FRAMES is {count}, {len(clock.time)} were read")
    kept: dict[str, str] = {
        key: " ".join(meta[key]) for key in ("TIME_STAMP", "DATA_INCLUDED", "FILE_VERSION") if key in meta
    }
    return Log(path, FORMAT, sha256_file(path), tuple(streams), tuple(notes), kept)


def _header(path: Path, lines: Lines) -> tuple[dict[str, list[str]], list[str]]:
    """Keys with their values, and the row of column titles, which may be missing."""
    meta: dict[str, list[str]] = {}
    titles: list[str] = []
    for line in lines:
        row = cells(line, "\t")
        if row and to_number(row[0], "\t") is not None and row[0]:
            lines.put_back(line)
            return meta, titles
        if row and _KEY.fullmatch(row[0]) and len(row) > 1 and row[0] not in meta:
            meta[row[0]] = [cell for cell in row[1:] if cell] or [""]
        elif any(row) and row[0] != "EVENT":
            titles = row
        if lines.number > _HEADER_LINES:
            break
    raise InputFileError(path, "ends before the first frame")


def _front(path: Path, titles: list[str], width: int, expected: int, bodies: bool) -> int:
    """How many columns come before the data: none, the frame, the time, or both."""
    said = [title.strip("[]").lower() for title in titles[:2]]
    front = sum(title in ("frame", "time") for title in said)
    if not titles:
        front = width - expected
    if not 0 <= front <= 2 or (bodies and width != front + expected):
        raise InputFileError(
            path, f"found {width} columns, expected {expected} and a frame and a time in front at most"
        )
    return front


def _clock(path: Path, table: Numbers, front: int, titles: list[str], hertz: float) -> Clock:
    values = table.values
    if not len(values):
        raise InputFileError(path, table.notes[0] if table.notes else "no frames")
    only_time = front == 1 and bool(titles) and titles[0].strip("[]").lower() == "time"
    frame = frames(path, values[:, 0]) if front and not only_time else np.arange(1, len(values) + 1)
    return Clock((frame - 1) / hertz, frame)


def _markers(clock: Clock, block: Float, names: list[str], notes: list[str]) -> list[Stream]:
    positions, lost = zeros_to_nan(block)
    if lost:
        notes.append(f"{lost} marker positions of exactly 0, 0, 0 are taken as lost")
    return [marker_stream("markers", clock, positions, names, _UNIT)]


def _bodies(clock: Clock, block: Float, names: list[str], notes: list[str]) -> list[Stream]:
    streams = []
    for index, name in enumerate(unique(names)):
        body = block[:, index]
        pos, lost = zeros_to_nan(body[:, :3])
        if lost:
            notes.append(f"{name}: {lost} positions of exactly 0, 0, 0 are taken as lost")
        matrices = body[:, 7:].reshape(-1, 3, 3).transpose(0, 2, 1)
        notes += _check_angles(name, body[:, 3:6], matrices)
        streams.append(pose_stream(name, clock, pos, matrices_to_quat(matrices), {**_UNIT, "quat_order": "wxyz"}))
    return streams


def _check_angles(name: str, degrees: Float, matrices: Float) -> list[str]:
    """Whether QTM's default angles (about x, then the new y, then the new z) give the same matrix."""
    from scipy.spatial.transform import Rotation

    seen = np.isfinite(degrees).all(axis=1) & np.isfinite(matrices).all(axis=(1, 2)) & (matrices != 0).any(axis=(1, 2))
    if not seen.any():
        return []
    made = Rotation.from_euler("XYZ", degrees[seen], degrees=True).as_matrix()
    if np.abs(made - matrices[seen]).max() < 1e-2:
        return []
    return [
        f"{name}: the three angles do not give Rot[0..8] in QTM's default order; the matrix is used, stored by columns"
    ]
