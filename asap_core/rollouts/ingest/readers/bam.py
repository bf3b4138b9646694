"""BAM's motor records: JSON with the bench's constants and `entries` of one motor, at irregular times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import read_json, sha256_file
from asap_core.rollouts.ingest.readers.assembly import Field, make_streams, unread
from asap_core.rollouts.ingest.readers.text import first_lines
from asap_core.rollouts.ingest.streams import Kind, Log

FORMAT = "bam"
_FIELDS: Mapping[str, tuple[Kind, str]] = {
    "position": ("joint_state", "joint_pos"),
    "speed": ("joint_state", "joint_vel"),
    "load": ("joint_state", "joint_torque"),
    "temp": ("joint_state", "temperature"),
    "input_volts": ("joint_state", "voltage"),
    "goal_position": ("joint_command", "joint_target"),
}
_NEEDED = ("timestamp", "position", "goal_position")


def sniff(path: Path) -> bool:
    """JSON whose first 64 kB name entries with a goal position."""
    if not path.is_file() or path.suffix.lower() != ".json":
        return False
    head = " ".join(first_lines(path, 4000))
    return '"entries"' in head and '"goal_position"' in head


def read(path: Path) -> Log:
    """The one motor as a robot of one joint; the bench's constants are metadata. `load` is the servo's own unit.

    Raises:
        InputFileError: not JSON, no entries, or an entry without time, position or goal.
    """
    content = read_json(path)
    entries = content.get("entries") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InputFileError(path, "field entries: found no list of objects, expected one object per sample")
    keys = [key for key in (*_FIELDS, "timestamp") if all(key in entry for entry in entries)]
    missing = [key for key in _NEEDED if key not in keys]
    if missing:
        raise InputFileError(path, f"field entries: {', '.join(missing)} missing in one or more of {len(entries)}")
    columns = {key: np.array([_number(path, key, entry[key]) for entry in entries]) for key in keys}
    fields = [Field(*_FIELDS[key], columns[key][:, None]) for key in keys if key in _FIELDS]
    return Log(
        path,
        FORMAT,
        sha256_file(path),
        make_streams(path.stem, fields, receive_time=columns["timestamp"], declared={"angle_unit": "rad"}),
        unread("keys of entries", sorted({str(key) for entry in entries for key in entry} - set(keys))),
        {key: value for key, value in content.items() if isinstance(value, str | int | float)},
    )


def _number(path: Path, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputFileError(path, f"field entries.{key}: found {str(value)[:40]!r}, expected a number")
    return float(value)
