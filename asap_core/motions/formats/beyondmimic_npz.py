"""BeyondMimic's npz: joints and bodies breadth first as Isaac Lab numbers them, velocities at centres of mass (E4)."""

from __future__ import annotations

from pathlib import Path

from asap_core.motions.formats.clip import RobotClip
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.formats.tracking_npz import read_tracking, sniff_tracking, write_tracking
from asap_core.motions.robot import RobotMotion
from asap_core.robots.profile import RobotProfile, breadth_first


def sniff(path: Path) -> Match | None:
    """Looks at names and shapes; mjlab and unitree_rl_lab look the same."""
    return sniff_tracking(path, 0.6)


def read(path: Path) -> list[RobotClip]:
    """The one clip.

    Raises:
        InputFileError: as `read_tracking`.
    """
    return read_tracking(path, FORMAT.id)


def write(path: Path, motion: RobotMotion, profile: RobotProfile) -> None:
    """Write what `csv_to_npz.py` under Isaac Lab 2 writes: breadth first, wxyz, velocities at the centre of mass."""
    bodies = breadth_first(profile)
    joint_of = {link.name: link.joint for link in profile.links}
    joints = [joint for joint in (joint_of[body] for body in bodies) if joint is not None]
    write_tracking(path, motion, profile, joints, bodies, at_com=True)


FORMAT = Format("beyondmimic_npz", "BeyondMimic npz", "robot", (".npz",), sniff, read, write)
