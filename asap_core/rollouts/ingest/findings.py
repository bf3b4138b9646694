"""What speaks against a log, in words a user can act on: one finding a cause, with the figure it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from asap_core.rollouts.ingest.clock import Packets
from asap_core.rollouts.ingest.lag import Lag
from asap_core.rollouts.ingest.quality import INFORMING, Quality
from asap_core.rollouts.ingest.streams import Log
from asap_core.rollouts.ingest.sync import Sync
from asap_core.rollouts.ingest.understand import Understood

Severity = Literal["error", "warning", "note"]

OFFSET_SIGMAS = 4.0
LEAST_OFFSET_S = 2e-3
"""Stamps of one machine that are further apart than this, and surely so, are late."""
LEAST_DRIFT = 15e-6
_REPEATED = 0.6
"""A stream that changes at less than this share of its rate repeats old samples."""
_MOST_OFF_RATE = 0.01
_EDGE_STEPS = 50
"""Control steps."""

_MASKS = {
    "frozen": "all joints read the same for long: the source repeats old samples",
    "encoder_glitch": "a joint angle jumps further than the joint can turn",
    "tracking_lost": "gains at zero, or a command that stays while the robot moves",
    "emergency_stop": "the remote control stops the robot",
    "crc_bad": "checksums do not match",
    "motor_error": "a motor reports an error",
    "hot": "a motor is too hot",
    "warm": "a motor is near its heat limit",
    "torque_saturated": "a motor is at its torque limit",
    "saturated_long": "a motor stays at its torque limit",
    "action_saturated": "an action is at its clip, or a target at a joint limit",
    "fall": "the robot falls",
    "lifted": "the feet bear no weight: it hangs from a gantry",
    "state_gap": "no state for longer than 60 ms, or the next row is missing",
    "base_gap": "the base is not known: motion capture lost it, or the estimate has not settled",
    "short_run": "a run of good rows is shorter than a second",
}
_QUESTIONS = {
    "joint order": "joint_order",
    "orders differ": "joint_order",
    "quaternion order": "quat_order",
    "angle unit": "angle_unit",
    "velocity unit": "angle_unit",
    "gyro": "angle_unit",
    "accel": "accel_unit",
    "time unit": "time_unit",
    "stamps count": "time_unit",
    "up axis": "up_axis",
    "length unit": "length_unit",
    "twist": "twist_frame",
    "velocities": "velocity",
}
"""Words in a contradiction or a question → code."""


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be, or that a user should know."""

    severity: Severity
    code: str
    text: str

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def of_understanding(understood: Understood) -> list[Finding]:
    """Contradictions are errors, open questions too, and so is what was left out for them."""
    found = [Finding("error", _code(text), text) for text in understood.contradictions]
    found += [Finding("error", _code(decision.question), decision.text) for decision in understood.open]
    return found + [Finding("warning", "left_out", f"{name}: {why}") for name, why in understood.left_out.items()]


def _code(text: str) -> str:
    return next((code for words, code in _QUESTIONS.items() if words in text), "contradiction")


def of_log(log: Log) -> list[Finding]:
    """What the reader said, and how the robot was set up."""
    found = [Finding("note", "reader", note) for note in log.notes]
    machines: set[int] = set()
    for stream in log.streams:
        if "mode_pr" in stream.values and (np.asarray(stream.values["mode_pr"]) == 1).any():
            text = f"{stream.name}: mode_pr is 1, ankle and waist values are those of the parallel motors"
            found.append(Finding("error", "parallel_mode", text))
        if "mode_machine" in stream.values and stream.kind == "joint_state":
            machines |= {int(value) for value in np.unique(stream.values["mode_machine"])}
    if len(machines) > 1:
        found.append(Finding("error", "mixed_robots", f"mode_machine changes between {sorted(machines)}"))
    return found


