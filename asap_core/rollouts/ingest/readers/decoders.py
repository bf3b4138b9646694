"""Decoding of one channel's messages, block by block, into streams."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asap_core.rollouts.ingest.readers import members
from asap_core.rollouts.ingest.readers.blocks import Block, Channel
from asap_core.rollouts.ingest.readers.families import Columns, Family, Times
from asap_core.rollouts.ingest.readers.layout import (
    CutMessageError,
    Fields,
    Layout,
    Order,
    Packing,
    StringsError,
    VariableSizeError,
    fixed_layout,
    layout_like,
)
from asap_core.rollouts.ingest.readers.unitree_crc import checksums
from asap_core.rollouts.ingest.readers.unpack import Unpack
from asap_core.rollouts.ingest.streams import Stream

_HEADER = ("header.stamp.sec", "header.stamp.nanosec", "header.seq")
_NOT_NUMBERS = (KeyError, ValueError, TypeError, OverflowError, RecursionError)


class Decoder(Protocol):
    """What gathers the messages of one channel."""

    def add(self, block: Block) -> None:
        """Decode and keep a block; damaged messages are counted and left out."""

    def streams(self) -> list[Stream]:
        """Everything kept; called once, at the end."""

    def notes(self) -> list[str]:
        """What was left out."""


class Clocks:
    """Gathers the times of the messages that were kept."""

    def __init__(self) -> None:
        self._receive: list[NDArray[np.float64]] = []
        self._publish: list[NDArray[np.float64]] = []
        self._stamp: list[NDArray[np.float64]] = []
        self._sequence: list[NDArray[Any]] = []
        self._differs = False

    def add(
        self,
        block: Block,
        kept: NDArray[np.bool_],
        stamps: Sequence[float] | NDArray[np.float64] | None = None,
        sequence: NDArray[Any] | None = None,
    ) -> None:
        """Times of the rows `kept`, with the stamps and counters of these if the messages have any."""
        receive = block.receive_ns[kept]
        publish = receive if block.publish_ns is None else block.publish_ns[kept]
        self._differs |= bool(np.any(receive != publish))
        self._receive.append(_seconds(receive))
        self._publish.append(_seconds(publish))
        self._stamp.append(np.full(len(receive), np.nan) if stamps is None else np.asarray(stamps, np.float64))
        self._sequence.append(np.zeros(len(receive), np.int64) if sequence is None else sequence.astype(np.int64))

    def times(self) -> Times:
        """The header's stamp is the source's clock if it was ever set, else the container's publish time."""
        receive, publish, stamp = (np.concatenate([*part, ()]) for part in (self._receive, self._publish, self._stamp))
        counter = np.concatenate([*self._sequence, np.zeros(0, np.int64)])
        sequence = counter if counter.any() else None
        if np.any(stamp > 0):
            return Times(receive, stamp, sequence)
        return Times(receive, publish if self._differs else None, sequence)


def _seconds(nanoseconds: NDArray[np.uint64]) -> NDArray[np.float64]:
    return nanoseconds.astype(np.float64) * 1e-9


