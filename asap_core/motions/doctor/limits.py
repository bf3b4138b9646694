"""Joints beyond their limits or faster than their motors, and joints that never move."""

from __future__ import annotations

import numpy as np

from asap_core.motions.doctor.problems import Problem, frame_ranges
from asap_core.motions.doctor.reading import Reading
from asap_core.motions.formats.clip import RobotClip
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array

_TOLERANCE = 0.02
"""rad beyond a limit that are the file's rounding or a soft limit's give."""
_SHOWN = 4


def limit_problems(clip: RobotClip, reading: Reading, fps: float) -> list[Problem]:
    """Findings about the joints, each naming the worst ones."""
    profile = reading.profile
    joint_pos = reading.joint_pos(clip)
    beyond = np.maximum(joint_pos - profile.joint_upper, profile.joint_lower - joint_pos)
    problems = _worst(
        "joint_limit",
        beyond,
        _TOLERANCE,
        profile,
        "{name} {value:.2f} rad beyond its limit",
        "retarget with the robot's limits; `asap convert` keeps them as they are",
    )
    speed = np.abs(np.diff(joint_pos, axis=0)) * fps
    over = np.concatenate([np.zeros((1, profile.num_joints)), speed / profile.joint_velocity_limit])
    problems += _worst(
        "joint_speed",
        over,
        1.0,
        profile,
        "{name} at {value:.1f} times its top speed",
        "check the rate (--fps) and the frames around; a robot cannot follow",
    )
    return problems + _still(clip, reading)


def _worst(code: str, values: Array, limit: float, profile: RobotProfile, words: str, mend: str) -> list[Problem]:
    peak = values.max(axis=0)
    joints = [int(j) for j in np.argsort(-peak) if peak[j] > limit]
    if not joints:
        return []
    named = [words.format(name=profile.joint_names[j], value=peak[j]) for j in joints[:_SHOWN]]
    more = f" and {len(joints) - _SHOWN} more" if len(joints) > _SHOWN else ""
    frames = frame_ranges(np.flatnonzero((values > limit).any(axis=1)))
    return [Problem("warning", code, "; ".join(named) + more, frames, mend)]


def _still(clip: RobotClip, reading: Reading) -> list[Problem]:
    """Joints that hold one value for the whole clip while others move: left out by the tool that made it."""
    moved = np.ptp(clip.joint_pos, axis=0)
    still = [name for name, range_ in zip(reading.order.joints, moved, strict=True) if range_ == 0.0]
    if not still or len(still) == len(reading.order.joints):
        return []
    return [Problem("note", "still_joints", f"never move: {', '.join(still)}")]
