"""One way to read a robot clip's columns, and the poses that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from asap_core.motions.doctor.joint_orders import JointOrder
from asap_core.motions.formats.clip import QuatOrder, RobotClip, UpAxis
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics, LinkPoses
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array, quat_mul, rotate

LENGTH_UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001}
ANGLE_UNITS = {"rad": 1.0, "deg": float(np.pi / 180)}
_TO_Z_UP = {"z": np.array([1.0, 0, 0, 0]), "y": np.array([np.sqrt(0.5), np.sqrt(0.5), 0, 0])}
"""wxyz rotations that bring the up axis to z: (x, y, z) of a y-up world becomes (x, -z, y)."""
IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True)
class Reading:
    """What the columns of a clip mean."""

    quat_order: QuatOrder
    up_axis: UpAxis
    length_unit: str
    angle_unit: str
    order: JointOrder

    @property
    def profile(self) -> RobotProfile:
        """The robot that has all of the order's joints."""
        return get_profile(self.order.robot)

    def with_order(self, order: JointOrder) -> Reading:
        """The same with another joint order."""
        return replace(self, order=order)

    def root_pos(self, clip: RobotClip) -> Array:
        """(T, 3) m, z up."""
        return self.points(clip.root_pos)

    def points(self, values: Array) -> Array:
        """Positions (..., 3) of the file in metres, z up."""
        return rotate(_TO_Z_UP[self.up_axis], values) * LENGTH_UNITS[self.length_unit]

    def orientations(self, quat: Array) -> Array:
        """Quaternions (..., 4) of the file as unit wxyz in a z-up world."""
        return quat_mul(_TO_Z_UP[self.up_axis], as_wxyz(quat, self.quat_order))

    def joint_pos(self, clip: RobotClip) -> Array:
        """(T, J) rad in the profile's order; joints that the file lacks are 0."""
        return in_profile_order(clip.joint_pos, self.order) * ANGLE_UNITS[self.angle_unit]

    def poses(self, clip: RobotClip) -> LinkPoses:
        """World poses of all links of the profile."""
        root_quat = self.orientations(clip.root_quat)
        return Kinematics(self.profile).forward(self.root_pos(clip), root_quat, self.joint_pos(clip))


def as_wxyz(quat: Array, order: str) -> Array:
    """Unit wxyz quaternions (..., 4) of a file in `order`; what has no length stays 0."""
    wxyz = quat if order == "wxyz" else np.roll(quat, 1, axis=-1)
    norm = np.linalg.norm(wxyz, axis=-1, keepdims=True)
    return wxyz / np.where(norm > 0, norm, 1.0)


def in_profile_order(values: Array, order: JointOrder) -> Array:
    """Columns (N, n) of a file in the order of its profile, (N, J); joints that the file lacks are 0."""
    profile = get_profile(order.robot)
    out = np.zeros((len(values), profile.num_joints))
    out[:, [profile.joint_index(joint) for joint in order.joints]] = values
    return out


def poses_in_root_frame(joint_pos: Array, order: JointOrder) -> LinkPoses:
    """Link poses (N, L, …) seen from the root, for joints (N, n) rad in `order`."""
    full = in_profile_order(joint_pos, order)
    count = len(full)
    return Kinematics(get_profile(order.robot)).forward(np.zeros((count, 3)), np.tile(IDENTITY, (count, 1)), full)
