"""Decoding of one channel's messages, block by block, into streams."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asap_core.rollouts.ingest.readers import members
from asap_core.rollouts.ingest.readers.blocks import Block, Channel
from asap_core.rollouts.ingest.readers.families import Family, Times
from asap_core.rollouts.ingest.readers.layout import Layout
from asap_core.rollouts.ingest.readers.unitree_crc import checksums
from asap_core.rollouts.ingest.readers.unpack import Unpack
from asap_core.rollouts.ingest.streams import Stream

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
        self._differs = False

    def add(self, block: Block, kept: NDArray[np.bool_], stamps: Sequence[float] | None = None) -> None:
        """Times of the rows `kept`, with the stamps of these if the messages have any."""
        receive = block.receive_ns[kept]
        publish = receive if block.publish_ns is None else block.publish_ns[kept]
        self._differs |= bool(np.any(receive != publish))
        self._receive.append(_seconds(receive))
        self._publish.append(_seconds(publish))
        self._stamp.append(np.full(len(receive), np.nan) if stamps is None else np.array(stamps, np.float64))

    def times(self) -> Times:
        """The header's stamp is the source's clock if it was ever set, else the container's publish time."""
        receive, publish, stamp = (np.concatenate([*part, ()]) for part in (self._receive, self._publish, self._stamp))
        if np.any(stamp > 0):
            return Times(receive, stamp)
        return Times(receive, publish if self._differs else None)


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


class FixedDecoder:
    """Messages of one size, read as arrays straight from their bytes."""

    def __init__(self, channel: Channel, family: Family, layout: Layout, struct: Layout | None) -> None:
        self._topic = channel.topic
        self._family = family
        self._layout = layout
        self._struct = struct if "crc" in layout.leaves else None
        self._start = 4 if channel.encoding == "cdr" else 0
        self._paths = [path for path in (*family.required, *family.optional) if path in layout.leaves]
        self._columns: dict[str, list[NDArray[Any]]] = defaultdict(list)
        self._clocks = Clocks()
        self._damage = Damage()

    def add(self, block: Block) -> None:
        """See `Decoder`."""
        size = self._start + self._layout.size
        lengths = np.array([len(payload) for payload in block.payloads])
        # A DDS may pad the payload to a multiple of four.
        kept = (lengths >= size) & (lengths <= size + (3 if self._start else 0))
        if not kept.all():
            odd = lengths[~kept]
            self._damage.add(f"{odd[0]} bytes long, expected {size}", len(odd))
        data = b"".join(payload[:size] for payload, is_kept in zip(block.payloads, kept, strict=True) if is_kept)
        rows = np.frombuffer(data, np.uint8).reshape(-1, size)
        if self._start:
            known = (rows[:, 0] == 0) & (rows[:, 1] <= 1)
            self._damage.add("an encapsulation other than plain CDR", int(np.sum(~known)))
            kept[kept] = known
            rows = rows if known.all() else rows[known]
        if len(rows):
            self._clocks.add(block, kept)
            self._decode(rows)

    def _decode(self, rows: NDArray[np.uint8]) -> None:
        big = rows[:, 1] == 0 if self._start else np.zeros(len(rows), bool)
        for path in self._paths:
            self._columns[path].append(self._column(rows, path, big))
        if self._struct is not None:
            stored = self._column(rows, "crc", big)
            self._columns["crc_stored"].append(stored != 0)
            self._columns["crc_ok"].append(self._check(rows, stored, big))

    def _column(self, rows: NDArray[np.uint8], path: str, big: NDArray[np.bool_]) -> NDArray[Any]:
        if not big.any():
            return self._layout.decode(rows, path, start=self._start)
        values = self._layout.decode(rows, path, start=self._start, order=">")
        if not big.all():
            values[~big] = self._layout.decode(np.ascontiguousarray(rows[~big]), path, start=self._start)
        return values

    def _check(self, rows: NDArray[np.uint8], stored: NDArray[Any], big: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the stored checksum is right; it was made of the little-endian structure in the robot."""
        assert self._struct is not None
        right = np.zeros(len(rows), bool)
        if not (there := stored != 0).any():
            return right
        little = rows[:, self._start :]
        if big.any():
            little = self._layout.encode(
                {path: self._column(rows, path, big) for path in self._layout.leaves}, len(rows)
            )
        right[there] = checksums(little[there], self._layout, self._struct) == stored[there]
        return right

    def streams(self) -> list[Stream]:
        """See `Decoder`."""
        if not self._columns:
            return []
        columns = {path: np.concatenate(self._columns.pop(path)) for path in list(self._columns)}
        if not columns.pop("crc_stored", np.zeros(1)).any():
            columns.pop("crc_ok", None)
        return self._family.build(self._topic, columns, self._clocks.times())

    def notes(self) -> list[str]:
        """See `Decoder`."""
        return self._damage.notes()


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
        try:
            return self._family.build(self._topic, columns, self._clocks.times())
        except (ValueError, IndexError, TypeError):
            self._damage.add("fields of other shapes than the message type has", len(next(iter(columns.values()))))
            return []

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