class Damage:
    """Counts messages left out, by reason."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, reason: str, count: int = 1) -> None:
        """Count messages; at most a dozen reasons are told apart."""
        if count:
            self._counts[reason if len(self._counts) < 12 else "damaged"] += count

    def notes(self) -> list[str]:
        """One line a reason."""
        return [f"{count} messages left out: {reason}" for reason, count in self._counts.items()]


class ArrayDecoder:
    """ROS messages without sequences, read as arrays straight from their bytes."""

    def __init__(self, channel: Channel, family: Family, fields: Fields, type_name: str) -> None:
        """
        Args:
            channel: of encoding cdr or ros1.
            family: which numbers are read.
            fields: the definitions.
            type_name: the message's name among them.

        Raises:
            VariableSizeError: it holds sequences.
        """
        self._topic = channel.topic
        self._family = family
        self._fields, self._type_name = fields, type_name
        self._packing: Packing = "cdr" if channel.encoding == "cdr" else "ros1"
        self._start = 4 if self._packing == "cdr" else 0
        self._layout: Layout | None = None
        with suppress(StringsError):
            self._layout = fixed_layout(fields, type_name, self._packing)
        with_crc = self._layout is not None and "crc" in self._layout.leaves
        self._struct = fixed_layout(fields, type_name, "c") if with_crc else None
        self._columns: dict[str, list[NDArray[Any]]] = defaultdict(list)
        self._clocks = Clocks()
        self._damage = Damage()

    def add(self, block: Block) -> None:
        """See `Decoder`."""
        lengths = np.array([len(payload) for payload in block.payloads])
        left = np.arange(len(lengths))
        parts: list[tuple[NDArray[np.int64], dict[str, NDArray[Any]]]] = []
        while len(left):
            try:
                order, layout = self._layout_of(block.payloads[left[0].item()])
            except (CutMessageError, VariableSizeError) as error:
                self._damage.add(str(error))
                left = left[1:]
                continue
            alike = left[self._is_size(lengths[left], layout.size)]
            rows = self._rows([block.payloads[k] for k in alike.tolist()], layout.size)
            same = layout.fits(rows, start=self._start, order=order)
            if self._start:
                same &= (rows[:, 0] == rows[0, 0]) & (rows[:, 1] == rows[0, 1])
            parts.append((alike[same], self._read(rows if same.all() else rows[same], layout, order)))
            left = np.setdiff1d(left, alike[same], assume_unique=True)
        self._keep(block, parts)

    def _layout_of(self, payload: bytes | memoryview) -> tuple[Order, Layout]:
        """Byte order and layout of one message.

        Raises:
            CutMessageError: its length or its encapsulation is not what its type has.
            VariableSizeError: it holds a sequence.
        """
        order: Order = "<"
        if self._start:
            if bytes(payload[:2]) not in (b"\0\0", b"\0\1"):
                raise CutMessageError("an encapsulation other than plain CDR")
            order = "<" if payload[1] else ">"
        body = payload[self._start :]
        layout = self._layout or layout_like(self._fields, self._type_name, self._packing, body, order)
        if not self._is_size(np.array([len(payload)]), layout.size)[0]:
            raise CutMessageError(f"{len(payload)} bytes long, expected {self._start + layout.size}")
        return order, layout

    def _is_size(self, lengths: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
        """Whether payloads are as long as the layout; a DDS may pad them to a multiple of four."""
        return (lengths >= self._start + size) & (lengths <= self._start + size + (3 if self._start else 0))

    def _rows(self, payloads: list[bytes | memoryview], size: int) -> NDArray[np.uint8]:
        size += self._start
        return np.frombuffer(b"".join(payload[:size] for payload in payloads), np.uint8).reshape(-1, size)

    def _read(self, rows: NDArray[np.uint8], layout: Layout, order: Order) -> dict[str, NDArray[Any]]:
        paths = [path for path in (*self._family.required, *self._family.optional, *_HEADER) if path in layout.leaves]
        columns = {path: layout.decode(rows, path, start=self._start, order=order) for path in paths}
        if self._struct is not None:
            columns |= self._checked(rows, layout, order)
        return columns

    def _checked(self, rows: NDArray[np.uint8], layout: Layout, order: Order) -> dict[str, NDArray[Any]]:
        """Which messages have a checksum, and whether it is right; the robot's structure is little endian."""
        assert self._struct is not None
        stored = layout.decode(rows, "crc", start=self._start, order=order)
        there, right = stored != 0, np.zeros(len(rows), bool)
        if there.any():
            bodies = rows[there, self._start :]
            if order == ">":
                big = rows[there]
                values = {path: layout.decode(big, path, start=self._start, order=order) for path in layout.leaves}
                bodies = layout.encode(values, len(big))
            right[there] = checksums(bodies, layout, self._struct) == stored[there]
        return {"crc_stored": there, "crc_ok": right}

    def _keep(self, block: Block, parts: list[tuple[NDArray[np.int64], dict[str, NDArray[Any]]]]) -> None:
        if not parts:
            return
        index = np.concatenate([rows for rows, _ in parts])
        order = np.argsort(index)
        columns = {path: np.concatenate([part[path] for _, part in parts])[order] for path in parts[0][1]}
        kept = np.zeros(len(block.payloads), bool)
        kept[index] = True
        seconds, nanoseconds, sequence = (columns.pop(path, None) for path in _HEADER)
        stamps = None if seconds is None or nanoseconds is None else seconds + nanoseconds * 1e-9
        self._clocks.add(block, kept, stamps, sequence)
        for path, values in columns.items():
            self._columns[path].append(values)

    def streams(self) -> list[Stream]:
        """See `Decoder`."""
        if not self._columns:
            return []
        columns = {path: np.concatenate(self._columns.pop(path)) for path in list(self._columns)}
        if not columns.pop("crc_stored", np.zeros(1)).any():
            columns.pop("crc_ok", None)
        return built(self._family, self._topic, columns, self._clocks.times(), self._damage)

    def notes(self) -> list[str]:
        """See `Decoder`."""
        return self._damage.notes()


