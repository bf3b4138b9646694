"""Decoding of protobuf and JSON messages of one shape, one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.rollouts.ingest.readers import members
from asap_core.rollouts.ingest.readers.blocks import Block, Channel
from asap_core.rollouts.ingest.readers.families import Family
from asap_core.rollouts.ingest.readers.gather import Clocks, Damage, built
from asap_core.rollouts.ingest.readers.unpack import Unpack
from asap_core.rollouts.ingest.streams import Stream

_NOT_NUMBERS = (KeyError, ValueError, TypeError, OverflowError, RecursionError)


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
