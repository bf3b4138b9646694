"""Kimodo's CSV: no header, `x y z, qw qx qy qz, 29 joints` (E8).

Unitree's LAFAN1 files have the same 36 columns with the quaternion's w last, so the order is left open for the doctor.
"""

from __future__ import annotations

from pathlib import Path

from asap_core.motions.formats.clip import RobotClip
from asap_core.motions.formats.csv_numbers import number_width
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.formats.pose_csv import read_pose_csv


def sniff(path: Path) -> Match | None:
    """Counts the numbers of the first line."""
    if number_width(path) != 36:
        return None
    return Match(0.6, "36 numbers a line without header; Unitree's LAFAN1 has as many, with another quaternion order")


def read(path: Path) -> list[RobotClip]:
    """The one clip.

    Raises:
        InputFileError: as `read_pose_csv`.
    """
    return [read_pose_csv(path, FORMAT.id, "unitree29")]


FORMAT = Format("kimodo_csv", "Kimodo CSV", "robot", (".csv",), sniff, read)