def built(family: Family, topic: str, columns: Columns, times: Times, damage: Damage) -> list[Stream]:
    """The streams of a channel; none, and said, if its fields have shapes that the message type does not have."""
    if set(family.required) <= set(columns):
        try:
            return family.build(topic, columns, times)
        except (ValueError, IndexError, TypeError):
            pass
    damage.add("fields other than the message type has", len(times.receive))
    return []


class ObjectDecoder:
    """Messages of one shape that a library decodes one by one."""

    def __init__(self, channel: Channel, family: Family, unpack: Unpack) -> None:
        self._topic = channel.topic
        self._family = family
        self._unpack = unpack
        self._columns: dict[str, list[NDArray[Any]]] = defaultdict(list)
        self._clocks = Clocks()
        self._damage = Damage()
        self._shapes: dict[str, tuple[int, ...]] = {}

    def add(self, block: Block) -> None:
        """See `Decoder`."""
        objects, kept = unpacked(block, self._unpack, self._damage)
        if not objects:
            return
        try:
            columns = self._read(objects)
        except _NOT_NUMBERS:
            good = np.array([self._is_good(message) for message in objects])
            kept[kept] = good
            objects = [message for message, is_good in zip(objects, good, strict=True) if is_good]
            if not objects:
                return
            columns = self._read(objects)
        self._clocks.add(block, kept, [members.stamp(message) for message in objects])
        for path, values in columns.items():
            self._columns[path].append(values)

    def _read(self, objects: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """Columns of messages that are all like the first one ever read.

        Raises:
            KeyError: a field is missing.
            ValueError: something else than numbers, or arrays of another length.
        """
        optional = () if self._shapes else [path for path in self._family.optional if members.has(objects[0], path)]
        paths = tuple(self._shapes) or (*self._family.required, *optional)
        columns = {path: members.column(objects, path) for path in paths}
        shapes = {path: values.shape[1:] for path, values in columns.items()}
        if self._shapes and shapes != self._shapes:
            raise ValueError("arrays of another length than in the first message")
        self._shapes = shapes
        return columns

    def _is_good(self, message: Any) -> bool:
        """Whether one message can be read; if not it is counted."""
        try:
            self._read([message])
        except KeyError as error:
            self._damage.add(f"field {error.args[0]} is missing")
        except _NOT_NUMBERS:
            self._damage.add("something else than numbers in a field, or arrays of another length")
        else:
            return True
        return False

    def streams(self) -> list[Stream]:
        """See `Decoder`."""
        if not self._columns:
            return []
        columns = {path: np.concatenate(self._columns.pop(path)) for path in list(self._columns)}
        return built(self._family, self._topic, columns, self._clocks.times(), self._damage)

    def notes(self) -> list[str]:
        """See `Decoder`."""
        return self._damage.notes()


def unpacked(block: Block, unpack: Unpack, damage: Damage) -> tuple[list[Any], NDArray[np.bool_]]:
    """Objects of the messages that decode, and which these are."""
    objects: list[Any] = []
    kept = np.zeros(len(block.payloads), bool)
    for k, payload in enumerate(block.payloads):
        try:
            objects.append(unpack(payload))
            kept[k] = True
        except Exception as error:  # every library has its own kinds of errors for damaged bytes
            damage.add(f"not decodable ({type(error).__name__})")
    return objects, kept


Factory = Callable[[str, Unpack], Decoder]
"""(topic, unpack) → decoder."""
