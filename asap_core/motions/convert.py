"""From a clip that the doctor understood to another rate, robot or format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from asap_core.errors import ConfigError, InputFileError, unknown_name
from asap_core.motions.doctor.examine import Diagnosis
from asap_core.motions.doctor.robot import RobotDiagnosis
from asap_core.motions.formats.amass import write_amass
from asap_core.motions.formats.table import FORMATS
from asap_core.motions.human import HumanMotion
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import check_fps
from asap_core.robots import get_profile

_SUFFIX_OF = {"robot_parquet": ".parquet", "human_parquet": ".parquet", "amass": ".npz"}
_BY_SUFFIX = {
    "robot": {".parquet": "robot_parquet", ".csv": "lafan_csv"},
    "human": {".parquet": "human_parquet", ".npz": "amass"},
}
_VELOCITY_CODES = ("velocity_point", "angular_velocity_frame")


def _write_smpl(path: Path, motion: HumanMotion) -> None:
    write_amass(path, motion.joint_rotations.reshape(motion.num_frames, -1), motion.root_translation, motion.fps)


_HUMAN_WRITERS: dict[str, Callable[[Path, HumanMotion], None]] = {
    "human_parquet": lambda path, motion: motion.save(path),
    "amass": _write_smpl,
}


@dataclass(frozen=True)
class Target:
    """What to make of a clip.

    Raises:
        UnknownNameError, InputFileError: from the constructor, on a format, robot or rate that does not exist.
    """

    format: str | None = None
    """Key of a format that can be written; None takes it from the file's suffix."""
    fps: float | None = None
    """Hz; None keeps the clip's."""
    robot: str | None = None
    """Name or file of a robot profile; None keeps the clip's."""
    fill_default: bool = False
    """Set joints that the clip lacks to the robot's default pose."""
    recompute_velocities: bool = False
    """Accept a clip whose stored velocities are not what they should be; those written are always derived anew."""

    bridge: bool = False
    """Accept a person's clip with frames missing, and interpolate them."""

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in writable():
            raise unknown_name("format to write", self.format, writable())
        if self.fps is not None:
            check_fps("--to-fps", "fps", self.fps)
        if self.robot is not None:
            get_profile(self.robot)


def writable() -> tuple[str, ...]:
    """Names of all formats that can be written."""
    return (*(name for name, form in FORMATS.items() if form.write is not None), *_HUMAN_WRITERS)


def suffix_of(format_name: str) -> str:
    """The suffix of the files of a format that can be written."""
    return _SUFFIX_OF.get(format_name) or FORMATS[format_name].suffixes[0]


def format_for(path: Path, kind: str, target: Target) -> str:
    """The format to write a robot's or human's clip to `path` in.

    Raises:
        ConfigError: several formats have the suffix, or the one asked for holds the other kind of motion.
    """
    names = [name for name, form in FORMATS.items() if form.write is not None] if kind == "robot" else [*_HUMAN_WRITERS]
    if target.format is not None:
        if target.format not in names:
            raise ConfigError(f"--to {target.format} holds no {kind} motion; valid: {', '.join(names)}")
        return target.format
    chosen = _BY_SUFFIX[kind].get(path.suffix.lower())
    if chosen is None:
        raise ConfigError(f"{path}: the suffix does not say which format; name it with --to ({', '.join(names)})")
    return chosen


def convert(found: Diagnosis, target: Target) -> tuple[RobotMotion | HumanMotion, tuple[str, ...]]:
    """The clip at the target's rate and on its robot, and notes on what was left out or filled in.

    Raises:
        InputFileError: a question is open, the rate or the velocities are wrong and not settled, or joints are missing.
        ConfigError: a robot is asked for a person's clip.
    """
    _check(found, target)
    motion = found.motion
    assert motion is not None  # _check refuses a clip without
    notes: tuple[str, ...] = ()
    if isinstance(motion, RobotMotion):
        motion, notes = on_robot(motion, target.robot or motion.robot, target.fill_default)
    elif target.robot is not None:
        raise ConfigError("--to-robot: a person's clip goes to a robot by `asap run retarget`, not by conversion")
    if target.fps is not None and target.fps != motion.fps:
        return motion.resample(target.fps), (*notes, f"resampled from {motion.fps:g} to {target.fps:g} Hz")
    return motion, notes


def _check(found: Diagnosis, target: Target) -> None:
    path = found.clip.path
    if found.open_questions:
        raise InputFileError(path, "; ".join(decision.text for decision in found.open_questions))
    refused = {"wrong_fps", "camera_frame"}
    refused |= set() if target.recompute_velocities else set(_VELOCITY_CODES)
    refused |= set() if target.bridge else {"frame_gaps"}
    bad = [problem for problem in found.problems if problem.code in refused]
    if bad or found.motion is None:
        bad = bad or [problem for problem in found.problems if problem.severity == "error"]
        raise InputFileError(path, "; ".join(f"{problem.text}; {problem.mend}" for problem in bad))


def on_robot(motion: RobotMotion, robot: str, fill_default: bool) -> tuple[RobotMotion, tuple[str, ...]]:
    """The motion with exactly the robot's joints, taken over by name, and what was left out or filled in.

    Raises:
        InputFileError: the robot has joints that the motion lacks, and `fill_default` is not set.
    """
    profile = get_profile(robot)
    missing = [name for name in profile.joint_names if name not in motion.joint_names]
    left = [name for name in motion.joint_names if name not in profile.joint_names]
    if missing and not fill_default:
        found = f"joints: {', '.join(missing)} of {profile.name} are missing"
        raise InputFileError(motion.source.path, f"{found}; --fill-default sets them to the default pose")
    values = np.tile(profile.default_joint_pos, (motion.num_frames, 1))
    for column, name in enumerate(profile.joint_names):
        if name in motion.joint_names:
            values[:, column] = motion.joint_pos[:, motion.joint_names.index(name)]
    notes = [f"left out, as {profile.name} has them not: {', '.join(left)}"] if left else []
    notes += [f"set to the default pose: {', '.join(missing)}"] if missing else []
    return replace(motion, robot=robot, joint_names=profile.joint_names, joint_pos=values), tuple(notes)


def write_motion(path: Path, motion: RobotMotion | HumanMotion, format_name: str) -> None:
    """Write a motion in a format of its kind, atomically.

    Raises:
        InputFileError: the format needs joints that the motion lacks.
        StageError: the place is read-only or the disk is full.
    """
    if isinstance(motion, HumanMotion):
        _HUMAN_WRITERS[format_name](path, motion)
        return
    write = FORMATS[format_name].write
    assert write is not None  # format_for names formats that can be written
    write(path, motion, get_profile(motion.robot))


def kind_of(found: Diagnosis) -> str:
    """`robot` or `human`."""
    return "robot" if isinstance(found, RobotDiagnosis) else "human"
