"""When the samples of a stream were taken: packets put in order, arrival jitter removed by their sequence numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import StageError
from asap_core.rollouts.ingest.streams import Stream

Float64 = NDArray[np.float64]
Rows = NDArray[np.intp]
Source = Literal["sequence", "counted", "stamps"]

GAP_PERIODS = 2.5
"""A longer time between two samples, in median periods, is a gap."""
EPISODE_GAP_PERIODS = 50
_COUNTED_JITTER = 0.3
_COUNTED_SHARE = 0.8
"""Stamps of a stream without sequence numbers are put on a line where 80 % of the intervals are one period, and 95 % of
those within 30 % of it."""
_WRAP_BITS = (8, 16, 32)
_NEAR = 100
"""Samples within which a packet may come late, or a counter wrap."""


@dataclass(frozen=True)
class Packets:
    """What the packets of a stream went through; counts are samples."""

    source: Source
    """What the times come from: the sender's counter, samples counted along regular stamps, or the stamps as they
    are."""
    rate_hz: float
    """Of the kept samples, by the median interval."""
    unique_rate_hz: float
    """The same of samples that differ from the one before: a 50 Hz source repeated at 500 Hz shows 50."""
    out_of_order: int
    duplicates: int
    """Sequence numbers that came again; the first is kept."""
    repeats: int
    """Samples whose whole payload equals the one before."""
    dropped: int
    """Missing sequence numbers, or periods missing between regular stamps."""
    resets: int
    """How often the counter started anew."""
    wraps: int
    gaps: Float64
    """(G, 2) s, last sample before and first after."""
    jitter_p95_s: float
    """95th percentile of arrival after the fitted time; 0 for stamps kept as they are."""


@dataclass(frozen=True)
class Clocked:
    """A stream with the time of each sample. Rows are in time order, each once."""

    stream: Stream
    time: Float64
    """(N,) s, strictly increasing, on the clock of the stream's stamps."""
    packets: Packets


@dataclass(frozen=True)
class Counted:
    """A counter without wraps: N values in arrival order."""

    count: NDArray[np.int64]
    """(N,) periods of the sender since the segment's start, in the counter's own unit."""
    segment: Rows
    """(N,) grows by one at each reset."""
    late: NDArray[np.bool_]
    """(N,) came after a later one."""
    wraps: int


def clocked(stream: Stream) -> Clocked:
    """Put a stream on one clock of its own.

    The stamps are the sender's where there are some, else the recorder's. With a sequence number, time = a + b·number
    by the lower hull of the stamps, since delays only add. Without, regular stamps are put on a line and irregular
    ones kept.

    Raises:
        StageError: the stream has no stamps, fewer than two samples, or a stamp is not finite.
    """
    stamps = stream.source_time if stream.source_time is not None else stream.receive_time
    if stamps is None or stream.num_samples < 2:
        found = "no time stamps" if stamps is None else f"{stream.num_samples} sample(s)"
        raise StageError(f"stream {stream.name}: {found}, expected at least two samples with time stamps")
    if not np.isfinite(stamps).all():
        row = int(np.argmin(np.isfinite(stamps)))
        raise StageError(f"stream {stream.name}: time stamp {stamps[row]} in sample {row}, expected a number of s")
    repeats, run = _repeats(stream)
    if stream.sequence is not None and len(np.unique(stream.sequence)) > 1:
        return _by_sequence(stream, stamps, stream.sequence, repeats, run)
    return _by_stamps(stream, stamps, repeats, run)


def in_line(stream: Stream) -> Stream:
    """A stream whose stamps start anew with every `episode`, its episodes one after the other, a gap of
    `EPISODE_GAP_PERIODS` between them. Any other stream comes back as it is.
    """
    field = "receive_time" if stream.source_time is None else "source_time"
    stamps, episode = getattr(stream, field), stream.values.get("episode")
    if stamps is None or episode is None or not (np.diff(stamps)[np.diff(episode) != 0] < 0).any():
        return stream
    time, steps = stamps.copy(), np.diff(stamps)
    gap = EPISODE_GAP_PERIODS * float(np.median(steps[steps > 0])) if (steps > 0).any() else 1.0
    for first in np.flatnonzero(np.diff(episode)) + 1:
        time[first:] += time[first - 1] + gap - time[first]
    moved: dict[str, Any] = {field: time}
    return replace(stream, **moved)


