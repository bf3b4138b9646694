"""What a log holds, stream by stream, whether or not it could be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from asap_core.rollouts.ingest.clock import Clocked
from asap_core.rollouts.ingest.streams import Kind, Log, Stream


@dataclass(frozen=True)
class StreamSummary:
    """One stream as it is printed."""

    name: str
    kind: Kind
    rate_hz: float | None
    """By the median interval; None without stamps, or where their unit is open."""
    samples: int
    fields: tuple[str, ...]
    used: bool
    """Whether its meaning is understood; else it was left out."""


def summarise(log: Log, used: Mapping[str, Clocked], stamp_s: float | None) -> tuple[StreamSummary, ...]:
    """Every stream of `log` in file order.

    Args:
        log: as a reader gave it.
        used: the streams that were understood, by name.
        stamp_s: s per unit of the log's stamps, None if open.
    """
    out = []
    for stream in log.streams:
        clock = used.get(stream.name)
        rate = _rate(stream, stamp_s) if clock is None else clock.packets.rate_hz
        fields = stream.values if clock is None else clock.stream.values
        out.append(StreamSummary(stream.name, stream.kind, rate, stream.num_samples, tuple(fields), clock is not None))
    return tuple(out)


def _rate(stream: Stream, stamp_s: float | None) -> float | None:
    stamps = stream.source_time if stream.source_time is not None else stream.receive_time
    if stamps is None or stamp_s is None:
        return None
    steps = np.diff(stamps)
    steps = steps[steps > 0]
    return 1 / (float(np.median(steps)) * stamp_s) if len(steps) else None
