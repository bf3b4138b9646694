"""Parquet tables with named columns and a JSON header in the schema metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import atomic_file
from asap_core.rotations import Array

_HEADER_KEY = b"asap"
_LOWEST_FPS, _HIGHEST_FPS = 1.0, 1000.0
"""Hz; what lies outside is another unit, and would fill the memory in filters and resampling."""


@dataclass(frozen=True)
class Source:
    """Where a record came from."""

    path: str
    """The file as the user named it, relative to the project where it lies inside."""
    sha256: str
    """Hex digest of that file's bytes."""
    tool: str
    """What read or made it, with the format."""

    def to_header(self) -> dict[str, str]:
        """As a JSON object."""
        return asdict(self)


def write_table(path: Path | str, columns: Mapping[str, Array], header: Mapping[str, Any]) -> None:
    """Write equally long float columns and a header (with keys `format` and `version`) atomically."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: np.ascontiguousarray(values, dtype=np.float64) for name, values in columns.items()})
    text = json.dumps(header, sort_keys=True, allow_nan=False)
    with atomic_file(path) as partial, partial.open("wb") as stream:  # pyarrow takes no path of another encoding
        pq.write_table(table.replace_schema_metadata({_HEADER_KEY: text.encode()}), stream)


def read_table(path: Path | str, format_name: str, version: int) -> tuple[dict[str, Array], dict[str, Any]]:
    """Columns by name and the header.

    Raises:
        InputFileError: missing, truncated, not Parquet, without header, or of another format or version.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    if not path.is_file():
        raise InputFileError(path, "missing")
    try:
        with path.open("rb") as stream:
            table = pq.ParquetFile(stream).read()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputFileError(path, f"not a whole Parquet file: {error}") from None
    raw = (table.schema.metadata or {}).get(_HEADER_KEY)
    if raw is None:
        raise InputFileError(path, f"no header: found a plain Parquet table, expected format {format_name!r}")
    try:
        header = dict(json.loads(raw))
    except (ValueError, TypeError) as error:
        raise InputFileError(path, f"header: no JSON object: {error}") from None
    found = (header.get("format"), header.get("version"))
    if found != (format_name, version):
        expected = f"expected {format_name!r} version {version}"
        raise InputFileError(path, f"format: found {found[0]!r} version {found[1]}, {expected}")
    try:
        return {name: np.asarray(table.column(name), dtype=np.float64) for name in table.column_names}, header
    except (ValueError, TypeError) as error:
        raise InputFileError(path, f"a column holds no numbers: {error}") from None


def table_format(path: Path | str) -> str | None:
    """What the header of a Parquet file says it is, from its metadata alone; None for any other file."""
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as stream:
            if stream.read(4) != b"PAR1":
                return None
            metadata = pq.read_metadata(stream).metadata or {}
        return str(dict(json.loads(metadata[_HEADER_KEY]))["format"])
    except Exception:  # a damaged footer can raise nearly anything
        return None


def take_columns(path: Path | str, columns: Mapping[str, Array], names: list[str]) -> Array:
    """The named columns side by side, (T, len(names)).

    Raises:
        InputFileError: a column is missing.
    """
    missing = [name for name in names if name not in columns]
    if missing:
        raise InputFileError(path, f"missing columns {', '.join(missing)}; found {', '.join(columns)}")
    return np.stack([columns[name] for name in names], axis=1)


def take_source(path: Path | str, header: Mapping[str, Any]) -> Source:
    """The header's source.

    Raises:
        InputFileError: it is absent or of another shape.
    """
    try:
        return Source(**header["source"])
    except (KeyError, TypeError, ValueError):
        raise InputFileError(path, "header.source: expected path, sha256 and tool") from None


def check_array(path: Path | str, field: str, values: Array, shape: tuple[int | None, ...]) -> None:
    """Refuse an array of another shape (None: any length) or with a NaN or infinity.

    Raises:
        InputFileError: naming the field, what was found and what was expected.
    """
    fits = values.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, values.shape, strict=True))
    if not fits:
        want = ", ".join("T" if n is None else str(n) for n in shape)
        raise InputFileError(path, f"{field}: found shape {values.shape}, expected ({want})")
    bad = ~np.isfinite(values)
    if bad.any():
        frame = int(np.argwhere(bad)[0][0])
        found = f"{int(bad.sum())} NaN or infinite values, the first in frame {frame}"
        raise InputFileError(path, f"{field}: found {found}; expected finite numbers")


def check_size(path: Path | str, field: str, values: Array, limit: float, unit: str) -> None:
    """Refuse numbers beyond ± `limit`.

    Raises:
        InputFileError: naming the field, the frame, what was found and what was expected.
    """
    size = np.abs(values).reshape(len(values), -1).max(axis=1, initial=0.0)
    if size.max(initial=0.0) > limit:
        frame = int(size.argmax())
        raise InputFileError(
            path, f"{field}: found {size[frame]:.3g} in frame {frame}, expected at most {limit:g} {unit}"
        )


def check_fps(path: Path | str, field: str, fps: float) -> float:
    """A frame rate in Hz.

    Raises:
        InputFileError: not a number from 1 to 1000.
    """
    if not _LOWEST_FPS <= fps <= _HIGHEST_FPS:
        expected = f"expected frames per second from {_LOWEST_FPS:g} to {_HIGHEST_FPS:g}"
        raise InputFileError(path, f"{field}: found {fps}, {expected}")
    return float(fps)