def take(stream: Stream, rows: Rows | NDArray[np.bool_]) -> Stream:
    """The samples `rows` of a stream, in that order."""
    parts: dict[str, Any] = {name: None if (a := getattr(stream, name)) is None else a[rows] for name in _PER_SAMPLE}
    return replace(stream, values={name: value[rows] for name, value in stream.values.items()}, **parts)


_PER_SAMPLE = ("receive_time", "source_time", "sequence")


def lower_line(x: Float64, y: Float64) -> tuple[float, float]:
    """The line a + b·x under all points (N,) that has the least sum of distances: the edge of the lower hull at mean x.

    Returns:
        a, b.
    """
    order = np.lexsort((y, x))
    hull: list[tuple[float, float]] = []
    for px, py in zip(x[order].tolist(), y[order].tolist(), strict=True):
        if hull and px == hull[-1][0]:
            continue
        while len(hull) > 1 and _turns_right(hull[-2], hull[-1], (px, py)):
            hull.pop()
        hull.append((px, py))
    corners = np.array(hull)
    i = int(np.clip(np.searchsorted(corners[:, 0], x.mean()), 1, len(corners) - 1))
    slope = (corners[i, 1] - corners[i - 1, 1]) / (corners[i, 0] - corners[i - 1, 0])
    return float(corners[i, 1] - slope * corners[i, 0]), float(slope)


def _turns_right(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) <= (b[1] - a[1]) * (c[0] - a[0])


def count_up(sequence: NDArray[np.int64]) -> Counted:
    """Undo wraps (8, 16 or 32 bits), tell late packets from resets."""
    count = sequence.astype(np.int64).copy()
    steps = np.diff(count)
    step = int(np.median(steps[steps > 0])) if (steps > 0).any() else 1
    segment = np.zeros(len(count), dtype=np.intp)
    wraps = 0
    for i in np.flatnonzero(steps < 0) + 1:
        before, now = int(count[i - 1]), int(count[i])
        bits = next((b for b in _WRAP_BITS if _wraps(int(sequence[i - 1]), int(sequence[i]), step, b)), None)
        if bits is not None:
            count[i:] += 2**bits
            wraps += 1
        elif before - now > _NEAR * step or not (count[i : i + _NEAR] > before).any():
            segment[i:] += 1
    return Counted(count, segment, _is_late(count, segment), wraps)


def _wraps(before: int, now: int, step: int, bits: int) -> bool:
    return 2**bits - _NEAR * step // 4 <= before < 2**bits and now < _NEAR * step // 4 and before > _NEAR * step // 2


def _is_late(count: NDArray[np.int64], segment: Rows) -> NDArray[np.bool_]:
    late = np.zeros(len(count), dtype=bool)
    for number in np.unique(segment):
        rows = np.flatnonzero(segment == number)
        late[rows] = count[rows] < np.maximum.accumulate(count[rows])
    return late


