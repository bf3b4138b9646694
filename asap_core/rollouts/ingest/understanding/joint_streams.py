"""Joint states and commands in our conventions: named SDK joints in order, rad, rad/s."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.evidence import Decision, decide, given
from asap_core.motions.doctor.joint_orders import G1_ORDERS, JointOrder, get_order, orders_of_width
from asap_core.robots import get_profile
from asap_core.rollouts.ingest.streams import Stream
from asap_core.rollouts.ingest.understanding.imu import in_time
from asap_core.rollouts.ingest.understanding.joints import (
    CONTRADICTS,
    JointEvidence,
    decide_order,
    following,
    order_scores,
)
from asap_core.rollouts.ingest.understanding.notes import Reading
from asap_core.rollouts.ingest.understanding.options import UnderstandOptions
from asap_core.rollouts.ingest.understanding.rates import column_match, rate_slope, windows
from asap_core.rollouts.ingest.understanding.time_unit import stamps_of
from asap_core.rollouts.ingest.understanding.units import ANGLE_UNITS, angle_unit, target_unit, velocity_unit
from asap_core.rotations import Array

_PER_JOINT = (
    *("joint_pos", "joint_vel", "joint_acc", "joint_torque", "temperature", "voltage", "motor_error"),
    *("joint_target", "joint_vel_target", "joint_torque_target", "kp", "kd", "action", "motor_mode"),
)
_ANGLES = ("joint_pos", "joint_target")
_SPEEDS = ("joint_vel", "joint_vel_target")
_FORMAT_ORDERS = {"unitree_hg": "unitree29"}
_STILL_RAD = 1e-3
"""rms of the change over a window of the liveliest joint; below, velocities are not judged."""
_MATCH = 0.75
"""Mean correlation from which the columns of two arrays are said to belong together."""


def read_joint_states(
    states: list[Stream], streams: list[Stream], imus: list[Stream], options: UnderstandOptions, reading: Reading
) -> list[Stream]:
    """The joint states that are understood; the first command stream of a format's own order lends its gains."""
    commands = [s for s in streams if s.kind == "joint_command"]
    found = [_read_state(stream, commands, imus, options, reading) for stream in states]
    return [stream for stream in found if stream is not None]


def _read_state(
    stream: Stream, commands: list[Stream], imus: list[Stream], options: UnderstandOptions, reading: Reading
) -> Stream | None:
    if "joint_pos" not in stream.values:
        reading.left_out[stream.name] = "it has no joint_pos"
        return None
    stream = _used_motors(stream)
    found = angle_unit(f"angle unit of {stream.name}", "--angle-unit", np.asarray(stream.values["joint_pos"], float))
    unit = reading.settle(found, options.angle_unit, stream.declared.get("angle_unit"))
    if unit is None:
        reading.left_out[stream.name] = "its angle unit is open"
        return None
    velocity = _velocity_unit(stream, unit, options, reading)
    scaled = _scaled(stream, unit, velocity)
    evidence = _evidence(scaled, commands, imus)
    return _named(scaled, evidence, options.joint_order, f"joint order of {stream.name}", "--joint-order", reading)


def _used_motors(stream: Stream) -> Stream:
    """Without the motor slots beyond a G1's 29 in `unitree_hg` messages."""
    if stream.declared.get("joint_order") != "unitree_hg" or stream.labels is not None:
        return stream
    values = {n: v[:, :29] if n in _PER_JOINT and v.ndim > 1 else v for n, v in stream.values.items()}
    return replace(stream, values=values)


def _velocity_unit(stream: Stream, unit: str, options: UnderstandOptions, reading: Reading) -> str:
    """The unit of joint velocities; that of the angles where they do not tell."""
    if "joint_vel" not in stream.values:
        return unit
    question = f"joint velocity unit of {stream.name}"
    time = in_time(stream)
    order = np.argsort(time, kind="stable")
    pos, vel = (np.asarray(stream.values[name], float)[order] for name in ("joint_pos", "joint_vel"))
    change, integral = windows(time[order], pos, vel)
    slope = rate_slope(change, integral)
    found = velocity_unit(question, "--velocity-unit", slope, unit)
    still = not len(change) or np.sqrt((change**2).mean(axis=0)).max() < _STILL_RAD
    if found.answer is None and not still:
        match = column_match(change, integral) if len(change) > 1 else None
        if match is not None and match.diagonal < 1 and match.correlation > _MATCH:
            reading.contradict(
                f"{stream.name}: joint velocities belong to joint positions of other columns ({match.diagonal:.2f} fit "
                f"their own); the orders differ"
            )
        elif slope.r2 < 0.5:
            reading.contradict(f"{stream.name}: joint velocities do not follow joint positions (R² {slope.r2:.2f})")
        elif slope.r2 >= 0.7:
            reading.contradict(f"{stream.name}: joint velocities are {slope.slope:.3g} times the positions' change")
    if slope.slope < 0 and not still:
        reading.contradict(f"{stream.name}: joint velocities have the opposite sign of the positions' change")
    option = options.velocity_unit
    return reading.settle(found, option, stream.declared.get("angle_unit") or unit) or unit


