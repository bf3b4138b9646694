"""MATLAB files: v7.3 (HDF5, read with h5py, `timeseries` objects among them) and the older v5 (read with scipy).

Variables and fields of structs are taken by their names. A `timeseries` brings its own clock; other variables share
the variable that is called time. One with a clock and an unknown name is kept as a `signal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.rollouts.ingest.readers.assembly import array_fields, make_streams, unread
from asap_core.rollouts.ingest.readers.extras import require
from asap_core.rollouts.ingest.readers.field_names import time_column
from asap_core.rollouts.ingest.readers.hdf5 import check_size, group_streams
from asap_core.rollouts.ingest.readers.matlab_objects import ObjectTable, object_id
from asap_core.rollouts.ingest.streams import Log, Stream

FORMAT = "matlab"
_MAGIC_V5, _MAGIC_V73 = b"MATLAB 5.0 MAT-file", b"MATLAB 7.3 MAT-file"
_MAX_DEPTH = 4


def sniff(path: Path) -> bool:
    """The text header of a MAT file, v5 or v7.3."""
    return path.is_file() and _magic(path).startswith((_MAGIC_V5, _MAGIC_V73))


def read(path: Path) -> Log:
    """The streams of all variables with a known name, and `timeseries` of other names as signals.

    Raises:
        InputFileError: damaged, or nothing in it has a known name or a clock.
    """
    magic = _magic(path)
    if magic.startswith(_MAGIC_V73):
        arrays, series = _read_v73(path)
    elif magic.startswith(_MAGIC_V5):
        arrays, series = _read_v5(path), {}
    else:
        raise InputFileError(path, "found no MAT header, expected MATLAB v5 or v7.3")
    streams: list[Stream] = []
    notes: list[str] = []
    for name, (values, time) in series.items():
        streams += _series(name, values, time)
    if arrays:
        length, rows, said = _rows(arrays)
        found, rest = group_streams(path.stem, length, rows, None, None)
        streams += found
        notes += [*(said if found else []), *unread("variables", [*rest, *sorted(arrays.keys() - rows.keys())])]
    if not streams:
        raise InputFileError(
            path, f"no variable has a known name (q, dq, joint_pos, …); found {', '.join(arrays)[:200]}"
        )
    return Log(path, FORMAT, sha256_file(path), tuple(streams), tuple(notes))


def _magic(path: Path) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read(116)
    except OSError:
        return b""


def _series(name: str, values: NDArray[Any], time: NDArray[np.float64]) -> Iterable[Stream]:
    fields, _ = array_fields({name: values})
    if fields:
        return make_streams(name, fields, source_time=time, declared={"time_unit": "s"})
    return (Stream(f"{name}/signal", "signal", {"signal": values}, source_time=time, declared={"time_unit": "s"}),)


def _rows(arrays: Mapping[str, NDArray[Any]]) -> tuple[int, dict[str, NDArray[Any]], list[str]]:
    """Arrays with samples as rows: along the axis as long as the time variable, else along the longest."""
    vectors = [name for name, values in arrays.items() if values.size == max(values.shape, default=0) > 1]
    clock = time_column([name.rsplit("/", 1)[-1] for name in vectors])
    times = [name for name in vectors if clock is not None and name.rsplit("/", 1)[-1] == clock[0]]
    length = arrays[times[0]].size if times else max(max(values.shape, default=0) for values in arrays.values())
    rows = {}
    for name, values in arrays.items():
        axes = [axis for axis, size in enumerate(values.shape) if size == length]
        if axes and values.ndim <= 3:
            rows[name] = np.moveaxis(values, axes[0], 0)
            if rows[name].ndim == 2 and rows[name].shape[1] == 1:
                rows[name] = rows[name][:, 0]
    said = [] if times else [f"has no time variable; samples run along the longest axis ({length})"]
    if times and times[0] in rows:
        rows[times[0].rsplit("/", 1)[-1]] = rows.pop(times[0])
    return length, rows, said


def _read_v73(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, tuple[NDArray[Any], NDArray[np.float64]]]]:
    h5py = require(path, "h5py", "MATLAB v7.3")
    arrays: dict[str, NDArray[Any]] = {}
    series: dict[str, tuple[NDArray[Any], NDArray[np.float64]]] = {}
    try:
        with h5py.File(path, "r") as file:
            table = ObjectTable(file) if "#subsystem#" in file else None
            for name, item in _walk(file, h5py):
                check_size(path, name, item)
                values = item[()]
                number = object_id(values)
                if number is None and values.dtype.kind in "fiu" and "MATLAB_empty" not in item.attrs:
                    arrays[name] = values.T
                elif number is not None and table is not None and table.class_name(number) == "timeseries":
                    series[name] = _timeseries(path, name, table, number)
    except InputFileError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, IndexError, MemoryError, AttributeError) as error:
        raise InputFileError(path, f"not a readable MAT v7.3 (cut short?): {str(error)[:160]}") from None
    return arrays, series


def _walk(group: Any, h5py: Any, prefix: str = "", depth: int = 0) -> Iterable[tuple[str, Any]]:
    """Data sets of variables and of structs' fields; references and MATLAB's own groups are passed over."""
    for name in group:
        item = group[name]
        if name.startswith("#"):
            continue
        if isinstance(item, h5py.Group) and depth < _MAX_DEPTH:
            yield from _walk(item, h5py, f"{prefix}{name}/", depth + 1)
        elif isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu" and item.ndim:
            yield f"{prefix}{name}", item


def _timeseries(path: Path, name: str, table: ObjectTable, number: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Samples as rows and their times in s (MATLAB's `TimeInfo.Units` is seconds unless changed)."""
    properties = table.values(number)
    if "Data_" not in properties or "TimeInfo" not in properties:
        raise InputFileError(path, f"{name}: a timeseries without Data_ or TimeInfo")
    check_size(path, name, properties["Data_"])
    values = np.asarray(properties["Data_"][()]).T
    clock = object_id(properties["TimeInfo"][()])
    info = table.values(clock) if clock is not None else {}
    if "Time_" in info:
        time = np.asarray(info["Time_"][()], np.float64).reshape(-1)
    elif "Increment_" in info and "Length" in info:
        step, count = (float(np.asarray(info[key][()]).reshape(-1)[0]) for key in ("Increment_", "Length"))
        start = float(np.asarray(info["Start_"][()]).reshape(-1)[0]) if "Start_" in info else 0.0
        if not 0 < count <= max(values.shape):
            raise InputFileError(path, f"{name}: a timeseries of {count:g} samples with data of shape {values.shape}")
        time = np.asarray(start + step * np.arange(int(count)), np.float64)
    else:
        raise InputFileError(path, f"{name}: a timeseries without times")
    axes = [axis for axis, size in enumerate(values.shape) if size == len(time)]
    if not axes:
        raise InputFileError(path, f"{name}: {len(time)} times for data of shape {values.shape}")
    return np.moveaxis(values, axes[0], 0), time


def _read_v5(path: Path) -> dict[str, NDArray[Any]]:
    from scipy.io import loadmat

    try:
        content = loadmat(path, simplify_cells=True)
    except Exception as error:  # scipy raises nearly anything on a damaged file
        raise InputFileError(path, f"not a readable MAT v5: {str(error)[:160] or type(error).__name__}") from None
    arrays: dict[str, NDArray[Any]] = {}
    _collect(content, "", arrays, 0)
    return arrays


def _collect(content: Mapping[str, Any], prefix: str, arrays: dict[str, NDArray[Any]], depth: int) -> None:
    for name, value in content.items():
        if isinstance(value, dict) and depth < _MAX_DEPTH:
            _collect(value, f"{prefix}{name}/", arrays, depth + 1)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.size > 1:
            arrays[f"{prefix}{name}"] = value