def of_packets(name: str, packets: Packets, samples: int) -> list[Finding]:
    """Losses and disorder of one stream."""
    counts = {
        "dropped": (packets.dropped, "samples are missing"),
        "duplicates": (packets.duplicates, "samples came twice"),
        "out_of_order": (packets.out_of_order, "samples came late"),
        "reset": (packets.resets, "times the counter started anew"),
    }
    found = [
        Finding("warning", code, f"{name}: {count} {text} ({100 * count / max(samples, 1):.2g} %)")
        for code, (count, text) in counts.items()
        if count
    ]
    if packets.unique_rate_hz < _REPEATED * packets.rate_hz:
        text = f"{name}: {packets.rate_hz:.0f} Hz, but the values change at {packets.unique_rate_hz:.0f} Hz"
        found.append(Finding("warning", "repeated", text))
    if len(packets.gaps):
        longest = 1e3 * float((packets.gaps[:, 1] - packets.gaps[:, 0]).max())
        found.append(Finding("warning", "gap", f"{name}: {len(packets.gaps)} gaps, the longest {longest:.0f} ms"))
    return found


def of_sync(sync: Sync) -> list[Finding]:
    """The mocap's clock against the robot's; offsets are the rule between machines, so they are notes."""
    if sync.refused:
        return [Finding("error", "clock_refused", f"mocap and IMU: {reason}") for reason in sync.refused]
    found = []
    offset, sigma = sync.clock.offset_s, sync.offset_sigma_s
    if abs(offset) > max(LEAST_OFFSET_S, OFFSET_SIGMAS * sigma):
        text = f"mocap stamps are {1e3 * offset:.1f} ± {1e3 * sigma:.2f} ms after the robot's; corrected"
        found.append(Finding("note", "clock_offset", text))
    if sync.drift_fitted and abs(sync.clock.drift) > max(LEAST_DRIFT, OFFSET_SIGMAS * sync.drift_sigma):
        text = f"the mocap's clock runs {1e6 * sync.clock.drift:.0f} ± {1e6 * sync.drift_sigma:.0f} ppm fast; corrected"
        found.append(Finding("note", "clock_drift", text))
    return found


def of_lag(lag: Lag) -> list[Finding]:
    """Where the delay between command and effect is not known."""
    return [] if lag.refused is None else [Finding("note", "lag_unknown", f"command lag: {lag.refused}")]


def of_rate(measured_s: float, control_dt: float) -> list[Finding]:
    """A control loop that runs at another rate than the policy's."""
    away = measured_s / control_dt - 1
    if abs(away) < _MOST_OFF_RATE:
        return []
    text = f"control steps last {1e3 * measured_s:.2f} ms by the log's clock, {100 * away:+.1f} % of the policy's"
    return [Finding("warning", "control_rate", text)]


def of_floor(moved_m: float | None) -> Finding:
    """How far the base was moved so that its feet stand on z = 0."""
    if moved_m is None:
        return Finding("note", "floor_unknown", "no floor was found within 5 cm of z = 0; heights are the mocap's")
    return Finding(
        "note", "floor", f"the base was moved by {1e3 * moved_m:+.1f} mm, so that standing feet are at z = 0"
    )


def of_quality(quality: Quality) -> list[Finding]:
    """A finding for every mask that is set anywhere."""
    found = []
    for name, mask in quality.masks.items():
        if mask.any():
            harmless = name in INFORMING or name == "short_run" or (name == "base_gap" and _at_ends(mask))
            severity: Severity = "note" if harmless else "warning"
            text = f"{_MASKS[name]}: {int(mask.sum())} steps ({100 * mask.mean():.1f} %)"
            found.append(Finding(severity, name, text))
    return found


def _at_ends(mask: NDArray[np.bool_]) -> bool:
    """Only within the first and last `_EDGE_STEPS`: recorders do not start and stop together."""
    return not mask[_EDGE_STEPS:-_EDGE_STEPS].any()


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The gravest severity, None without findings."""
    rank: Mapping[Severity, int] = {"note": 0, "warning": 1, "error": 2}
    return max((finding.severity for finding in findings), key=lambda severity: rank[severity], default=None)