def _scaled(stream: Stream, angle: str, velocity: str) -> Stream:
    factors = dict.fromkeys(_ANGLES, ANGLE_UNITS[angle]) | dict.fromkeys(_SPEEDS, ANGLE_UNITS[velocity])
    values: dict[str, Any] = dict(stream.values)
    for name, factor in factors.items():
        if name in values and factor != 1.0:
            values[name] = np.asarray(values[name], float) * factor
    return replace(stream, values=values)


def _evidence(stream: Stream, commands: list[Stream], imus: list[Stream]) -> JointEvidence:
    pos = np.asarray(stream.values["joint_pos"], float)
    torque = stream.values.get("joint_torque")
    quats = [i.values["quat"] for i in imus if "quat" in i.values and len(i.values["quat"]) == stream.num_samples]
    evidence = JointEvidence(
        pos,
        None if torque is None else np.asarray(torque, float),
        root_quat=np.asarray(quats[0], float) if quats else None,
    )
    for command in map(_used_motors, commands):
        target = np.asarray(command.values.get("joint_target", np.zeros((0, 0))), float)
        if target.ndim != 2 or target.shape[1] != pos.shape[1] or command.labels is not None or not len(target):
            continue
        target = _at(in_time_of(stream), in_time_of(command), target)
        if following(target, pos) > _MATCH or not np.ptp(target, axis=0).any():
            kp = command.values.get("kp")
            return replace(evidence, kp=None if kp is None else np.median(np.asarray(kp, float), axis=0))
        name = _declared_order(command)
        if name in G1_ORDERS:
            return replace(evidence, target=target, target_joints=G1_ORDERS[str(name)].joints)
    return evidence


def _declared_order(stream: Stream) -> str | None:
    """The order that the format names."""
    declared = stream.declared.get("joint_order")
    return _FORMAT_ORDERS.get(declared or "", declared)


def _named(
    stream: Stream, evidence: JointEvidence, option: str | None, question: str, name: str, reading: Reading
) -> Stream | None:
    """The stream with SDK names as labels, columns in SDK order where they are the G1's."""
    if stream.labels is not None:
        labels = _sdk_names(stream, reading)
        reading.add(given(question, "named", "the log names its joints", name))
        return _in_sdk_order(replace(stream, labels=labels))
    width = evidence.joint_pos.shape[1]
    declared = _declared_order(stream)
    if option is not None:
        order = get_order(option)
        if len(order.joints) != width:
            raise InputFileError(reading.path, f"{stream.name}: {width} joints, {option} has {len(order.joints)}")
        reading.add(given(question, option, "the option says so", name))
        return _in_sdk_order(replace(stream, labels=order.joints))
    orders = orders_of_width(width)
    if not orders:
        how = f"{width} joints without names, known orders have 23, 27 or 29"
        reading.add(Decision(question, None, 0.0, None, float("inf"), how, name))
        reading.left_out[stream.name] = "its joint order is open"
        return None
    scores = order_scores(evidence, orders)
    decision = _with_word(decide_order(question, name, scores), declared, scores, reading)
    if decision.answer is None:
        reading.left_out[stream.name] = "its joint order is open"
        return None
    return _in_sdk_order(replace(stream, labels=get_order(decision.answer).joints))


def _with_word(
    found: Decision, declared: str | None, scores: dict[str, dict[str, float]], reading: Reading
) -> Decision:
    """The format's word on an order counts unless another order leads by far; then the question is open."""
    if declared not in scores:
        return reading.add(found)
    means = {name: float(np.mean(list(tests.values()))) for name, tests in scores.items()}
    best = max(means, key=lambda key: means[key])
    if best != declared and means[best] - means[str(declared)] > CONTRADICTS:
        text = f"the data fit {best} {means[best]:.2f}, the format says {declared} {means[str(declared)]:.2f}"
        reading.contradict(f"{found.question}: {text}")
        return reading.add(replace(found, answer=None, how=text))
    said = given(found.question, str(declared), f"the format says so; {found.how}", found.option)
    return reading.add(replace(said, figure=means[str(declared)]))


def _sdk_names(stream: Stream, reading: Reading) -> tuple[str, ...]:
    """Labels with the suffix `_joint` where that makes them a G1's; others as they are."""
    g1 = set(get_profile("g1_29dof").joint_names)
    labels = stream.labels or ()
    completed = tuple(n if n in g1 or f"{n}_joint" not in g1 else f"{n}_joint" for n in labels)
    if len(set(completed)) < len(completed):
        raise InputFileError(reading.path, f"{stream.name}: joint names occur twice in {', '.join(labels)}")
    return completed


