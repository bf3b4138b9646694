"""CSV exports of Vicon Nexus and Tracker: sections, each with a title, a rate, names, axes and units.

Trajectories give markers; Segments and Objects give poses, their rotation as a rotation vector (RX, RY, RZ in the unit
of the unit row, turned into wxyz) or as a quaternion (RX, RY, RZ, RW, left as xyzw). Frame 1 is time 0. The up axis is
not written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.rollouts.ingest.readers.assembly import rotvec_to_quat
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
from asap_core.rollouts.ingest.readers.text import Lines, cells, first_lines, read_numbers, separator_of
from asap_core.rollouts.ingest.streams import Log, Stream

FORMAT = "vicon_csv"
_POSES = ("segments", "objects", "global segments")
_TITLES = ("trajectories", *_POSES, "devices", "joints", "model outputs", "events", "imu", "subject", "wands")


def sniff(path: Path) -> bool:
    """Text whose first cell is a section's title, with a rate below."""
    if not path.is_file():
        return False
    head = [line.strip(' ,;\t"') for line in first_lines(path, 2)]
    return len(head) == 2 and head[0].lower() in _TITLES and head[1].replace(".", "", 1).isdigit()


def read(path: Path) -> Log:
    """Markers and poses of all sections; others are named in the notes.

    Raises:
        InputFileError: no section of markers or poses with a frame that can be read.
    """
    lines = Lines(path)
    streams: list[Stream] = []
    notes: list[str] = []
    for line in lines:
        title = line.strip(' ,;\t"').lower()
        if not title:
            continue
        if title not in ("trajectories", *_POSES):
            _skip(lines)
            notes.append(f"section {line.strip(' ,;')[:40]!r} not read")
            continue
        found, said = _section(path, lines, title)
        streams += found
        notes += said
    if not streams:
        raise InputFileError(path, "no section Trajectories, Segments or Objects; " + "; ".join(notes)[:200])
    return Log(path, FORMAT, sha256_file(path), tuple(streams), tuple(notes))


def _skip(lines: Lines) -> None:
    for line in lines:
        if not line.strip(" ,;\t"):
            return


def _section(path: Path, lines: Lines, title: str) -> tuple[list[Stream], Sequence[str]]:
    head = [next(lines, "") for _ in range(4)]
    separator = separator_of(head[2])
    hertz = rate(path, f"{title} rate", head[0].strip(' ,;\t"'))
    names, axes, units = (cells(text, separator) for text in head[1:])
    if len(axes) < 3 or axes[0].lower() != "frame":
        raise InputFileError(path, f"section {title}: found {', '.join(axes[:4])!r}, expected Frame, Sub Frame, X, …")
    things = _things(names, axes)
    wanted = [0, *(index for _, places in things for index in places.values())]
    table = read_numbers(lines, separator, wanted, pad=True, until_blank=True)
    values = {index: table.values[:, i] for i, index in enumerate(wanted)}
    frame = frames(path, values[0])
    clock = Clock((frame - 1) / hertz, frame)
    if title == "trajectories":
        return list(_markers(clock, things, values, units)), table.notes
    return list(_poses(clock, things, values, units)), table.notes


def _things(names: Sequence[str], axes: Sequence[str]) -> list[tuple[str, dict[str, int]]]:
    """Each named thing with the columns of its axes; a name stands above its first column."""
    found: list[tuple[str, dict[str, int]]] = []
    for index in range(2, len(axes)):
        name = names[index] if index < len(names) else ""
        if name or not found:
            found.append((name or "unnamed", {}))
        if axes[index]:
            found[-1][1].setdefault(axes[index].upper(), index)
    return [(name, places) for name, places in found if places]


def _unit(units: Sequence[str], index: int) -> str:
    return units[index] if index < len(units) else ""


def _markers(
    clock: Clock, things: list[tuple[str, dict[str, int]]], values: dict[int, Float], units: Sequence[str]
) -> Iterator[Stream]:
    whole = [(name, places) for name, places in things if all(axis in places for axis in "XYZ")]
    if whole:
        positions = np.stack([_vector(values, places, "XYZ") for _, places in whole], axis=1)
        unit = length_unit(_unit(units, whole[0][1]["X"]))
        yield marker_stream("markers", clock, positions, [name for name, _ in whole], unit)


def _poses(
    clock: Clock, things: list[tuple[str, dict[str, int]]], values: dict[int, Float], units: Sequence[str]
) -> Iterator[Stream]:
    for (_, places), label in zip(things, unique(name for name, _ in things), strict=True):
        if not all(axis in places for axis in ("RX", "RY", "RZ", "TX", "TY", "TZ")):
            continue
        pos = _vector(values, places, ("TX", "TY", "TZ"))
        declared = length_unit(_unit(units, places["TX"]))
        if "RW" in places:
            quat = _vector(values, places, ("RX", "RY", "RZ", "RW"))
            yield pose_stream(label, clock, pos, quat, {**declared, "quat_order": "xyzw"})
            continue
        vectors = _vector(values, places, ("RX", "RY", "RZ"))
        if _unit(units, places["RX"]).lower().startswith("deg"):
            vectors = np.deg2rad(vectors)
        yield pose_stream(label, clock, pos, rotvec_to_quat(vectors), {**declared, "quat_order": "wxyz"})


def _vector(values: dict[int, Float], places: dict[str, int], axes: Sequence[str]) -> Float:
    return np.stack([values[places[axis]] for axis in axes], axis=1)
