"""HDF5 logs of no fixed layout: data sets are taken by their names, each group is a recording of its own.

HoloMotion's files (`ref_root_pos`, `ref_root_rot` xyzw, `ref_dof_pos`) are read the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.rollouts.ingest.readers.assembly import Field, array_fields, make_streams, unread
from asap_core.rollouts.ingest.readers.extras import require
from asap_core.rollouts.ingest.readers.field_names import time_column
from asap_core.rollouts.ingest.readers.magic import begins_with
from asap_core.rollouts.ingest.streams import Log, Stream

FORMAT = "hdf5"
MAGIC = b"\x89HDF\r\n\x1a\n"
_MAX_BYTES = 1 << 30
_MAX_RATIO = 200
_JOINT_NAMES = ("joint_names", "dof_names", "joint_labels", "joints")
_RATES = ("fps", "rate", "frequency", "hz")


def sniff(path: Path) -> bool:
    """The signature of HDF5 at the start."""
    return path.is_file() and begins_with(path, MAGIC)


def read(path: Path) -> Log:
    """The streams of every group that holds a joint field, an IMU or a base pose.

    Raises:
        InputFileError: h5py is not installed, the file is damaged, or no data set has a known name.
    """
    h5py = require(path, "h5py", "HDF5")
    try:
        with h5py.File(path, "r") as file:
            groups, notes = _groups(path, file, h5py)
            streams, rest = _streams(groups, {name: dict(file[name or "/"].attrs) for name in groups})
    except InputFileError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError, AttributeError) as error:
        raise InputFileError(path, f"not readable HDF5 (cut short?): {str(error)[:160]}") from None
    if not streams:
        names = [f"{group}/{name}" for group, arrays in groups.items() for name in arrays]
        raise InputFileError(
            path, f"no data set has a known name (joint_pos, dof_pos, …); found {', '.join(names)[:200]}"
        )
    return Log(path, FORMAT, sha256_file(path), streams, tuple(notes) + unread("data sets", rest))


def _groups(path: Path, file: Any, h5py: Any) -> tuple[dict[str, dict[str, NDArray[Any]]], list[str]]:
    """Arrays by group and name; images and the like (more than 3 axes) are left where they are."""
    groups: dict[str, dict[str, NDArray[Any]]] = {}
    notes: list[str] = []
    places: list[str] = []
    file.visititems(lambda name, item: places.append(name) if isinstance(item, h5py.Dataset) else None)
    for place in places:
        group, _, name = place.rpartition("/")
        try:
            item = file[place]
            if item.ndim == 0 or item.ndim > 3 or item.size == 0:
                continue
            check_size(path, place, item)
            groups.setdefault(group, {})[name] = item[()]
        except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
            notes.append(f"{place} left out: {str(error).splitlines()[0][:120]}")
    return groups, notes


def check_size(path: Path, name: str, item: Any) -> None:
    """Refuse a data set that claims far more than the file can hold.

    Raises:
        InputFileError: it does.
    """
    size = item.size * item.dtype.itemsize
    if size > _MAX_BYTES or size > _MAX_RATIO * path.stat().st_size + (1 << 20):
        raise InputFileError(path, f"{name}: claims {size} bytes in a file of {path.stat().st_size}")


def _streams(
    groups: Mapping[str, Mapping[str, NDArray[Any]]], attributes: Mapping[str, Mapping[str, Any]]
) -> tuple[tuple[Stream, ...], list[str]]:
    streams: list[Stream] = []
    rest: list[str] = []
    for group, arrays in groups.items():
        labels = _labels(arrays, attributes[group])
        rate = next((float(v) for k, v in attributes[group].items() if k.lower() in _RATES and np.ndim(v) == 0), None)
        for length, part in _by_length(arrays).items():
            found, left = group_streams(group or "data", length, part, labels, rate)
            streams += found
            rest += [f"{group}/{name}".lstrip("/") for name in left]
    return tuple(streams), rest


def group_streams(
    name: str, length: int, arrays: Mapping[str, NDArray[Any]], labels: tuple[str, ...] | None, rate: float | None
) -> tuple[tuple[Stream, ...], list[str]]:
    """The streams of arrays of one length with the time among them, or made from a rate (Hz), and the unread names."""
    vectors = {key for key, values in arrays.items() if values.size == length and values.dtype.kind in "fiu"}
    clock = time_column(sorted(vectors))
    fields, rest = array_fields({key: values for key, values in arrays.items() if clock is None or key != clock[0]})
    fields = [_known(item, labels, arrays) for item in fields]
    if not fields:
        return (), [*rest]
    receive = None if clock is None else arrays[clock[0]].reshape(-1).astype(np.float64) * (clock[1] or 1.0)
    source = np.arange(length) / rate if receive is None and rate else None
    stated = {"time_unit": "s"} if source is not None or (clock is not None and clock[1] is not None) else {}
    return make_streams(name, fields, receive_time=receive, source_time=source, declared=stated), rest


def _known(item: Field, labels: tuple[str, ...] | None, arrays: Mapping[str, NDArray[Any]]) -> Field:
    """The field with joint names where they fit, and HoloMotion's quaternion order."""
    fits = item.kind in ("joint_state", "joint_command") and labels and item.values.shape[1] == len(labels)
    declared = dict(item.declared)
    if item.name == "quat" and "ref_root_rot" in arrays:
        declared["quat_order"] = "xyzw"
    return Field(item.kind, item.name, item.values, labels if fits else None, declared)


def _by_length(arrays: Mapping[str, NDArray[Any]]) -> dict[int, dict[str, NDArray[Any]]]:
    lengths: dict[int, dict[str, NDArray[Any]]] = {}
    for name, values in arrays.items():
        if values.dtype.kind in "fiub":
            lengths.setdefault(len(values), {})[name] = values
    return lengths


def _labels(arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]) -> tuple[str, ...] | None:
    for name in _JOINT_NAMES:
        for found in (arrays.get(name), attributes.get(name)):
            if found is not None and np.ndim(found) == 1:
                return tuple(_texts(np.asarray(found)))
    return None


def _texts(values: NDArray[Any]) -> Iterator[str]:
    for value in values.tolist():
        yield value.decode(errors="replace") if isinstance(value, bytes) else str(value)
