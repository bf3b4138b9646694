"""mjlab's npz: BeyondMimic's layout with MuJoCo's order of joints and bodies and velocities at link origins (E5)."""

from __future__ import annotations

from pathlib import Path

from asap_core.motions.formats.clip import RobotClip
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.formats.tracking_npz import read_tracking, sniff_tracking, write_tracking
from asap_core.motions.robot import RobotMotion
from asap_core.robots.profile import RobotProfile


def sniff(path: Path) -> Match | None:
    """Looks at names and shapes; BeyondMimic and unitree_rl_lab look the same."""
    return sniff_tracking(path, 0.6)


def read(path: Path) -> list[RobotClip]:
    """The one clip.

    Raises:
        InputFileError: as `read_tracking`.
    """
    return read_tracking(path, FORMAT.id)


def write(path: Path, motion: RobotMotion, profile: RobotProfile) -> None:
    """Write depth first, wxyz, velocities at link origins."""
    bodies = [link.name for link in profile.links]
    write_tracking(path, motion, profile, profile.joint_names, bodies, at_com=False)


FORMAT = Format("mjlab_npz", "mjlab npz", "robot", (".npz",), sniff, read, write)
