"""What the user may settle about a file before the evidence is asked."""

from __future__ import annotations

from dataclasses import dataclass

from asap_core.errors import unknown_name
from asap_core.motions.doctor.joint_orders import DOF_SETS, get_order
from asap_core.motions.tables import check_fps
from asap_core.robots import get_profile

QUAT_ORDERS = ("wxyz", "xyzw")
UP_AXES = ("y", "z")


@dataclass(frozen=True)
class Options:
    """Answers given on the command line; None leaves the question to the file and its evidence.

    Raises:
        UnknownNameError: from the constructor, on a value that is none of the valid ones.
        InputFileError: a rate outside 1 to 1000 Hz.
    """

    robot: str | None = None
    """Name or file of a robot profile."""
    fps: float | None = None
    joint_order: str | None = None
    dof_set: str | None = None
    """`asap23` or `unitree23`, for files of 23 nameless joints."""
    quat_order: str | None = None
    up_axis: str | None = None

    def __post_init__(self) -> None:
        for kind, value, valid in (
            ("dof set", self.dof_set, DOF_SETS),
            ("quaternion order", self.quat_order, QUAT_ORDERS),
            ("up axis", self.up_axis, UP_AXES),
        ):
            if value is not None and value not in valid:
                raise unknown_name(kind, value, valid)
        if self.fps is not None:
            check_fps("--fps", "fps", self.fps)
        if self.robot is not None:
            get_profile(self.robot)
        if self.joint_order is not None:
            get_order(self.joint_order, self.robot)
