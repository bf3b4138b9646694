"""Messages that carry names, whose order and number may change from one message to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.rollouts.ingest.readers import members
from asap_core.rollouts.ingest.readers.blocks import Block
from asap_core.rollouts.ingest.readers.gather import Clocks, Damage, Factory
from asap_core.rollouts.ingest.readers.object_decoder import unpacked
from asap_core.rollouts.ingest.readers.unpack import Unpack
from asap_core.rollouts.ingest.streams import Stream

_MAX_NAMES = 512
_JOINT_FIELDS = {"position": "joint_pos", "velocity": "joint_vel", "effort": "joint_torque"}
_POSE = (*(f"pose.position.{letter}" for letter in "xyz"), *(f"pose.orientation.{letter}" for letter in "xyzw"))


@dataclass(frozen=True)
class _Joints:
    """One JointState; arrays are (J,) or empty."""

    names: tuple[str, ...]
    values: tuple[NDArray[np.float64], ...]


@dataclass
class _Run:
    """Consecutive messages with the same names."""

    names: tuple[str, ...]
    values: tuple[NDArray[np.float64], ...]
    """(n, J) or (n, 0) each, in the order of `_JOINT_FIELDS`."""


class JointStateDecoder:
    """`sensor_msgs/JointState`: columns follow the first message's names, other orders are brought back by name."""

    def __init__(self, topic: str, unpack: Unpack) -> None:
        self._topic = topic
        self._unpack = unpack
        self._clocks = Clocks()
        self._damage = Damage()
        self._runs: list[_Run] = []
        self._names: dict[str, int] = {}
        self._orders: Counter[tuple[str, ...]] = Counter()
        self._unnamed: bool | None = None

    def add(self, block: Block) -> None:
        """See `Decoder`."""
        objects, kept = unpacked(block, self._unpack, self._damage)
        rows = [self._row(message) for message in objects]
        kept[kept] = [row is not None for row in rows]
        good = [row for row in rows if row is not None]
        if not good:
            return
        stamps = [members.stamp(message) for message, row in zip(objects, rows, strict=True) if row is not None]
        self._clocks.add(block, kept, stamps)
        for (names, _), group in groupby(good, lambda row: (row.names, tuple(len(v) for v in row.values))):
            values = [row.values for row in group]
            self._runs.append(_Run(names, tuple(np.stack(part) for part in zip(*values, strict=True))))
            self._orders[names] += len(values)

    def _row(self, message: Any) -> _Joints | None:
        try:
            names = tuple(str(name) for name in members.member(message, "name"))
            arrays = (members.member(message, key) if members.has(message, key) else () for key in _JOINT_FIELDS)
            values = tuple(np.array(list(array), np.float64).reshape(-1) for array in arrays)
        except (KeyError, ValueError, TypeError, OverflowError):
            self._damage.add("name, position, velocity or effort missing or not numbers")
            return None
        width = len(names) or max(len(value) for value in values)
        if any(len(value) not in (0, width) for value in values):
            self._damage.add("arrays of other lengths than the names")
            return None
        if len(set(names)) < len(names):
            self._damage.add("a joint named twice")
            return None
        if self._unnamed is None:
            self._unnamed = not names
        if self._unnamed != (not names):
            self._damage.add(
                "without names among messages with names" if not names else "with names among those without"
            )
            return None
        return self._known(_Joints(names or tuple(map(str, range(width))), values))

    def _known(self, row: _Joints) -> _Joints | None:
        """The row if its names are few enough to be joints; they are learnt."""
        new = [name for name in row.names if name not in self._names]
        if len(self._names) + len(new) > _MAX_NAMES:
            self._damage.add(f"more than {_MAX_NAMES} joint names")
            return None
        self._names.update({name: len(self._names) + k for k, name in enumerate(new)})
        return row

    def streams(self) -> list[Stream]:
        """See `Decoder`."""
        if not self._runs:
            return []
        num = sum(len(run.values[0]) for run in self._runs)
        tables: dict[str, NDArray[np.float64]] = {}
        for which, key in enumerate(_JOINT_FIELDS.values()):
            if any(run.values[which].shape[1] for run in self._runs):
                tables[key] = self._table(which, num)
        if not tables:
            return []
        times = self._clocks.times()
        labels = None if self._unnamed else tuple(self._names)
        return [
            Stream(self._topic, "joint_state", tables, times.receive, times.source, None, labels, {"angle_unit": "rad"})
        ]

    def _table(self, which: int, num: int) -> NDArray[np.float64]:
        table = np.full((num, len(self._names)), np.nan)
        at = 0
        for run in self._runs:
            values = run.values[which]
            if values.shape[1]:
                table[at : at + len(values), [self._names[name] for name in run.names]] = values
            at += len(values)
        return table

    def notes(self) -> list[str]:
        """See `Decoder`."""
        notes = self._damage.notes()
        if len(self._orders) > 1:
            first = next(iter(self._orders))
            other = sum(count for names, count in self._orders.items() if names != first)
            notes.append(f"{other} messages name joints in another order or number than the first; ordered by name")
        return notes


