"""What the LAFAN and Kimodo CSV share: lines of root position, root quaternion and joint angles, and no names."""

from __future__ import annotations

from pathlib import Path

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.motions.formats.checks import checked
from asap_core.motions.formats.clip import Declared, RobotClip
from asap_core.motions.formats.csv_numbers import read_csv

ROOT_WIDTH = 7


def read_pose_csv(path: Path, format_name: str, joint_order: str | None) -> RobotClip:
    """Read `x y z`, a quaternion of unknown order, and J joint angles; the file has no rate.

    Raises:
        InputFileError: missing, no table of numbers, too few columns, or a NaN.
    """
    _, values = read_csv(path, header=False)
    if values.shape[1] <= ROOT_WIDTH:
        wanted = "expected 7 of the root and one for each joint (30, 34 or 36 for a G1)"
        raise InputFileError(path, f"columns: found {values.shape[1]}, {wanted}")
    order = joint_order if values.shape[1] == ROOT_WIDTH + 29 else None
    return checked(
        RobotClip(
            path=path,
            name=path.stem,
            format=format_name,
            sha256=sha256_file(path),
            root_pos=values[:, :3],
            root_quat=values[:, 3:ROOT_WIDTH],
            joint_pos=values[:, ROOT_WIDTH:],
            declared=Declared(joint_order=order, up_axis="z", length_unit="m", angle_unit="rad", frame="world"),
        )
    )
