"""`HumanMotion`: SMPL-24 joint rotations over a skeleton, as reconstructed from a person."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.motions.skeleton import JOINT_NAMES, NUM_JOINTS, place_joints, world_rotations
from asap_core.motions.tables import (
    Source,
    check_array,
    check_fps,
    check_size,
    read_table,
    take_columns,
    take_source,
    write_table,
)
from asap_core.rotations import Array, quat_to_rotvec, rotvec_to_quat, slerp

FORMAT = "asap-human-motion"
VERSION = 1
_MOST_TURN, _FARTHEST = 1e3, 1e5
"""rad and m; larger numbers are damage or another unit, and overflow in what follows."""
_ROOT_COLUMNS = [f"root_{axis}" for axis in "xyz"]
_ROTATION_COLUMNS = [f"{name}_{axis}" for name in JOINT_NAMES for axis in "xyz"]
_CONFIDENCE_COLUMNS = [f"{name}_confidence" for name in JOINT_NAMES]


@dataclass(frozen=True)
class HumanMotion:
    """A person's motion in a z-up world.

    Raises:
        InputFileError: from the constructor, on an array of another shape, a NaN, or fewer than two frames.
    """

    name: str
    fps: float
    """Frames per second."""
    joint_rotations: Array
    """(T, 24, 3) axis times angle in rad, each in its parent's frame; joint 0 in the world."""
    root_translation: Array
    """(T, 3) pelvis joint in the world, m."""
    skeleton: Array
    """(24, 3) offset of each joint from its parent at rest, m."""
    source: Source
    screening: dict[str, Any] | None = field(default=None)
    """The screen's verdict, once it has passed there."""
    confidence: Array | None = field(default=None)
    """(T, 24) from 0, a guess, to 1, well seen: how far each joint is to be trusted; None where nobody said."""

    def __post_init__(self) -> None:
        path = self.source.path
        check_fps(path, "fps", self.fps)
        check_array(path, "joint_rotations", self.joint_rotations, (None, NUM_JOINTS, 3))
        check_array(path, "root_translation", self.root_translation, (len(self.joint_rotations), 3))
        check_array(path, "skeleton", self.skeleton, (NUM_JOINTS, 3))
        check_size(path, "joint_rotations", self.joint_rotations, _MOST_TURN, "rad")
        check_size(path, "root_translation", self.root_translation, _FARTHEST, "m")
        if self.num_frames < 2:
            raise InputFileError(path, f"frames: found {self.num_frames}, expected at least 2")
        if self.confidence is not None:
            _check_confidence(path, self.confidence, self.num_frames)

    @property
    def num_frames(self) -> int:
        """T."""
        return len(self.root_translation)

    def global_rotations(self) -> Array:
        """Rotation (T, 24, 3, 3) of each joint's frame in the world."""
        return world_rotations(self.joint_rotations)

    def joint_positions(self, rotations: Array | None = None) -> Array:
        """Joint positions (T, 24, 3) in the world, m. `rotations` may hold `global_rotations()` if they are at hand."""
        world = self.global_rotations() if rotations is None else rotations
        return place_joints(world, self.root_translation, self.skeleton)

    def resample(self, fps: float) -> HumanMotion:
        """A copy at `fps`: the motion sampled at other times, rotations by slerp, positions and confidence linearly.

        Its first frame is the same; its duration is the old one, less what does not make a whole new frame.

        Raises:
            InputFileError: `fps` is not from 1 to 1000, or leaves fewer than two frames.
        """
        check_fps(self.source.path, "fps", fps)
        if fps == self.fps:
            return self
        times = np.arange(self.num_frames) / self.fps
        at = np.arange(int(times[-1] * fps + 1e-6) + 1) / fps
        rotations, root = resample_pose(self.joint_rotations, self.root_translation, times, at)
        confidence = self.confidence
        if confidence is not None:
            confidence = np.stack([np.interp(at, times, column) for column in confidence.T], axis=1)
        return replace(self, fps=float(fps), joint_rotations=rotations, root_translation=root, confidence=confidence)

    def with_screening(self, verdict: dict[str, Any]) -> HumanMotion:
        """A copy that carries the screen's verdict."""
        return replace(self, screening=verdict)

    def save(self, path: Path | str) -> None:
        """Write as Parquet with a JSON header, atomically."""
        rotations = self.joint_rotations.reshape(self.num_frames, -1)
        columns = dict(zip(_ROOT_COLUMNS, self.root_translation.T, strict=True))
        columns |= dict(zip(_ROTATION_COLUMNS, rotations.T, strict=True))
        if self.confidence is not None:
            columns |= dict(zip(_CONFIDENCE_COLUMNS, self.confidence.T, strict=True))
        header = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "fps": float(self.fps),
            "skeleton": self.skeleton.tolist(),
            "source": self.source.to_header(),
            "screening": self.screening,
        }
        write_table(path, columns, header)

    @classmethod
    def load(cls, path: Path | str) -> HumanMotion:
        """Read what `save` wrote.

        Raises:
            InputFileError: missing, truncated, of another format, or with impossible values.
        """
        columns, header = read_table(path, FORMAT, VERSION)
        rotations = take_columns(path, columns, _ROTATION_COLUMNS)
        root = take_columns(path, columns, _ROOT_COLUMNS)
        try:
            name, fps, skeleton = header["name"], float(header["fps"]), np.array(header["skeleton"], dtype=float)
        except (KeyError, TypeError, ValueError) as error:
            raise InputFileError(path, f"header: {error} missing or malformed; expected name, fps, skeleton") from None
        source = take_source(path, header)
        rotations = rotations.reshape(-1, NUM_JOINTS, 3)
        confidence = None
        if any(name in columns for name in _CONFIDENCE_COLUMNS):
            confidence = take_columns(path, columns, _CONFIDENCE_COLUMNS)
        try:
            return cls(name, fps, rotations, root, skeleton, source, header.get("screening"), confidence)
        except InputFileError as error:
            raise InputFileError(path, error.reason) from None


def _check_confidence(path: str, confidence: Array, frames: int) -> None:
    check_array(path, "confidence", confidence, (frames, NUM_JOINTS))
    if confidence.min() < 0 or confidence.max() > 1:
        found = f"{confidence.min():.3g} to {confidence.max():.3g}"
        raise InputFileError(path, f"confidence: found {found}, expected 0 to 1")


def resample_pose(rotations: Array, root: Array, times: Array, at: Array) -> tuple[Array, Array]:
    """Rotation vectors (M, 24, 3) and pelvis positions (M, 3) at times `at` (M,) of those at `times` (T,), s.

    Rotations go the short way round at constant speed; times beyond the ends are clamped.
    """
    quats = rotvec_to_quat(rotations)
    turned = [quat_to_rotvec(slerp(quats[:, joint], times, at)) for joint in range(NUM_JOINTS)]
    moved = [np.interp(at, times, root[:, axis]) for axis in range(3)]
    return np.stack(turned, axis=1), np.stack(moved, axis=1)
