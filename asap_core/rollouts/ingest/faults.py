"""Faults put into a sound log, as robots and recorders make them: what ingest must name, every one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.motions.doctor.joint_orders import G1_ORDERS
from asap_core.rollouts.ingest.clock import take
from asap_core.rollouts.ingest.streams import Kind, Log, Stream
from asap_core.rollouts.ingest.understanding.time_unit import stamps_of
from asap_core.rotations import quat_mul

Rng = np.random.Generator
JOINT_WIDTH = 29
DRIFT = 40e-6
LATENCY_S = 0.035
_DROPPED, _DUPLICATED, _REORDERED = 0.03, 0.02, 0.02


@dataclass(frozen=True)
class Fault:
    """One fault."""

    inject: Callable[[Log, Rng], Log]
    codes: tuple[str, ...]
    """Codes of findings of which one names it."""
    least_s: float = 5.0
    """Takes shorter than this cannot show it."""
    two_clocks: bool = False
    """It is one of a mocap with stamps of its own."""


MOCAP: tuple[Kind, ...] = ("pose", "odometry")


def _on(log: Log, kinds: Kind | tuple[Kind, ...], change: Callable[[Stream], Stream]) -> Log:
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    return replace(log, streams=tuple(change(s) if s.kind in kinds else s for s in log.streams))


def _values(stream: Stream, **values: Any) -> Stream:
    return replace(stream, values={**stream.values, **values})


def _isaac_order(log: Log, kind: Kind) -> Log:
    """Columns of the motors in Isaac Lab's breadth-first order, still said to be the SDK's."""
    sdk = G1_ORDERS["unitree29"].joints
    order = [sdk.index(name) for name in G1_ORDERS["isaac29"].joints]

    def change(stream: Stream) -> Stream:
        moved = {
            name: np.concatenate([array[:, order], array[:, JOINT_WIDTH:]], axis=1)
            for name, array in stream.values.items()
            if array.ndim > 1 and array.shape[1] >= JOINT_WIDTH
        }
        return _values(stream, **moved)

    return _on(log, kind, change)


def _degrees(stream: Stream) -> Stream:
    return _values(
        stream, **{n: np.degrees(stream.values[n]) for n in ("joint_pos", "joint_vel") if n in stream.values}
    )


def _gyro_degrees(stream: Stream) -> Stream:
    return _values(stream, ang_vel=np.degrees(stream.values["ang_vel"]))


def _rolled(stream: Stream) -> Stream:
    """wxyz written as xyzw, or the other way round, with the same word on it."""
    quat = stream.values["quat"]
    wxyz = stream.declared.get("quat_order", "wxyz") == "wxyz"
    return _values(stream, quat=quat[:, [1, 2, 3, 0]] if wxyz else quat[:, [3, 0, 1, 2]])


def _scaled_time(log: Log, factor: float) -> Log:
    def change(stream: Stream) -> Stream:
        return replace(
            stream,
            receive_time=None if stream.receive_time is None else stream.receive_time * factor,
            source_time=None if stream.source_time is None else stream.source_time * factor,
        )

    return replace(log, streams=tuple(map(change, log.streams)))


def _dropped(stream: Stream, rng: Rng) -> Stream:
    kept = rng.random(stream.num_samples) > _DROPPED
    kept[[0, -1]] = True
    return take(stream, kept)


def _duplicated(stream: Stream, rng: Rng) -> Stream:
    return take(stream, np.repeat(np.arange(stream.num_samples), 1 + (rng.random(stream.num_samples) < _DUPLICATED)))


def _reordered(stream: Stream, rng: Rng) -> Stream:
    """Neighbours change places but for their arrival."""
    rows = np.arange(stream.num_samples)
    swapped = np.flatnonzero(rng.random(stream.num_samples - 1) < _REORDERED)
    swapped = swapped[np.append(True, np.diff(swapped) > 1)]
    rows[swapped], rows[swapped + 1] = swapped + 1, swapped
    moved = take(stream, rows)
    if stream.sequence is not None:
        return replace(moved, receive_time=stream.receive_time)
    return moved


def _same_messages(log: Log, change: Callable[[Stream, Rng], Stream], rng: Rng) -> Log:
    """A change of the state's messages, or of the rows of a table: all streams that have the state's stamps."""
    seed = int(rng.integers(2**32))
    streams = (change(s, np.random.default_rng(seed)) if _with_state(s, log) else s for s in log.streams)
    return replace(log, streams=tuple(streams))


def _with_state(stream: Stream, log: Log) -> bool:
    state, own = stamps_of(log.of_kind("joint_state")[0]), stamps_of(stream)
    return state is not None and own is not None and np.array_equal(state, own)


def _late(stream: Stream) -> Stream:
    stamps = stamps_of(stream)
    assert stamps is not None
    return replace(stream, source_time=stamps + LATENCY_S)


def _drifting(stream: Stream) -> Stream:
    stamps = stamps_of(stream)
    assert stamps is not None
    return replace(stream, source_time=stamps[0] + (stamps - stamps[0]) * (1 + DRIFT))


def _during(stream: Stream, first: float, last: float) -> NDArray[np.bool_]:
    share = np.arange(stream.num_samples) / stream.num_samples
    return np.asarray((share >= first) & (share < last))


def _saturated(stream: Stream) -> Stream:
    """The left knee's motor gives all it has for a tenth of the take."""
    torque = np.array(stream.values["joint_torque"])
    torque[_during(stream, 0.4, 0.5), 3] = 139.0
    return _values(stream, joint_torque=torque)


