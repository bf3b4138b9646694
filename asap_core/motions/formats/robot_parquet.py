"""The product's own Parquet of a `RobotMotion`."""

from __future__ import annotations

from pathlib import Path

from asap_core.files import sha256_file
from asap_core.motions.formats.checks import checked
from asap_core.motions.formats.clip import Declared, RobotClip
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.robot import FORMAT as MOTION_FORMAT
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import table_format
from asap_core.robots.profile import RobotProfile

_DECLARED = Declared("wxyz", None, None, "z", "m", "rad", frame="world")


def sniff(path: Path) -> Match | None:
    """Looks at the header."""
    return Match(1.0, f"the header says {MOTION_FORMAT}") if table_format(path) == MOTION_FORMAT else None


def read(path: Path) -> list[RobotClip]:
    """The one clip.

    Raises:
        InputFileError: as `RobotMotion.load`.
    """
    motion = RobotMotion.load(path)
    clip = RobotClip(
        path=path,
        name=motion.name,
        format=FORMAT.id,
        sha256=sha256_file(path),
        root_pos=motion.root_pos,
        root_quat=motion.root_quat,
        joint_pos=motion.joint_pos,
        fps=motion.fps,
        joint_names=motion.joint_names,
        declared=_DECLARED,
    )
    return [checked(clip)]


def write(path: Path, motion: RobotMotion, profile: RobotProfile) -> None:
    """Write the motion as it is; its own joints are named in it."""
    motion.save(path)


FORMAT = Format("robot_parquet", "this project's robot motion", "robot", (".parquet",), sniff, read, write)
