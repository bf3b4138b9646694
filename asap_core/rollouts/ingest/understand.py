"""What the numbers of a log mean, decided stream by stream with evidence, and the log in our conventions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from asap_core.evidence import Decision, undecided
from asap_core.rollouts.ingest.streams import Log, Stream
from asap_core.rollouts.ingest.understanding.imu import read_imu
from asap_core.rollouts.ingest.understanding.joint_streams import read_commands, read_joint_states
from asap_core.rollouts.ingest.understanding.notes import Reading
from asap_core.rollouts.ingest.understanding.options import UnderstandOptions
from asap_core.rollouts.ingest.understanding.poses import read_pose
from asap_core.rollouts.ingest.understanding.time_unit import decide_time_unit

__all__ = ["UnderstandOptions", "Understood", "understood"]
_STAMPS = ("receive_time", "source_time")


@dataclass(frozen=True)
class Understood:
    """A log in our conventions and how it came to that."""

    log: Log
    """Streams with stamps in s; joint fields by SDK joint names (`labels`), rad, rad/s; quat wxyz body to world;
    ang_vel rad/s in the body's frame; lin_acc m/s² specific force; positions in m, z up; odometry velocities in the
    world frame. A stream with an open question that it cannot do without is not among them."""
    decisions: tuple[Decision, ...]
    contradictions: tuple[str, ...] = ()
    """Where the data speak against what the format says, or against themselves; empty for a sound log."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Stream, or stream and field, → why it is not in `log`."""
    stamp_s: float | None = None
    """s per unit of the log's stamps as read, None if open."""

    @property
    def open(self) -> tuple[Decision, ...]:
        """Questions that the data do not settle; each names the option that does."""
        return undecided(self.decisions)


def understood(log: Log, options: UnderstandOptions | None = None) -> Understood:
    """Decide what each stream of `log` means. Questions about a stream are asked only where it has the fields.

    Raises:
        UnknownNameError: an order among the options is none.
        InputFileError: joints are named that the robot does not have.
    """
    options = options or UnderstandOptions()
    reading = Reading(log.path)
    unit = decide_time_unit(log, options.time_unit)
    reading.add(unit.decision)
    if unit.against_format:
        reading.contradict(unit.against_format)
    if unit.seconds is None:
        reading.left_out |= {stream.name: "the unit of its time stamps is open" for stream in log.streams}
        return _finish(log, reading, [], None)
    streams = [_in_seconds(stream, unit.seconds) for stream in log.streams]
    imus = [found for s in streams if s.kind == "imu" and (found := read_imu(s, options, reading)) is not None]
    states = read_joint_states([s for s in streams if s.kind == "joint_state"], streams, imus, options, reading)
    done: dict[str, Stream] = {s.name: s for s in (*imus, *states)}
    commands = read_commands([s for s in streams if s.kind == "joint_command"], states, options, reading)
    done |= {s.name: s for s in commands}
    for stream in streams:
        if stream.kind in ("pose", "odometry", "markers"):
            pose = read_pose(stream, imus, options, reading)
            done |= {} if pose is None else {pose.name: pose}
        elif stream.kind == "event":
            done[stream.name] = stream
        elif stream.kind == "signal":
            reading.left_out[stream.name] = "numbers of no known meaning"
    return _finish(log, reading, [done[s.name] for s in streams if s.name in done], unit.seconds)


def _finish(log: Log, reading: Reading, streams: list[Stream], stamp_s: float | None) -> Understood:
    kept = replace(log, streams=tuple(streams))
    return Understood(kept, tuple(reading.decisions), tuple(reading.contradictions), reading.left_out, stamp_s)


def _in_seconds(stream: Stream, seconds: float) -> Stream:
    if seconds == 1.0:
        return stream
    scaled: dict[str, Any] = {
        name: stamps * seconds for name in _STAMPS if (stamps := getattr(stream, name)) is not None
    }
    return replace(stream, **scaled)
