"""Unitree's LAFAN1 retargets: CSV without header, `x y z, qx qy qz qw, joints`, 30 frames a second, not stored (E1).

Kimodo writes the same 36 columns with the quaternion's w first, so the order is left open for the doctor.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asap_core.files import atomic_file
from asap_core.motions.derived import joints_in_order
from asap_core.motions.formats.clip import RobotClip
from asap_core.motions.formats.csv_numbers import number_width
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.formats.pose_csv import ROOT_WIDTH, read_pose_csv
from asap_core.motions.robot import RobotMotion
from asap_core.robots.profile import RobotProfile

_G1_WIDTHS = (23, 27, 29)


def sniff(path: Path) -> Match | None:
    """Counts the numbers of the first line."""
    joints = number_width(path) - ROOT_WIDTH
    if joints == 29:
        return Match(0.6, "36 numbers a line without header; Kimodo has as many, with another quaternion order")
    if joints in _G1_WIDTHS:
        return Match(0.8, f"{joints + ROOT_WIDTH} numbers a line without header: 7 of the root and {joints} joints")
    return Match(0.3, f"numbers without header, room for {joints} joints") if joints > 5 else None


def read(path: Path) -> list[RobotClip]:
    """The one clip.

    Raises:
        InputFileError: as `read_pose_csv`.
    """
    return [read_pose_csv(path, FORMAT.id, "unitree29")]


def write(path: Path, motion: RobotMotion, profile: RobotProfile) -> None:
    """Write every number so that float32 reads back the same."""
    joints = joints_in_order(motion, profile.joint_names)
    values = np.concatenate([motion.root_pos, motion.root_quat[:, [1, 2, 3, 0]], joints], axis=1)
    with atomic_file(path) as partial:
        np.savetxt(partial, values.astype(np.float32), fmt="%.9g", delimiter=",")


FORMAT = Format("lafan_csv", "Unitree LAFAN1 CSV", "robot", (".csv",), sniff, read, write)
