"""`RobotMotion`: the reference motion of a robot. Root and joints only; links and velocities are derived."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.motions.tables import Source, check_array, check_fps, read_table, take_columns, take_source, write_table
from asap_core.rotations import Array, slerp

FORMAT = "asap-robot-motion"
VERSION = 1
_POS_COLUMNS = [f"root_pos_{axis}" for axis in "xyz"]
_QUAT_COLUMNS = [f"root_quat_{axis}" for axis in "wxyz"]
_UNIT_TOLERANCE = 1e-3


@dataclass(frozen=True)
class RobotMotion:
    """A robot's motion in a z-up world, standing on z = 0.

    Raises:
        InputFileError: from the constructor, when an array has another shape or a NaN, a quaternion is not of unit
            length, or there are fewer than two frames.
    """

    name: str
    robot: str
    """Name of the robot profile."""
    fps: float
    """Frames per second."""
    root_pos: Array
    """(T, 3) m, world."""
    root_quat: Array
    """(T, 4) wxyz, unit, world."""
    joint_names: tuple[str, ...]
    joint_pos: Array
    """(T, J) rad, columns as `joint_names`."""
    source: Source
    screening: dict[str, Any] | None = field(default=None)
    """The screen's verdict on the human motion it was made from; under `robot`, that on this motion."""

    def __post_init__(self) -> None:
        path = self.source.path
        check_fps(path, "fps", self.fps)
        check_array(path, "root_pos", self.root_pos, (None, 3))
        check_array(path, "root_quat", self.root_quat, (self.num_frames, 4))
        check_array(path, "joint_pos", self.joint_pos, (self.num_frames, len(self.joint_names)))
        if self.num_frames < 2:
            raise InputFileError(path, f"frames: found {self.num_frames}, expected at least 2")
        norm = np.linalg.norm(self.root_quat, axis=1)
        worst = int(np.abs(norm - 1).argmax())
        if abs(norm[worst] - 1) > _UNIT_TOLERANCE:
            found = f"found length {norm[worst]:.4f} in frame {worst}"
            raise InputFileError(path, f"root_quat: {found}, expected 1 within {_UNIT_TOLERANCE}")

    @property
    def num_frames(self) -> int:
        """T."""
        return len(self.root_pos)

    @property
    def duration(self) -> float:
        """Seconds from the first to the last frame."""
        return (self.num_frames - 1) / self.fps

    def resample(self, fps: float) -> RobotMotion:
        """The same motion at `fps`: linear in positions, spherical in orientation; cut by less than a frame."""
        times = np.arange(self.num_frames) / self.fps
        at = np.arange(int(np.floor(self.duration * fps + 1e-6)) + 1) / fps

        def linear(values: Array) -> Array:
            return np.stack([np.interp(at, times, column) for column in values.T], axis=1)

        return replace(
            self,
            fps=float(fps),
            root_pos=linear(self.root_pos),
            root_quat=slerp(self.root_quat, times, at),
            joint_pos=linear(self.joint_pos),
        )

    def save(self, path: Path | str) -> None:
        """Write as Parquet with a JSON header, atomically."""
        names = [*_POS_COLUMNS, *_QUAT_COLUMNS, *self.joint_names]
        values = np.concatenate([self.root_pos, self.root_quat, self.joint_pos], axis=1)
        header = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "robot": self.robot,
            "fps": float(self.fps),
            "joint_names": list(self.joint_names),
            "source": self.source.to_header(),
            "screening": self.screening,
        }
        write_table(path, dict(zip(names, values.T, strict=True)), header)

    @classmethod
    def load(cls, path: Path | str) -> RobotMotion:
        """Read what `save` wrote.

        Raises:
            InputFileError: missing, truncated, of another format, or with impossible values.
        """
        columns, header = read_table(path, FORMAT, VERSION)
        try:
            name, robot, fps = header["name"], header["robot"], float(header["fps"])
            joints = tuple(header["joint_names"])
        except (KeyError, TypeError, ValueError) as error:
            wanted = "expected name, robot, fps, joint_names"
            raise InputFileError(path, f"header: {error} missing or malformed; {wanted}") from None
        arrays = [take_columns(path, columns, names) for names in (_POS_COLUMNS, _QUAT_COLUMNS, list(joints))]
        source = take_source(path, header)
        try:
            return cls(name, robot, fps, arrays[0], arrays[1], joints, arrays[2], source, header.get("screening"))
        except InputFileError as error:
            raise InputFileError(path, error.reason) from None
