"""Mocap poses, odometry and markers in our conventions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from asap_core.errors import StageError
from asap_core.evidence import Decision
from asap_core.rollouts.ingest.clock import clocked
from asap_core.rollouts.ingest.streams import Stream
from asap_core.rollouts.ingest.understanding.imu import in_time
from asap_core.rollouts.ingest.understanding.notes import Reading, known
from asap_core.rollouts.ingest.understanding.options import UnderstandOptions
from asap_core.rollouts.ingest.understanding.orientation import (
    ORDERS,
    AgainstImu,
    against_imu,
    as_wxyz,
    pose_order,
)
from asap_core.rollouts.ingest.understanding.time_unit import stamps_of
from asap_core.rollouts.ingest.understanding.units import (
    FRAMES,
    LENGTH_UNITS,
    UP_AXES,
    length_and_up,
    twist_frame,
    up_by_gravity,
)
from asap_core.rotations import Array, rotate

_TO_Z_UP = {
    "x": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "z": np.eye(3),
}
"""Rows: the axes of a z-up frame in one whose up axis is the key; y: (x, y, z) → (x, −z, y)."""


def read_pose(stream: Stream, imus: list[Stream], options: UnderstandOptions, reading: Reading) -> Stream | None:
    """The stream in m, z up, quat wxyz, velocities in the world; None, with a note, while a question is open."""
    values = dict(stream.values)
    field = "marker_pos" if stream.kind == "markers" else "pos"
    if field not in values:
        reading.left_out[stream.name] = f"it has no {field}"
        return None
    places = np.asarray(values[field], float)
    centre = _means(places) if stream.kind == "markers" else places
    imu = _against_imu(stream, imus)
    unit_found, axis_found = _length_and_up(stream, centre, imu, options)
    unit = reading.settle(unit_found, options.length_unit, known(stream.declared, "length_unit", LENGTH_UNITS))
    axis = reading.settle(axis_found, options.up_axis, known(stream.declared, "up_axis", UP_AXES))
    if unit is None or axis is None:
        reading.left_out[stream.name] = f"its {'length unit' if unit is None else 'up axis'} is open"
        return None
    turn = _TO_Z_UP[axis]
    values[field] = places * LENGTH_UNITS[unit] @ turn.T
    if "quat" in values:
        stored = np.asarray(values["quat"], float)
        found = pose_order(
            f"quaternion order of {stream.name}", "--pose-quat-order", stored, np.eye(3)[UP_AXES.index(axis)], imu
        )
        order = reading.settle(found, options.pose_quat_order, known(stream.declared, "quat_order", ORDERS))
        if order is None:
            reading.left_out[stream.name] = "its quaternion order is open"
            return None
        quat = as_wxyz(stored, order)
        values["quat"] = np.concatenate([quat[:, :1], quat[:, 1:] @ turn.T], axis=1)
    for name in ("lin_vel", "ang_vel"):
        if name in values:
            scale = LENGTH_UNITS[unit] if name == "lin_vel" else 1.0
            values[name] = np.asarray(values[name], float) * scale @ turn.T
    if "lin_vel" in values:
        values = _in_world(stream, values, options, reading)
    return replace(stream, values=values)


def _length_and_up(
    stream: Stream, centre: Array, imu: AgainstImu | None, options: UnderstandOptions
) -> tuple[Decision, Decision]:
    names = ("--length-unit", "--up-axis", stream.name)
    unit_found, axis_found = length_and_up(*names, centre, options.up_axis)
    if stream.kind == "markers":
        return unit_found, replace(axis_found, answer=None, how="single markers do not show it")
    if imu is None or not imu.gravity:
        return unit_found, axis_found
    best = max(imu.gravity, key=lambda order: imu.r2[order])
    axis_found = up_by_gravity(axis_found.question, axis_found.option, imu.gravity[best])
    return length_and_up(*names, centre, options.up_axis or axis_found.answer)[0], axis_found


def _against_imu(stream: Stream, imus: list[Stream]) -> AgainstImu | None:
    """The stream beside the first IMU with a gyro; None without one, or without orientations or stamps."""
    imu = next((i for i in imus if "ang_vel" in i.values and stamps_of(i) is not None), None)
    if imu is None or "quat" not in stream.values or stamps_of(stream) is None:
        return None
    try:
        pose, inertial = clocked(stream), clocked(imu)
    except StageError:
        return None
    acc = inertial.stream.values.get("lin_acc")
    return against_imu(
        pose.time,
        np.asarray(pose.stream.values["quat"], float),
        inertial.time,
        np.asarray(inertial.stream.values["ang_vel"], float),
        None if acc is None else np.asarray(acc, float),
    )


def _means(places: Array) -> Array:
    """Mean marker (N, 3); NaN where all are hidden."""
    seen = np.asarray(np.isfinite(places).all(axis=2))
    total = np.where(seen[..., None], places, 0.0).sum(axis=1)
    count = seen.sum(axis=1)[:, None]
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _in_world(
    stream: Stream, values: dict[str, Array], options: UnderstandOptions, reading: Reading
) -> dict[str, Array]:
    """`values` with velocities in the world's frame, or without them while their frame is open."""
    question = f"twist frame of {stream.name}"
    quat = values.get("quat")
    if quat is None:
        reading.left_out[f"{stream.name}.lin_vel"] = "without orientations its frame is open"
        return {name: value for name, value in values.items() if name not in ("lin_vel", "ang_vel")}
    found = twist_frame(question, "--twist-frame", in_time(stream), values["pos"], quat, values["lin_vel"])
    still = known(stream.declared, "twist_frame", FRAMES) if found.figure == 0.0 else None
    frame = options.twist_frame or found.answer
    if frame is None and still is None:
        reading.left_out[f"{stream.name}.lin_vel"] = f"its frame is open: {found.how}; settle it with {found.option}"
        return {name: value for name, value in values.items() if name not in ("lin_vel", "ang_vel")}
    answer = reading.settle(found, options.twist_frame, still)
    if answer == "body":
        turned = {name: rotate(quat, values[name]) for name in ("lin_vel", "ang_vel") if name in values}
        values = values | turned
    return values