@dataclass
class _Body:
    """Samples of one rigid body."""

    receive: list[float] = field(default_factory=list)
    source: list[float] = field(default_factory=list)
    frame: list[int] = field(default_factory=list)
    poses: list[list[float]] = field(default_factory=list)
    markers: list[dict[str, tuple[float, float, float]]] = field(default_factory=list)


class BodiesDecoder:
    """mocap4r2 RigidBodies and NamedPoseArray: one pose stream a body, and its markers where the message has them."""

    def __init__(self, topic: str, unpack: Unpack, *, bodies: str, name: str) -> None:
        self._topic = topic
        self._unpack = unpack
        self._list = bodies
        self._name = name
        self._damage = Damage()
        self._bodies: dict[str, _Body] = {}

    def add(self, block: Block) -> None:
        """See `Decoder`."""
        objects, kept = unpacked(block, self._unpack, self._damage)
        for message, receive in zip(objects, block.receive_ns[kept] * 1e-9, strict=True):
            try:
                frame = int(members.member(message, "frame_number")) if members.has(message, "frame_number") else -1
                for body in members.member(message, self._list):
                    self._add(body, float(receive), members.stamp(message), frame)
            except (KeyError, ValueError, TypeError, OverflowError):
                self._damage.add("a rigid body without name or pose")

    def _add(self, body: Any, receive: float, stamp: float, frame: int) -> None:
        name = str(members.member(body, self._name))
        pose = [float(members.resolve(body, path.split("."))) for path in _POSE]
        markers = members.member(body, "markers") if members.has(body, "markers") else ()
        points = {_marker_name(marker): _point(marker) for marker in markers}
        if name not in self._bodies and len(self._bodies) >= _MAX_NAMES:
            self._damage.add(f"more than {_MAX_NAMES} rigid bodies")
            return
        samples = self._bodies.setdefault(name, _Body())
        samples.receive.append(receive)
        samples.source.append(stamp)
        samples.frame.append(frame)
        samples.poses.append(pose)
        samples.markers.append(points)

    def streams(self) -> list[Stream]:
        """See `Decoder`."""
        return [stream for name, body in self._bodies.items() for stream in self._of(f"{self._topic}/{name}", body)]

    def _of(self, name: str, body: _Body) -> list[Stream]:
        poses, source = np.array(body.poses), np.array(body.source)
        receive, frame = np.array(body.receive), np.array(body.frame, np.int64)
        clock = (receive, source if np.any(source > 0) else None, frame if np.any(frame >= 0) else None)
        declared = {"quat_order": "xyzw", "length_unit": "m"}
        streams = [Stream(name, "pose", {"pos": poses[:, :3], "quat": poses[:, 3:]}, *clock, None, declared)]
        labels = tuple(dict.fromkeys(label for points in body.markers for label in points))[:_MAX_NAMES]
        if labels:
            lost = (np.nan, np.nan, np.nan)
            marker_pos = np.array([[points.get(label, lost) for label in labels] for points in body.markers])
            values = {"marker_pos": marker_pos}
            streams.append(Stream(f"{name}/markers", "markers", values, *clock, labels, {"length_unit": "m"}))
        return streams

    def notes(self) -> list[str]:
        """See `Decoder`."""
        return self._damage.notes()


def _marker_name(marker: Any) -> str:
    name = str(members.member(marker, "marker_name"))
    return name or str(int(members.member(marker, "marker_index")))


def _point(marker: Any) -> tuple[float, float, float]:
    x, y, z = (float(members.resolve(marker, ("translation", letter))) for letter in "xyz")
    return x, y, z


NAMED: Mapping[str, Factory] = {
    "JointState": JointStateDecoder,
    "RigidBodies": lambda topic, unpack: BodiesDecoder(topic, unpack, bodies="rigidbodies", name="rigid_body_name"),
    "NamedPoseArray": lambda topic, unpack: BodiesDecoder(topic, unpack, bodies="poses", name="name"),
}
"""Decoders by the last part of the message type's name."""
