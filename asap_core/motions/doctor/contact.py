"""How the feet meet the ground: floating, penetration and sliding."""

from __future__ import annotations

import numpy as np

from asap_core.motions.doctor.problems import Mask, Problem, frame_ranges, long_runs
from asap_core.robots.kinematics import Kinematics, LinkPoses
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array

_CONTACT, _NEAR = 0.025, 0.10
"""m above the clip's own ground within which a foot stands, or may be what carries the robot."""
_FLOAT, _SINK = 0.04, 0.03
"""m of standing soles above z = 0, and of any sole below it."""
_STILL = 0.15
"""m/s below which a foot stands still; a slide is faster."""
_SLIDE_TIME = 0.3
"""s that a slide lasts at least."""
_GLIDE_TIME, _GLIDE_SPREAD, _GLIDE_RISE = 0.4, 0.06, 0.08
"""s that a glide lasts at least; m/s of deviation from its mean velocity, up or down. None of 39 clean clips does."""
_STANDS = 0.1
"""m/s, mean over a window, below which a foot stands."""
_MEND = "retarget it again (asap run retarget), or shift the root by that much"


def contact_problems(profile: RobotProfile, poses: LinkPoses, fps: float) -> list[Problem]:
    """Findings about the feet of a clip whose poses (T frames) are in a z-up world with the ground at 0."""
    soles = Kinematics(profile).sole_points(poses)
    lowest = soles[..., 2].min(axis=2)
    return [*_height(soles, lowest, fps), *slide_problems(soles, fps)]


def _height(soles: Array, lowest: Array, fps: float) -> list[Problem]:
    problems = []
    above = standing_height(soles, fps)
    if above is not None and above > _FLOAT:
        text = f"feet that stand still hang {above * 1e3:.0f} mm above z = 0"
        problems.append(Problem("warning", "floating", text, "", _MEND))
    sunk = lowest.min(axis=1) < -_SINK
    if sunk.any():
        text = f"a sole is {-lowest.min() * 1e3:.0f} mm below z = 0"
        problems.append(Problem("warning", "penetration", text, frame_ranges(np.flatnonzero(sunk)), _MEND))
    return problems


def standing_height(soles: Array, fps: float) -> float | None:
    """Median height in m of the lowest sole over the frames in which a foot is still; None if none ever is.

    Args:
        soles: (T, F, S, 3) m, world.
    """
    speed = np.linalg.norm(np.diff(soles, axis=0), axis=-1).mean(axis=-1) * fps
    lowest = soles[1:, ..., 2].min(axis=2)
    still = speed < _STILL
    if not still.any():
        return None
    return float(np.median(np.where(still, lowest, np.inf).min(axis=1)[still.any(axis=1)]))


def slide_problems(soles: Array, fps: float) -> list[Problem]:
    """Runs of frames in which a foot is down and no foot near the ground is still.

    Args:
        soles: (T, F, S, 3) m, S points under each of F feet, z up; the ground is where the lowest soles are.
    """
    lowest = soles[..., 2].min(axis=2)
    height = np.maximum(lowest[1:], lowest[:-1]) - float(np.quantile(lowest.min(axis=1), 0.1))
    speed = np.linalg.norm(np.diff(soles[..., :2], axis=0), axis=-1).min(axis=-1) * fps
    slowest = np.where(height < _NEAR, speed, np.inf).min(axis=1)
    down = (height < _CONTACT).any(axis=1)
    sliding = long_runs(down & (slowest > _STILL), max(2, round(_SLIDE_TIME * fps))) | _gliding(soles, fps)
    if not sliding.any():
        return []
    text = f"standing feet slide at {speed.min(axis=1)[sliding].mean() * 100:.0f} cm/s for {sliding.sum() / fps:.1f} s"
    frames = frame_ranges(np.flatnonzero(sliding) + 1)
    return [Problem("warning", "foot_slide", text, frames, "retarget with contact terms, or leave the clip out")]


def _gliding(soles: Array, fps: float) -> Mask:
    """(T - 1,) frames in which a foot moves level at one constant velocity and no foot is still, at any height.

    A foot that swings speeds up and slows down; one that stands on a sliding root glides, even in a clip that floats.
    """
    velocity = np.diff(soles.mean(axis=2), axis=0) * fps
    count = max(3, round(_GLIDE_TIME * fps))
    if len(velocity) < count:
        return np.zeros(len(velocity), dtype=bool)
    windows = np.lib.stride_tricks.sliding_window_view(velocity, count, axis=0)
    mean = windows[:, :, :2].mean(axis=-1)
    spread = np.sqrt(windows[:, :, :2].var(axis=-1).sum(axis=-1))
    rise = np.abs(windows[:, :, 2]).max(axis=-1)
    glides = (np.linalg.norm(mean, axis=-1) > _STILL) & (spread < _GLIDE_SPREAD) & (rise < _GLIDE_RISE)
    stands = np.linalg.norm(windows[:, :, :2], axis=2).mean(axis=-1) < _STANDS
    starts = np.flatnonzero(glides.any(axis=1) & ~stands.any(axis=1))
    out = np.zeros(len(velocity), dtype=bool)
    out[(starts[:, None] + np.arange(count)).ravel()] = True
    return out
