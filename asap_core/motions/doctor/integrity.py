"""Damage in the arrays themselves: numbers that are none, orientations of no length, repeated frames, jumps."""

from __future__ import annotations

import numpy as np

from asap_core.motions.doctor.problems import Mask, Problem, Severity, frame_ranges
from asap_core.motions.doctor.reading import Reading
from asap_core.motions.formats.clip import RobotClip
from asap_core.rotations import Array, quat_conj, quat_mul, quat_to_rotvec

_UNIT = 1e-3
_STILL = 1e-9
_MOVES = 1e-4
"""rad or m between frames: below, a clip stands still and repeats nothing."""
_JUMP_SPEED = 6.0
"""m/s of the root; a fast sprint of a humanoid stays below."""
_TURN_SPEED = 25.0
"""rad/s of the root: four turns a second."""
_JUMP_FACTOR = 4.0
"""A jump is so many times faster than the frames around it."""
_AROUND = 5


def not_finite(clip: RobotClip) -> list[Problem]:
    """NaN and infinities, field by field."""
    problems = []
    for field in ("root_pos", "root_quat", "joint_pos", "joint_vel", "body_pos", "body_quat", "body_lin_vel"):
        values = getattr(clip, field)
        if values is None:
            continue
        bad = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
        if bad.any():
            text = f"{field}: {int(bad.sum())} of {len(bad)} frames hold NaN or infinite values"
            mend = "export the clip again; no value is made up here"
            problems.append(Problem("error", "not_finite", text, frame_ranges(np.flatnonzero(bad)), mend))
    return problems


def not_unit(clip: RobotClip) -> list[Problem]:
    """Root quaternions whose length is not 1; of length 0 there is no orientation at all."""
    norm = np.linalg.norm(clip.root_quat, axis=1)
    off = np.abs(norm - 1) > _UNIT
    if not off.any():
        return []
    frames = frame_ranges(np.flatnonzero(off))
    worst = float(norm[np.abs(norm - 1).argmax()])
    if (norm < 0.1).any():
        text = f"root quaternions of length {norm.min():.3g} have no orientation"
        return [Problem("error", "not_unit", text, frames, "export the clip again")]
    text = f"root quaternions of length {worst:.4g} in {int(off.sum())} frames, expected 1"
    return [Problem("warning", "not_unit", text, frames, "asap convert SRC DST (brings them to length 1)")]


def repeated_frames(clip: RobotClip) -> list[Problem]:
    """Frames equal to the one before, amid motion: a lower rate filled up, or a recorder that stalled."""
    rows = np.concatenate([clip.root_pos, clip.root_quat, clip.joint_pos], axis=1)
    step = np.abs(np.diff(rows, axis=0)).max(axis=1)
    moving = np.concatenate([[False], step > _MOVES, [False]])
    amid = _near(moving, -2) & _near(moving, 2)
    repeated = np.flatnonzero((step < _STILL) & amid[1:-1])
    if repeated.size == 0:
        return []
    text = f"{repeated.size} of {len(step)} frames repeat the one before amid motion"
    severity: Severity = "warning" if repeated.size > 1 else "note"
    mend = "export at the source's own rate"
    return [Problem(severity, "repeated_frames", text, frame_ranges(repeated + 1), mend)]


def _near(mask: Mask, reach: int) -> Mask:
    """Where `mask` holds within the next `reach` places (before, if negative)."""
    out = np.zeros_like(mask)
    for step in range(1, abs(reach) + 1):
        shifted = np.roll(mask, step if reach < 0 else -step)
        edge = slice(0, step) if reach < 0 else slice(len(mask) - step, None)
        shifted[edge] = False
        out |= shifted
    return out


def jumps(clip: RobotClip, reading: Reading, fps: float) -> list[Problem]:
    """Frames in which the root leaps or turns faster than anything around them."""
    problems = []
    speed = np.linalg.norm(np.diff(reading.root_pos(clip), axis=0), axis=1) * fps
    quat = reading.orientations(clip.root_quat)
    turn = np.linalg.norm(quat_to_rotvec(quat_mul(quat[1:], quat_conj(quat[:-1]))), axis=1) * fps
    for code, values, least, unit in (("jump", speed, _JUMP_SPEED, "m/s"), ("spin", turn, _TURN_SPEED, "rad/s")):
        found = np.flatnonzero((values > least) & (values > _JUMP_FACTOR * _neighbours(values)))
        if found.size:
            text = f"the root goes {values[found].max():.1f} {unit} for one frame, at most {least:g} is believed"
            mend = "cut the clip there, or export it again"
            problems.append(Problem("error", code, text, frame_ranges(found + 1), mend))
    return problems


def _neighbours(values: Array) -> Array:
    """Median of the `_AROUND` values on each side."""
    padded = np.pad(values, _AROUND, mode="reflect" if len(values) > _AROUND else "edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _AROUND + 1)
    return np.median(windows, axis=1)


def action_length(clip: RobotClip) -> list[Problem]:
    """Recorded actions that do not go row by row with the joints."""
    if clip.action is None or clip.action.shape == clip.joint_pos.shape:
        return []
    text = f"action: found shape {clip.action.shape}, expected {clip.joint_pos.shape} as the joints have"
    return [Problem("error", "action_shape", text, "", "export the recording again; rows cannot be matched by guess")]
