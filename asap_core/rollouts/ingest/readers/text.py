"""Lines and numbers of text tables: CSV, TSV and their kin, read in blocks so that memory follows the numbers only."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError

_MAX_LINE = 1 << 22
_BLOCK = 4096
_SNIFF_BYTES = 4096
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+(?:[eE][-+]?\d+)?\s*")
SEPARATORS = (",", "\t", ";")


@dataclass(frozen=True)
class Numbers:
    """What a block of rows held."""

    values: NDArray[np.float64]
    """(N, C), NaN where a cell is empty."""
    notes: tuple[str, ...]
    """Why the reading ended before the end of the table, if it did."""


def encoding_of(head: bytes) -> str | None:
    """The text encoding that the first bytes of a file show, None for binary content."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return None if b"\0" in head else "utf-8-sig"


def first_line(path: Path) -> str:
    """The first line of a text file for sniffing, '' if there is none or the file is binary or unreadable."""
    return next(iter(first_lines(path, 1)), "")


def first_lines(path: Path, count: int) -> list[str]:
    """Up to `count` whole first lines within the first 64 kB for sniffing; never raises."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(1 << 16)
    except OSError:
        return []
    encoding = encoding_of(head[:_SNIFF_BYTES])
    if encoding is None:
        return []
    return head.decode(encoding, errors="replace").splitlines()[:count]


class Lines:
    """The lines of a text file, without their ends.

    Attributes:
        number: of the last line given, from 1.
        open_end: the last line given has no line end, so it may be cut.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        self.open_end = False
        self._done = False
        self._waiting: list[str] = []
        try:
            with open(path, "rb") as stream:
                head = stream.read(_SNIFF_BYTES)
            encoding = encoding_of(head)
            if not head:
                raise InputFileError(path, "empty")
            if encoding is None:
                raise InputFileError(
                    path, "binary content (a zero byte), expected text as UTF-8 or UTF-16 with its mark"
                )
            self._stream = open(path, encoding=encoding, errors="replace")  # noqa: SIM115
        except OSError as error:
            found = "missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
            raise InputFileError(path, found) from None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._waiting.pop() if self._waiting else self._read()
        self.number += 1
        self.open_end = not line.endswith("\n")
        return line.rstrip("\n")

    def _read(self) -> str:
        if self._done:
            raise StopIteration
        try:
            line = self._stream.readline(_MAX_LINE)
        except (OSError, UnicodeError) as error:
            raise InputFileError(self.path, f"line {self.number + 1}: cannot be read: {error}") from None
        if not line:
            self._stream.close()
            self._done = True
            raise StopIteration
        if len(line) >= _MAX_LINE:
            raise InputFileError(self.path, f"line {self.number + 1}: longer than {_MAX_LINE} characters; no table")
        return line

    def put_back(self, line: str) -> None:
        """Give `line` again next."""
        self._waiting.append(line if self.open_end else line + "\n")
        self.number -= 1


def cells(line: str, separator: str) -> list[str]:
    """The cells of one line, quotes and outer blanks removed."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:
        return [cell.strip().strip('"') for cell in line.split(separator)]


def separator_of(line: str) -> str:
    """The separator that a header line uses most."""
    return max(SEPARATORS, key=line.count)


def read_numbers(
    lines: Lines, separator: str, columns: Sequence[int], *, pad: bool = False, until_blank: bool = False
) -> Numbers:
    """The numbers of some columns, up to the end of the file or the first row that is not numbers.

    Args:
        lines: stands on the first row; afterwards behind the last.
        separator: between cells. With ';' and tabs, decimal commas are understood.
        columns: indices of the wanted columns.
        pad: rows may be shorter than the header, their missing cells are empty (mocap exports cut empty tails).
        until_blank: an empty line ends the table; otherwise it is passed over.
    """
    blocks: list[NDArray[np.float64]] = []
    notes: list[str] = []
    while rows := _take(lines, until_blank):
        start = lines.number - len(rows) + 1
        if lines.open_end and rows[-1]:
            rows.pop()
            notes.append(f"line {lines.number} has no line end and may be cut; it is left out")
        ended = bool(rows) and until_blank and not rows[-1].strip(separator + " ")
        texts = [(start + i, row) for i, row in enumerate(rows) if row.strip(separator + " ")]
        block, bad = _block(texts, separator, columns, pad)
        blocks.append(block)
        if bad:
            notes.insert(0, f"{bad}; the rows from there on are left out")
        if bad or ended:
            break
    values = np.concatenate(blocks) if blocks else np.empty((0, len(columns)))
    return Numbers(values, tuple(notes))


def _take(lines: Lines, until_blank: bool) -> list[str]:
    """The next block of lines, with the blank one that ends a table if `until_blank`."""
    rows: list[str] = []
    for line in islice(lines, _BLOCK):
        rows.append(line)
        if until_blank and not line.strip(" ,;\t"):
            break
    return rows


def _block(
    rows: list[tuple[int, str]], separator: str, columns: Sequence[int], pad: bool
) -> tuple[NDArray[np.float64], str | None]:
    """Numbers of the rows, and what is wrong with the first that has none."""
    need = max(columns) + 1
    if not rows:
        return np.empty((0, len(columns))), None
    if all(row.count(separator) + 1 >= need and '"' not in row for _, row in rows):
        fast = _fast([row for _, row in rows], separator, columns)
        if fast is not None:
            return fast, None
    out = np.full((len(rows), len(columns)), np.nan)
    for k, (number, row) in enumerate(rows):
        found = cells(row, separator)
        if len(found) < need and not pad:
            return out[:k], f"line {number}: found {len(found)} cells, expected at least {need}"
        found += [""] * (need - len(found))
        for c, column in enumerate(columns):
            value = to_number(found[column], separator)
            if value is None:
                return out[:k], f"line {number}, column {column + 1}: found {found[column][:40]!r}, expected a number"
            out[k, c] = value
    return out, None


def _fast(rows: list[str], separator: str, columns: Sequence[int]) -> NDArray[np.float64] | None:
    """The same through pandas, None where it does not read every cell as a number."""
    import pandas as pd

    width = max(row.count(separator) for row in rows) + 1
    try:
        frame = pd.read_csv(
            io.StringIO("\n".join(rows)),
            sep=separator,
            header=None,
            names=list(range(width)),
            usecols=sorted(set(columns)),
            dtype=np.float64,
            index_col=False,
            float_precision="round_trip",
            quoting=csv.QUOTE_NONE,
        )
    except (ValueError, OverflowError, pd.errors.ParserError):
        return None
    return frame[list(columns)].to_numpy() if len(frame) == len(rows) else None


def to_number(cell: str, separator: str = ",") -> float | None:
    """A cell as a number, NaN if empty, None if it is something else; '1,5' only where commas do not separate."""
    if not cell or cell.lower() in ("nan", "na", "n/a", "null", "none"):
        return math.nan
    if separator != "," and _DECIMAL_COMMA.fullmatch(cell):
        cell = cell.replace(",", ".")
    elif cell.lower() in ("true", "false"):
        return float(cell.lower() == "true")
    try:
        return float(cell) if "_" not in cell else None
    except ValueError:
        return None
