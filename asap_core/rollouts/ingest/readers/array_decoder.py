"""Decoding of ROS messages without sequences: arrays straight from the bytes of many messages."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.rollouts.ingest.readers.blocks import Block, Channel
from asap_core.rollouts.ingest.readers.families import Family
from asap_core.rollouts.ingest.readers.gather import Clocks, Damage, built
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
from asap_core.rollouts.ingest.streams import Stream

_HEADER = ("header.stamp.sec", "header.stamp.nanosec", "header.seq")


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
