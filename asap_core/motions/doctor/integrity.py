"""Damage in the arrays themselves: orientations of no length, repeated frames, jumps. Readers refuse NaN."""

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
    return repeats(np.concatenate([clip.root_pos, clip.root_quat, clip.joint_pos], axis=1))


def repeats(rows: Array) -> list[Problem]:
    """The same for any frames (T, n)."""
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
    quat = reading.orientations(clip.root_quat)
    turn = np.linalg.norm(quat_to_rotvec(quat_mul(quat[1:], quat_conj(quat[:-1]))), axis=1) * fps
    return [*leaps(reading.root_pos(clip), fps), *_outliers("spin", turn, _TURN_SPEED, "rad/s")]


def leaps(root_pos: Array, fps: float) -> list[Problem]:
    """Frames in which a root (T, 3) m is thrown."""
    return _outliers("jump", np.linalg.norm(np.diff(root_pos, axis=0), axis=1) * fps, _JUMP_SPEED, "m/s")


def _outliers(code: str, speed: Array, most: float, unit: str) -> list[Problem]:
    found = np.flatnonzero((speed > most) & (speed > _JUMP_FACTOR * _neighbours(speed)))
    if found.size == 0:
        return []
    text = f"the root goes {speed[found].max():.1f} {unit} for one frame, at most {most:g} is believed"
    return [Problem("error", code, text, frame_ranges(found + 1), "cut the clip there, or export it again")]


def _neighbours(values: Array) -> Array:
    """Median of the `_AROUND` values on each side."""
    padded = np.pad(values, _AROUND, mode="reflect" if len(values) > _AROUND else "edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _AROUND + 1)
    return np.median(windows, axis=1)
