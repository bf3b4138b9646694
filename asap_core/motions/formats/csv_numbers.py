"""Comma-separated numbers with or without a header line."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.rotations import Array

_MAX_BYTES = 1 << 28
_MAX_LINE = 1 << 16


def first_cells(path: Path) -> list[str]:
    """The cells of the first line; none if the file is no text."""
    try:
        with open(path, "rb") as stream:
            line = stream.readline(_MAX_LINE)
        text = line.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return []
    return [cell.strip() for cell in text.split(",")] if text.strip() else []


def number_width(path: Path) -> int:
    """Cells of the first line if all are numbers, else 0."""
    cells = first_cells(path)
    try:
        for cell in cells:
            float(cell)
    except ValueError:
        return 0
    return len(cells)


def read_csv(path: Path, header: bool) -> tuple[list[str], Array]:
    """The names in the header line (none without one) and the numbers (T, n).

    Raises:
        InputFileError: missing, too large, no text, lines of other lengths, or a cell that is no number.
    """
    if not path.is_file():
        raise InputFileError(path, "a folder, expected a file" if path.is_dir() else "missing")
    if path.stat().st_size > _MAX_BYTES:
        raise InputFileError(path, f"size: found {path.stat().st_size} bytes, expected at most {_MAX_BYTES}")
    try:
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(path, f"cannot be read as text: {error}") from None
    names = [cell.strip() for cell in lines[0].split(",")] if header and lines else []
    values = _parse(path, "\n".join(lines[1:] if header else lines))
    if header and values.shape[1] != len(names):
        raise InputFileError(path, f"columns: found {values.shape[1]}, expected {len(names)} as in the header")
    return names, values


def _parse(path: Path, text: str) -> Array:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a file without lines
            values = np.loadtxt(io.StringIO(text), delimiter=",", comments=None, ndmin=2)
    except ValueError as error:
        raise InputFileError(path, f"not a table of numbers: {error}") from None
    if not values.size:
        raise InputFileError(path, "found no numbers, expected one line for each frame")
    return values
