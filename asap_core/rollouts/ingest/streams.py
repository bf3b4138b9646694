"""What a log holds, as it holds it: streams of samples, each on its own clock, in the file's order and units.

A reader fills a `Log`. What columns mean (joint order, quaternion order, units, axes) is decided afterwards, with
evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

RecordedKind = Literal["twin", "robot"]
Kind = Literal["joint_state", "joint_command", "imu", "pose", "odometry", "markers", "event", "signal"]

FIELDS: Mapping[Kind, tuple[str, ...]] = {
    "joint_state": ("joint_pos", "joint_vel", "joint_acc", "joint_torque", "temperature", "voltage", "motor_error"),
    "joint_command": ("joint_target", "joint_vel_target", "joint_torque_target", "kp", "kd", "action", "motor_mode"),
    "imu": ("quat", "ang_vel", "lin_acc", "rpy", "temperature"),
    "pose": ("pos", "quat"),
    "odometry": ("pos", "quat", "lin_vel", "ang_vel"),
    "markers": ("marker_pos",),
    "event": ("text",),
    "signal": ("signal",),
}
"""Names that a stream of a kind may use; joint fields are (N, J), temperature (N, J) or (N, J, 2), quat (N, 4),
marker_pos (N, M, 3) with NaN where occluded, signal (N, …) timed numbers of no known meaning.
Scalars per sample such as mode_pr, mode_machine, crc_ok are (N,)."""

SCALARS: tuple[str, ...] = (
    *("mode_pr", "mode_machine", "crc_ok", "remote_buttons", "emergency_stop"),
    *("tracking_valid", "episode", "frame", "valid"),
)
"""(N,) extras that any stream may carry; crc_ok only where the sender computes checksums."""


SOURCE = "asap.source"
"""Key of a log's metadata under which whoever wrote it says what acted; `kind: twin` marks a simulator."""


@dataclass(frozen=True)
class Stream:
    """N samples of one source."""

    name: str
    """Topic, file column group or rigid body, as the log calls it."""
    kind: Kind
    values: Mapping[str, NDArray[Any]]
    """By the names of `FIELDS` and `SCALARS`."""
    receive_time: NDArray[np.float64] | None = None
    """(N,) s, the recorder's clock, time unit as stored converted only when the format states it."""
    source_time: NDArray[np.float64] | None = None
    """(N,) s, the sender's stamp."""
    sequence: NDArray[np.int64] | None = None
    """(N,) the sender's counter: LowState's tick, a mocap frame number."""
    labels: tuple[str, ...] | None = None
    """Joint names of (N, J) fields or marker names, None if the log stores none."""
    declared: Mapping[str, str] = field(default_factory=dict)
    """What the format says of itself: quat_order, up_axis, length_unit, angle_unit, time_unit, twist_frame,
    joint_order; action_timing 'post_step' where row k holds the state that action k led to."""

    @property
    def num_samples(self) -> int:
        """N."""
        return len(next(iter(self.values.values())))


@dataclass(frozen=True)
class Log:
    """One recording."""

    path: Path
    format: str
    """Key in `asap_core.rollouts.ingest.readers.READERS`."""
    sha256: str
    streams: tuple[Stream, ...]
    notes: tuple[str, ...] = ()
    """What was skipped or cut, in the user's words: 'ends after 620 messages (file cut at byte 1,204,224)'."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """JSON-serialisable extras: capture start time, software, units as written."""

    @property
    def recorded(self) -> RecordedKind:
        """What acted: `twin` where the log says that a simulator stood for the robot, else `robot`."""
        said = self.metadata.get(SOURCE)
        return "twin" if isinstance(said, Mapping) and said.get("kind") == "twin" else "robot"

    def of_kind(self, kind: Kind) -> tuple[Stream, ...]:
        """The streams of one kind, in file order."""
        return tuple(stream for stream in self.streams if stream.kind == kind)
