"""What the user may settle about a log before the evidence is asked."""

from __future__ import annotations

from typing import Literal

from asap_core.settings import Settings


class UnderstandOptions(Settings):
    """What the user says about a log; None leaves it to the evidence. Each is the command line option of its name."""

    joint_order: str | None = None
    """Name in `asap_core.motions.doctor.joint_orders`, for joint states."""
    command_order: str | None = None
    """The same for joint commands."""
    imu_quat_order: Literal["wxyz", "xyzw", "wxyz inverse", "xyzw inverse"] | None = None
    pose_quat_order: Literal["wxyz", "xyzw", "wxyz inverse", "xyzw inverse"] | None = None
    """Of poses and odometry."""
    time_unit: float | None = None
    """s per unit of the stored stamps."""
    angle_unit: Literal["rad", "deg"] | None = None
    """Of joint angles."""
    velocity_unit: Literal["rad", "deg"] | None = None
    """Of joint velocities, per s."""
    gyro_unit: Literal["rad/s", "deg/s"] | None = None
    accel_unit: Literal["m/s2", "g"] | None = None
    length_unit: Literal["m", "cm", "mm"] | None = None
    up_axis: Literal["x", "y", "z"] | None = None
    """Of poses, odometry and markers."""
    twist_frame: Literal["world", "body"] | None = None
    """Of odometry."""