def _in_sdk_order(stream: Stream) -> Stream:
    """Columns in the order of the SDK, if all of them are the G1's."""
    sdk = G1_ORDERS["unitree29"].joints
    labels = stream.labels or ()
    if not set(labels) <= set(sdk):
        return stream
    wanted = tuple(name for name in sdk if name in labels)
    columns = [labels.index(name) for name in wanted]
    values = {n: v[:, columns] if n in _PER_JOINT and v.ndim > 1 else v for n, v in stream.values.items()}
    return replace(stream, values=values, labels=wanted)


def read_commands(
    commands: list[Stream], states: list[Stream], options: UnderstandOptions, reading: Reading
) -> list[Stream]:
    """The joint commands that are understood, by the joint states that they move."""
    found = [_read_command(stream, states, options, reading) for stream in commands]
    return [stream for stream in found if stream is not None]


def _read_command(stream: Stream, states: list[Stream], options: UnderstandOptions, reading: Reading) -> Stream | None:
    if "joint_target" not in stream.values:
        reading.left_out[stream.name] = "it has no joint_target"
        return None
    stream = _used_motors(stream)
    found = _target_unit(stream, states)
    unit = reading.settle(found, options.angle_unit, stream.declared.get("angle_unit"))
    if unit is None:
        reading.left_out[stream.name] = "its angle unit is open"
        return None
    stream = _scaled(stream, unit, unit)
    question = f"joint order of {stream.name}"
    if stream.labels is not None or options.command_order is not None:
        evidence = JointEvidence(np.asarray(stream.values["joint_target"], float))
        return _named(stream, evidence, options.command_order, question, "--command-order", reading)
    width = stream.values["joint_target"].shape[1]
    fitting = [s for s in states if s.labels is not None and s.values["joint_pos"].shape[1] == width]
    if not fitting:
        evidence = JointEvidence(np.asarray(stream.values["joint_target"], float))
        return _named(stream, evidence, None, question, "--command-order", reading)
    return _as_moved(stream, fitting[0], question, reading)


def _target_unit(stream: Stream, states: list[Stream]) -> Decision:
    """By the states that follow the targets, if there are some of as many joints; else by their size."""
    question, target = f"angle unit of {stream.name}", np.asarray(stream.values["joint_target"], float)
    for state in states:
        if state.values["joint_pos"].shape[1] == target.shape[1]:
            return target_unit(question, "--angle-unit", target, np.asarray(state.values["joint_pos"], float))
    return angle_unit(question, "--angle-unit", target)


def _as_moved(stream: Stream, state: Stream, question: str, reading: Reading) -> Stream | None:
    """The command in the order in which its columns are followed by the state's."""
    labels = state.labels or ()
    target = np.asarray(stream.values["joint_target"], float)
    pos = _at(in_time_of(stream), in_time_of(state), np.asarray(state.values["joint_pos"], float))
    scores = {order.name: _read_in(order, target, pos, labels) for order in orders_of_width(len(labels))}
    declared = _declared_order(stream) or _declared_order(state)
    scores = scores or {"same as state": 1.0}
    found = decide(
        question, scores, "mean correlation of targets with the joints' positions", "--command-order", 0.05, 0.3
    )
    if found.answer is None and declared in scores and scores[str(declared)] >= max(scores.values()) - 0.05:
        found = replace(
            given(question, str(declared), f"as the format says; {found.how}", found.option),
            figure=scores[str(declared)],
        )
    elif found.answer is not None and declared in scores and found.answer != declared:
        reading.contradict(f"{question}: the state follows it as {found.answer}, the format says {declared}")
        found = replace(found, answer=None, how=f"the state follows it as {found.answer}, the format says {declared}")
    reading.add(found)
    if found.answer is None:
        reading.left_out[stream.name] = "its joint order is open"
        return None
    ordered = labels if found.answer == "same as state" else get_order(found.answer).joints
    return _in_sdk_order(replace(stream, labels=tuple(ordered)))


def _read_in(order: JointOrder, target: Array, pos: Array, labels: tuple[str, ...]) -> float:
    """How well positions follow targets if these are in `order`; −1 where its joints are others."""
    if set(order.joints) != set(labels):
        return -1.0
    return following(target[:, [order.joints.index(name) for name in labels]], pos)


def in_time_of(stream: Stream) -> Array:
    """The stream's own stamps, s; its row numbers if it has none."""
    stamps = stamps_of(stream)
    return in_time(stream) if stamps is None else stamps


def _at(at: Array, time: Array, values: Array) -> Array:
    order = np.argsort(time, kind="stable")
    return np.stack([np.interp(at, time[order], column[order]) for column in values.T], axis=1)
