"""Evidence without stored bodies: whoever stands, keeps a foot still, upright and inside the joint limits."""

from __future__ import annotations

import numpy as np

from asap_core.motions.doctor.joint_orders import JointOrder
from asap_core.motions.doctor.reading import ANGLE_UNITS, LENGTH_UNITS, as_wxyz, in_profile_order, poses_in_root_frame
from asap_core.motions.formats.clip import RobotClip
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.rotations import Array, rotate

_PAIRS = 150
_TILT_WEIGHT = 0.1
"""m/s per rad of mean root tilt."""
_LIMIT_WEIGHT = 0.3
"""m/s per rad beyond the joint limits, summed over joints."""
_UNUSUAL_AXIS = 0.5
"""rad that a world with y up has to be better by, as most have z up."""
_UP = {"z": np.array([0.0, 0.0, 1.0]), "y": np.array([0.0, 1.0, 0.0])}


def support_scores(
    clip: RobotClip, orders: tuple[JointOrder, ...], angle_unit: str, length_unit: str, quats: tuple[str, ...]
) -> dict[tuple[str, str], float]:
    """For each (joint order, quaternion order) the speed in m/s of the stiller foot, with what limits and tilt add.

    The median over frame pairs of the slower foot's speed is near 0 in any right reading of a motion on the ground,
    and three to eight times higher in a wrong one; it does not depend on the up axis.
    """
    starts = np.unique(np.linspace(0, len(clip.root_pos) - 2, _PAIRS).round().astype(int))
    frames = np.concatenate([starts, starts + 1])
    joints = clip.joint_pos[frames] * ANGLE_UNITS[angle_unit]
    root = clip.root_pos[frames] * LENGTH_UNITS[length_unit]
    scores = {}
    for order in orders:
        profile = get_profile(order.robot)
        soles = Kinematics(profile).sole_points(poses_in_root_frame(joints, order))
        full = in_profile_order(joints, order)
        beyond = np.maximum(full - profile.joint_upper, 0) + np.maximum(profile.joint_lower - full, 0)
        for quat in quats:
            wxyz = as_wxyz(clip.root_quat[frames], quat)
            world = rotate(wxyz[:, None, None], soles) + root[:, None, None]
            speed = _stiller_foot(world, clip.fps or 30.0)
            tilt = min(mean_tilt(wxyz, "z"), mean_tilt(wxyz, "y") + _UNUSUAL_AXIS)
            scores[order.name, quat] = speed + _TILT_WEIGHT * tilt + _LIMIT_WEIGHT * float(beyond.sum(axis=1).mean())
    return scores


def _stiller_foot(soles: Array, fps: float) -> float:
    """Median speed in m/s of the slower foot, from soles (2 P, F, S, 3) of P frame pairs."""
    first, second = np.split(soles, 2)
    moved = np.linalg.norm(second - first, axis=-1).mean(axis=-1).min(axis=-1)
    return float(np.median(moved) * fps)


def mean_tilt(wxyz: Array, axis: str) -> float:
    """Mean angle in rad between the root's z axis and the world's `axis`."""
    along = rotate(wxyz, np.array([0.0, 0.0, 1.0])) @ _UP[axis]
    return float(np.arccos(np.clip(along, -1, 1)).mean())