def _fallen(stream: Stream) -> Stream:
    """The last fifth of the take lies on its side."""
    wxyz = stream.declared.get("quat_order", "wxyz") == "wxyz"
    quat = np.array(stream.values["quat"], float)
    quat = quat if wxyz else quat[:, [3, 0, 1, 2]]
    rows = _during(stream, 0.8, 1.0)
    quat[rows] = quat_mul(quat[rows], np.array([[np.cos(0.75), np.sin(0.75), 0.0, 0.0]]))
    values: dict[str, Any] = {"quat": quat if wxyz else quat[:, [1, 2, 3, 0]]}
    if "lin_acc" in stream.values:
        acc = np.array(stream.values["lin_acc"], float)
        c, s = np.cos(1.5), np.sin(1.5)
        acc[rows] = acc[rows] @ np.array([[1.0, 0, 0], [0, c, s], [0, -s, c]]).T
        values["lin_acc"] = acc
    if "rpy" in stream.values:
        rpy = np.array(stream.values["rpy"], float)
        rpy[rows, 0] += 1.5
        values["rpy"] = rpy
    return _values(stream, **values)


FAULTS: dict[str, Fault] = {
    "state_order": Fault(lambda log, rng: _isaac_order(log, "joint_state"), ("joint_order",)),
    "command_order": Fault(lambda log, rng: _isaac_order(log, "joint_command"), ("joint_order",)),
    "quat_order": Fault(lambda log, rng: _on(log, "imu", _rolled), ("quat_order",)),
    "mocap_quat_order": Fault(lambda log, rng: _on(log, MOCAP, _rolled), ("quat_order",)),
    "degrees": Fault(lambda log, rng: _on(log, "joint_state", _degrees), ("angle_unit",)),
    "gyro_degrees": Fault(lambda log, rng: _on(log, "imu", _gyro_degrees), ("angle_unit",)),
    "time_10x": Fault(lambda log, rng: _scaled_time(log, 0.1), ("time_unit",)),
    "drops": Fault(lambda log, rng: _same_messages(log, _dropped, rng), ("dropped",)),
    "duplicates": Fault(lambda log, rng: _same_messages(log, _duplicated, rng), ("duplicates",)),
    "reorder": Fault(lambda log, rng: _same_messages(log, _reordered, rng), ("out_of_order",)),
    "drift": Fault(lambda log, rng: _on(log, MOCAP, _drifting), ("clock_drift",), least_s=75.0, two_clocks=True),
    "latency": Fault(lambda log, rng: _on(log, MOCAP, _late), ("clock_offset",), two_clocks=True),
    "saturation": Fault(lambda log, rng: _on(log, "joint_state", _saturated), ("torque_saturated", "saturated_long")),
    "fall": Fault(lambda log, rng: _on(log, "imu", _fallen), ("fall",)),
}
"""By name."""


def possible(log: Log) -> tuple[str, ...]:
    """The faults that this log can have."""
    mocap = [s for s in log.streams if s.kind in MOCAP]
    own_clock = any(not _with_state(s, log) for s in mocap)
    stamps = stamps_of(log.of_kind("joint_state")[0])
    length = 0.0 if stamps is None else float(np.ptp(stamps))
    return tuple(
        name
        for name, fault in FAULTS.items()
        if fault.least_s <= length and (own_clock or not fault.two_clocks) and (mocap or name != "mocap_quat_order")
    )


def inject(log: Log, name: str, seed: int) -> Log:
    """The log with one fault in it."""
    return FAULTS[name].inject(log, np.random.default_rng(seed))
