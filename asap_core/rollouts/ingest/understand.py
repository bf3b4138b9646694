"""What the numbers of a log mean, decided stream by stream with evidence, and the log in our conventions."""

from __future__ import annotations

from dataclasses import dataclass

from asap_core.evidence import Decision, undecided
from asap_core.rollouts.ingest.streams import Log
from asap_core.settings import Settings


class UnderstandOptions(Settings):
    """What the user says about a log; None leaves it to the evidence. Each is the command line option of its name."""

    joint_order: str | None = None
    """Name in `asap_core.motions.doctor.joint_orders`, for joint states."""
    command_order: str | None = None
    """The same for joint commands."""
    imu_quat_order: str | None = None
    """wxyz or xyzw."""
    pose_quat_order: str | None = None
    """wxyz or xyzw, of poses and odometry."""
    time_unit: float | None = None
    """s per unit of the stored stamps."""
    angle_unit: str | None = None
    """rad or deg, of joint angles and velocities."""
    gyro_unit: str | None = None
    """rad/s or deg/s."""
    accel_unit: str | None = None
    """m/s2 or g."""
    length_unit: str | None = None
    """m, cm or mm."""
    up_axis: str | None = None
    """x, y or z of poses, odometry and markers."""
    twist_frame: str | None = None
    """world or body, of odometry."""


@dataclass(frozen=True)
class Understood:
    """A log in our conventions and how it came to that."""

    log: Log
    """Streams with stamps in s; joint fields by SDK joint names (`labels`), rad, rad/s; quat wxyz body to world;
    ang_vel rad/s in the body's frame; lin_acc m/s² specific force; positions in m, z up; odometry velocities in the
    world frame. A stream with an open question is not among them."""
    decisions: tuple[Decision, ...]

    @property
    def open(self) -> tuple[Decision, ...]:
        """Questions that the data do not settle; each names the option that does."""
        return undecided(self.decisions)


def understood(log: Log, options: UnderstandOptions | None = None) -> Understood:
    """Decide what each stream of `log` means.

    Raises:
        ConfigError: an option is not among the valid answers.
    """
    raise NotImplementedError
