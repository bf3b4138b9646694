"""The unit of a log's stamps: the rate must be one that robots log at, and stored velocities must integrate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asap_core.evidence import Decision, decide, given
from asap_core.rollouts.ingest.streams import Log, Stream
from asap_core.rollouts.ingest.understanding.rates import Slope, rate_slope, windows

OPTION = "--time-unit"
QUESTION = "time unit of the stamps"
SLOWEST_HZ, FASTEST_HZ = 19.0, 2100.0
LEAST_R2 = 0.7
_STANDARD = (0, -3, -6, -9)
_MARGIN = 0.5
"""In ln of the slope; a decade is 2.3, degrees for radians 4.0."""
_RAD = np.log(np.degrees(1.0))


@dataclass(frozen=True)
class TimeUnit:
    """Seconds per unit of the stamps, None if undecided, and whether that goes against the format."""

    seconds: float | None
    decision: Decision
    against_format: str | None = None


def stamps_of(stream: Stream) -> NDArray[np.float64] | None:
    """The sender's stamps where there are some, else the recorder's."""
    return stream.source_time if stream.source_time is not None else stream.receive_time


def decide_time_unit(log: Log, option: float | None) -> TimeUnit:
    """The unit of all stamps of a log, by its fastest stream and the stream whose velocities tell most."""
    timed = [s for s in log.streams if stamps_of(s) is not None and s.num_samples > 2 and s.kind != "event"]
    if option is not None:
        return TimeUnit(option, given(QUESTION, f"{option:g} s", "the option says so", OPTION))
    periods = [period for s in timed if (period := _period(s)) > 0]
    if not periods:
        return TimeUnit(1.0, given(QUESTION, "1 s", "there are no stamps to judge", OPTION))
    period = min(periods)
    slope = best_slope(timed)
    fitting = [e for e in range(1, -10, -1) if SLOWEST_HZ <= 1 / (period * 10.0**e) <= FASTEST_HZ]
    found = _by_slope(fitting, slope, period) if slope.r2 >= LEAST_R2 else _by_rate(log, fitting, period)
    declared = timed[0].declared.get("time_unit")
    stated = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}.get(declared or "")
    if found.answer is None:
        return TimeUnit(None, found)
    seconds = float(found.answer.removesuffix(" s"))
    against = None
    if stated is not None and seconds != stated:
        against = f"stamps count {seconds / stated:g} times what the format says ({declared})"
    return TimeUnit(seconds, found, against)


def best_slope(streams: list[Stream]) -> Slope:
    """Velocity slope of the stream that shows it best; stamps as stored."""
    slopes = [_slope(stream) for stream in streams]
    known = [slope for slope in slopes if np.isfinite(slope.r2)]
    return max(known, key=lambda s: s.r2, default=Slope(float("nan"), float("nan")))


def _slope(stream: Stream) -> Slope:
    names = {"joint_state": ("joint_pos", "joint_vel")}.get(stream.kind)
    stamps = stamps_of(stream)
    if names is None or stamps is None or not set(names) <= set(stream.values):
        return Slope(float("nan"), float("nan"))
    order = np.argsort(stamps, kind="stable")
    pos, vel = (np.asarray(stream.values[name], float)[order] for name in names)
    return rate_slope(*windows(stamps[order] - stamps[order][0], pos, vel))


def _period(stream: Stream) -> float:
    stamps = stamps_of(stream)
    assert stamps is not None
    steps = np.diff(np.sort(stamps[np.isfinite(stamps)]))
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else 0.0


def _by_slope(fitting: list[int], slope: Slope, period: float) -> Decision:
    """The decade at which velocities integrate to positions, degrees on one side allowed."""
    if not fitting:
        return _no_rate(period)
    size = np.log(abs(slope.slope))
    scores = {_name(e): -min(abs(size + e * np.log(10.0) - unit) for unit in (0.0, _RAD, -_RAD)) for e in fitting}
    how = f"velocities against positions, R² {slope.r2:.2f}; fastest stream {1 / period:.4g} per unit"
    return replace(decide(QUESTION, scores, how, OPTION, _MARGIN, -_MARGIN), unit="ln")


def _by_rate(log: Log, fitting: list[int], period: float) -> Decision:
    wanted = (*_STANDARD, -5) if log.format == "sage" else _STANDARD
    scores = {_name(e): 1.0 for e in fitting if e in wanted}
    if not scores:
        return _no_rate(period)
    how = f"only unit that gives {SLOWEST_HZ:.0f} to {FASTEST_HZ:.0f} Hz" if len(scores) == 1 else "several units fit"
    return decide(QUESTION, scores, how, OPTION, 0.5)


def _no_rate(period: float) -> Decision:
    how = f"no unit gives {SLOWEST_HZ:.0f} to {FASTEST_HZ:.0f} Hz at a median step of {period:.4g}"
    return Decision(QUESTION, None, 0.0, None, float("inf"), how, OPTION)


def _name(exponent: int) -> str:
    return f"{10.0**exponent:g} s"
