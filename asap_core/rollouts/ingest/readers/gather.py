"""What decoders of messages have in common: the clocks of what was kept, the count of what was not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asap_core.rollouts.ingest.readers.blocks import Block
from asap_core.rollouts.ingest.readers.families import Columns, Family, Times
from asap_core.rollouts.ingest.readers.unpack import Unpack
from asap_core.rollouts.ingest.streams import Stream


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


def built(family: Family, topic: str, columns: Columns, times: Times, damage: Damage) -> list[Stream]:
    """The streams of a channel; none, and said, if its fields have shapes that the message type does not have."""
    if set(family.required) <= set(columns):
        try:
            return family.build(topic, columns, times)
        except (ValueError, IndexError, TypeError):
            pass
    damage.add("fields other than the message type has", len(times.receive))
    return []


Factory = Callable[[str, Unpack], Decoder]
"""(topic, unpack) → decoder."""
