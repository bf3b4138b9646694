"""The older OptiTrack CSV, format 1.1 ("OptiTrack Export Data"): each line says by its first cell what it is.

`frame, index, time, bodies, {id, x, y, z, qx, qy, qz, qw, yaw, pitch, roll}, markers, {x, y, z, id, name}`. A body
or marker that a frame does not list was lost. Length unit and up axis are not written (Motive's own are m and y).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.rollouts.ingest.readers.mocap import Clock, Float, marker_stream, pose_stream
from asap_core.rollouts.ingest.readers.text import Lines, cells, first_lines
from asap_core.rollouts.ingest.streams import Log, Stream

FORMAT = "optitrack_v1"
_BODY_CELLS, _MARKER_CELLS = 11, 5
_FEW_FRAMES = 0.01
_MANY_MARKERS = 200


def sniff(path: Path) -> bool:
    """Text whose first lines hold the comment of this export."""
    return path.is_file() and any("OptiTrack Export Data" in line for line in first_lines(path, 5))


@dataclass
class _Take:
    """What the lines held so far."""

    index: list[int] = field(default_factory=list)
    time: list[float] = field(default_factory=list)
    bodies: dict[int, list[tuple[int, list[float]]]] = field(default_factory=dict)
    """By id: (row, position and quaternion)."""
    markers: dict[int, list[tuple[int, list[float]]]] = field(default_factory=dict)
    body_names: dict[int, str] = field(default_factory=dict)
    marker_names: dict[int, str] = field(default_factory=dict)
    info: dict[str, str] = field(default_factory=dict)
    left_handed: bool = False


def read(path: Path) -> Log:
    """Bodies as poses and markers by their ids.

    Raises:
        InputFileError: no frame can be read, or the axes are left-handed.
    """
    take = _Take()
    notes: list[str] = []
    lines = Lines(path)
    for line in lines:
        try:
            if lines.open_end and line.strip():
                raise ValueError("has no line end and may be cut")
            _line(take, cells(line, ","))
        except (ValueError, IndexError) as error:
            notes.append(f"line {lines.number}: {error}; the frames from there on are left out")
            break
    if not take.index:
        raise InputFileError(path, notes[0] if notes else "no frames")
    if take.left_handed:
        raise InputFileError(path, "left-handed axes; export the take with right-handed axes")
    clock = Clock(np.array(take.time), np.array(take.index, dtype=np.int64))
    streams = [*_bodies(take, clock), *_markers(take, clock, notes)]
    if not streams:
        raise InputFileError(path, "frames without rigid bodies and markers")
    return Log(path, FORMAT, sha256_file(path), tuple(streams), tuple(notes), {"info": take.info})


def _line(take: _Take, row: list[str]) -> None:
    """Take in one line.

    Raises:
        ValueError, IndexError: a frame that does not hold what it counts.
    """
    kind = row[0].lower() if row else ""
    if kind == "info" and len(row) > 2:
        take.info[row[1]] = row[2]
    elif kind == "lefthanded":
        take.left_handed = True
    elif kind == "rigidbody" and len(row) > 2 and row[2].lstrip("-").isdigit() and not take.index:
        take.body_names[int(row[2])] = row[1]
    elif kind == "frame":
        _frame(take, row)


def _frame(take: _Take, row: list[str]) -> None:
    k, number = len(take.index), int(row[1])
    time = float(row[2])
    bodies, at = int(row[3]), 4
    found_bodies = [_numbers(row, at + _BODY_CELLS * i, 8) for i in range(bodies)]
    at += _BODY_CELLS * bodies
    markers = int(row[at])
    found_markers = []
    for i in range(markers):
        place = at + 1 + _MARKER_CELLS * i
        found_markers.append((int(float(row[place + 3])), _numbers(row, place, 3), row[place + 4]))
    take.index.append(number)
    take.time.append(time)
    for body in found_bodies:
        take.bodies.setdefault(int(body[0]), []).append((k, body[1:]))
    for identity, position, name in found_markers:
        take.markers.setdefault(identity, []).append((k, position))
        take.marker_names.setdefault(identity, name)


def _numbers(row: list[str], at: int, count: int) -> list[float]:
    if len(row) < at + count:
        raise ValueError(f"found {len(row)} cells, expected at least {at + count}")
    return [float(cell) for cell in row[at : at + count]]


def _bodies(take: _Take, clock: Clock) -> Iterator[Stream]:
    for identity, rows in take.bodies.items():
        values = _filled(rows, len(clock.time), 7)
        name = take.body_names.get(identity, f"body {identity}")
        yield pose_stream(name, clock, values[:, :3], values[:, 3:], {"quat_order": "xyzw"})


def _markers(take: _Take, clock: Clock, notes: list[str]) -> Iterator[Stream]:
    total = len(clock.time)
    few = 0 if len(take.markers) <= _MANY_MARKERS else _FEW_FRAMES * total
    kept = {identity: rows for identity, rows in take.markers.items() if len(rows) > few}
    if len(kept) < len(take.markers):
        notes.append(f"{len(take.markers) - len(kept)} markers seen in less than 1 % of the frames are left out")
    if kept:
        positions = np.stack([_filled(rows, total, 3) for rows in kept.values()], axis=1)
        labels = [take.marker_names[identity] or f"marker {identity}" for identity in kept]
        yield marker_stream("markers", clock, positions, labels, {})


def _filled(rows: list[tuple[int, list[float]]], total: int, width: int) -> Float:
    out = np.full((total, width), np.nan)
    out[[k for k, _ in rows]] = [values for _, values in rows]
    return out