def _by_sequence(stream: Stream, stamps: Float64, sequence: NDArray[np.int64], repeats: int, run: float) -> Clocked:
    counted = count_up(sequence)
    time = np.empty(len(stamps))
    delay = np.empty(len(stamps))
    dropped = 0
    for number in np.unique(counted.segment):
        rows = np.flatnonzero(counted.segment == number)
        count = counted.count[rows]
        time[rows] = _fitted(count.astype(float), stamps[rows])
        delay[rows] = stamps[rows] - time[rows]
        unique = np.unique(count)
        steps = np.diff(unique)
        dropped += int(np.sum(steps // np.median(steps) - 1)) if len(steps) else 0
    order = np.lexsort((np.arange(len(time)), counted.count, counted.segment))
    key = np.stack([counted.segment[order], counted.count[order]])
    first = np.append(True, (np.diff(key, axis=1) != 0).any(axis=0))
    kept = order[first]
    kept = kept[np.append(True, np.diff(np.maximum.accumulate(time[kept])) > 0)]
    packets = _packets("sequence", time[kept], run)
    packets = replace(
        packets,
        out_of_order=int(counted.late.sum()),
        duplicates=int((~first).sum()),
        repeats=repeats,
        dropped=dropped,
        resets=int(counted.segment[-1]),
        wraps=counted.wraps,
        jitter_p95_s=float(np.percentile(delay, 95)),
    )
    return Clocked(take(stream, kept), time[kept], packets)


def _fitted(count: Float64, stamps: Float64) -> Float64:
    if len(np.unique(count)) < 2:
        return stamps
    offset, slope = lower_line(count - count[0], stamps)
    return offset + slope * (count - count[0]) if slope > 0 else stamps


def _by_stamps(stream: Stream, stamps: Float64, repeats: int, run: float) -> Clocked:
    late = stamps < np.maximum.accumulate(stamps)
    order = np.argsort(stamps, kind="stable")
    first = np.append(True, np.diff(stamps[order]) > 0)
    kept = order[first]
    if len(kept) < 2:
        raise StageError(f"stream {stream.name}: all time stamps are {stamps[0]}, expected them to grow")
    time = stamps[kept]
    steps = np.diff(time)
    period = float(np.median(steps))
    missing = np.maximum(np.round(steps / period) - 1, 0)
    single = steps[missing == 0]
    regular = len(single) > _COUNTED_SHARE * len(steps)
    source: Source = "stamps"
    jitter = 0.0
    if regular and np.percentile(np.abs(single - period), 95) < _COUNTED_JITTER * period:
        count = np.append(0.0, np.cumsum(missing + 1))
        slope, offset = np.polyfit(count, time, 1)
        line = offset + slope * count
        if is_line(time - line, single, period):
            source, jitter, time = "counted", float(np.percentile(np.abs(time - line), 95)), line
    packets = replace(
        _packets(source, time, run),
        out_of_order=int(late.sum()),
        duplicates=int((~first).sum()),
        repeats=repeats,
        dropped=int(missing.sum()) if regular else 0,
        jitter_p95_s=jitter,
    )
    return _without_episode_ends(Clocked(take(stream, kept), time, packets))


def _without_episode_ends(found: Clocked) -> Clocked:
    """What lies between two episodes is neither a gap nor lost."""
    episode = found.stream.values.get("episode")
    if episode is None:
        return found
    ends = found.time[:-1][np.diff(episode) != 0]
    gaps = found.packets.gaps
    between = np.isin(gaps[:, 0], ends)
    lost = np.round((gaps[between, 1] - gaps[between, 0]) * found.packets.rate_hz) - 1
    dropped = max(found.packets.dropped - int(lost.sum()), 0)
    return replace(found, packets=replace(found.packets, gaps=gaps[~between], dropped=dropped))


def is_line(residual: Float64, steps: Float64, period: float) -> bool:
    """Whether times that miss a line by `residual` (N,) do so by jitter alone.

    Independent jitter shows in the steps √2 times as large as in the residual; a loop that slips or wanders misses the
    line by more than its steps tell.
    """
    jitter = float(np.std(steps)) / np.sqrt(2)
    return float(np.sqrt((residual**2).mean())) < 2 * jitter + 0.01 * period


def _packets(source: Source, time: Float64, run: float) -> Packets:
    steps = np.diff(time)
    period = float(np.median(steps))
    wide = np.flatnonzero(steps > GAP_PERIODS * period)
    gaps = np.stack([time[wide], time[wide + 1]], axis=1)
    return Packets(source, 1 / period, 1 / (period * run), 0, 0, 0, 0, 0, 0, gaps, 0.0)


def _repeats(stream: Stream) -> tuple[int, float]:
    """Samples equal to the one before in every field, and the median length of runs of equal samples."""
    same = np.ones(stream.num_samples - 1, dtype=bool)
    for name, values in stream.values.items():
        if name not in ("frame", "episode"):
            flat = values.reshape(len(values), -1)
            equal = flat[1:] == flat[:-1]
            if np.issubdtype(flat.dtype, np.floating):
                equal |= np.isnan(flat[1:]) & np.isnan(flat[:-1])
            same &= equal.all(axis=1)
    starts = np.flatnonzero(np.append(True, ~same))
    return int(same.sum()), float(np.median(np.diff(np.append(starts, len(same) + 1))))
