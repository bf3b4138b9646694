"""The streams of a log on one clock, at the rate of the states: kept beside the control steps made from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.rollouts.ingest.clock import Clocked

_AXES = {3: "xyz", 4: "wxyz"}
_LONGEST_POSE_GAP_S = 0.1


def stream_table(
    state: Clocked, command: Clocked | None, imu: Clocked | None, pose: Clocked | None
) -> dict[str, NDArray[Any]]:
    """Columns (N,) at the state's samples: its fields, the IMU's, the command's held, the mocap's position and turn.

    Commands before the first and poses further than 0.1 s from a sample are NaN.
    """
    columns: dict[str, NDArray[Any]] = {"time": state.time}
    columns |= _columns(state, "")
    if imu is not None:
        columns |= _held(imu, state.time, "imu.", np.inf)
    if command is not None:
        columns |= _held(command, state.time, "command.", np.inf)
    if pose is not None:
        columns |= _held(pose, state.time, "mocap.", _LONGEST_POSE_GAP_S)
    return columns


def _columns(item: Clocked, prefix: str) -> dict[str, NDArray[Any]]:
    out: dict[str, NDArray[Any]] = {}
    for name, values in item.stream.values.items():
        for part, column in _parts(np.asarray(values), item.stream.labels):
            out[f"{prefix}{name}{part}"] = column
    return out


def _parts(values: NDArray[Any], labels: tuple[str, ...] | None) -> Iterator[tuple[str, NDArray[Any]]]:
    """Suffix and column; per-joint values by joint name, vectors by axis."""
    if values.ndim == 1:
        yield "", values
        return
    if values.ndim == 3:
        for k in range(values.shape[2]):
            for part, column in _parts(values[:, :, k], labels):
                yield f"{part}.{k}", column
        return
    width = values.shape[1]
    named = labels if labels is not None and len(labels) == width else _AXES.get(width, tuple(map(str, range(width))))
    for k, name in enumerate(named):
        yield f".{name}", values[:, k]


def _held(item: Clocked, at: NDArray[np.float64], prefix: str, longest_s: float) -> dict[str, NDArray[Any]]:
    """The last sample at or before each time; NaN where there is none, or none recent enough."""
    row = np.searchsorted(item.time, at + 1e-9, side="right") - 1
    known = (row >= 0) & (at - item.time[row.clip(0)] <= longest_s)
    out = {}
    for name, column in _columns(item, prefix).items():
        values = column[row.clip(0)]
        if values.dtype.kind == "f":
            values = np.where(known, values, np.nan)
        elif not known.all():
            values = np.where(known, values.astype(float), np.nan)
        out[name] = values
    return out
