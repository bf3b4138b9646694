"""An IMU stream in our conventions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from asap_core.rollouts.ingest.streams import Stream
from asap_core.rollouts.ingest.understanding.notes import Reading, known
from asap_core.rollouts.ingest.understanding.options import UnderstandOptions
from asap_core.rollouts.ingest.understanding.orientation import ORDERS, as_wxyz, imu_order
from asap_core.rollouts.ingest.understanding.time_unit import stamps_of
from asap_core.rollouts.ingest.understanding.units import ACCEL_UNITS, GYRO_UNITS, accel_unit, gyro_unit
from asap_core.rotations import Array


def read_imu(stream: Stream, options: UnderstandOptions, reading: Reading) -> Stream | None:
    """The stream in rad/s, m/s² and wxyz; None, with a note, while a question is open."""
    values = {name: np.asarray(value, float) for name, value in stream.values.items()}
    time = in_time(stream)
    declared = stream.declared
    if "lin_acc" in values:
        found = accel_unit(f"accelerometer unit of {stream.name}", "--accel-unit", values["lin_acc"])
        unit = reading.settle(found, options.accel_unit, known(declared, "accel_unit", ACCEL_UNITS))
        if unit is None:
            reading.left_out[f"{stream.name}.lin_acc"] = "the accelerometer's unit is open"
            del values["lin_acc"]
        else:
            values["lin_acc"] = values["lin_acc"] * ACCEL_UNITS[unit]
    order = None
    if "quat" in values:
        question = f"quaternion order of {stream.name}"
        evidence = (values.get("lin_acc"), values.get("ang_vel"), values.get("rpy"))
        decision = imu_order(question, "--imu-quat-order", time, values["quat"], *evidence)
        order = reading.settle(decision, options.imu_quat_order, known(declared, "quat_order", ORDERS))
        if order is None:
            reading.left_out[stream.name] = "its quaternion order is open"
            return None
        values["quat"] = as_wxyz(values["quat"], order)
    if "ang_vel" in values:
        stated = {"rad": "rad/s", "deg": "deg/s"}.get(declared.get("angle_unit", ""))
        decision = gyro_unit(f"gyro unit of {stream.name}", "--gyro-unit", time, values.get("quat"), values["ang_vel"])
        unit = reading.settle(decision, options.gyro_unit, stated)
        if unit is None:
            reading.left_out[stream.name] = "its gyro's unit is open"
            return None
        values["ang_vel"] = values["ang_vel"] * GYRO_UNITS[unit]
    return replace(stream, values=dict(stream.values) | values)


def in_time(stream: Stream) -> Array:
    """The stream's stamps from 0 on, s; its row numbers if it has none."""
    stamps = stamps_of(stream)
    return np.arange(stream.num_samples, dtype=float) if stamps is None else stamps - stamps[0]
