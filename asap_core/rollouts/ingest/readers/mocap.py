"""What motion capture exports share: rigid bodies become `pose` streams, markers `markers` streams, axes as written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.streams import Stream

Float = NDArray[np.float64]
_LENGTH_UNITS = {"m": "m", "meter": "m", "meters": "m", "metre": "m", "metres": "m"} | {
    "cm": "cm",
    "centimeter": "cm",
    "centimeters": "cm",
    "mm": "mm",
    "millimeter": "mm",
    "millimeters": "mm",
    "millimetre": "mm",
    "millimetres": "mm",
}


@dataclass(frozen=True)
class Clock:
    """The frames of an export."""

    time: Float
    """(N,) s, by frame number and rate."""
    frame: NDArray[np.int64]
    """(N,) as numbered in the file."""


def length_unit(text: str) -> dict[str, str]:
    """`{"length_unit": …}` for a unit's name, {} for an unknown or empty one."""
    unit = _LENGTH_UNITS.get(text.strip().lower())
    return {} if unit is None else {"length_unit": unit}


def rate(path: Path, name: str, text: str) -> float:
    """A rate in Hz.

    Raises:
        InputFileError: not a number from 0.1 to 100 kHz.
    """
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        value = float("nan")
    if not 0.1 <= value <= 1e5:
        raise InputFileError(path, f"field {name}: found {text[:40]!r}, expected a rate from 0.1 to 100000 Hz")
    return value


def frames(path: Path, column: Float) -> NDArray[np.int64]:
    """A column of frame numbers.

    Raises:
        InputFileError: no row, or a value that is no whole number.
    """
    if not len(column):
        raise InputFileError(path, "no frames")
    if not np.isfinite(column).all() or (column != np.floor(column)).any() or np.abs(column).max() > 2**53:
        row = int(np.argmax(~np.isfinite(column) | (column != np.floor(column))))
        raise InputFileError(path, f"frame numbers: found {column[row]} in row {row + 1}, expected whole numbers")
    return column.astype(np.int64)


def pose_stream(name: str, clock: Clock, pos: Float, quat: Float, declared: Mapping[str, str]) -> Stream:
    """One rigid body; `tracking_valid` is 0 where it was lost (NaN)."""
    seen = np.asarray(np.isfinite(pos).all(axis=1) & np.isfinite(quat).all(axis=1))
    values: dict[str, Float] = {
        "pos": np.where(seen[:, None], pos, np.nan),
        "quat": np.where(seen[:, None], quat, np.nan),
        "tracking_valid": seen.astype(np.float64),
    }
    return Stream(
        name, "pose", values, source_time=clock.time, sequence=clock.frame, declared={"time_unit": "s", **declared}
    )


def marker_stream(
    name: str, clock: Clock, positions: Float, labels: Sequence[str], declared: Mapping[str, str]
) -> Stream:
    """Markers (N, M, 3), NaN where occluded."""
    seen = np.asarray(np.isfinite(positions).all(axis=2))
    return Stream(
        name,
        "markers",
        {"marker_pos": np.where(seen[:, :, None], positions, np.nan)},
        source_time=clock.time,
        sequence=clock.frame,
        labels=unique(labels),
        declared={"time_unit": "s", **declared},
    )


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Names made different by a number where one comes twice."""
    counts: dict[str, int] = {}
    out = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        out.append(name if counts[name] == 1 else f"{name}#{counts[name]}")
    return tuple(out)


def zeros_to_nan(positions: Float) -> tuple[Float, int]:
    """Points at exactly (0, 0, 0), which is how some exports write a lost one, as NaN; and how many."""
    lost = (positions == 0).all(axis=-1)
    return np.where(lost[..., None], np.nan, positions), int(lost.sum())
