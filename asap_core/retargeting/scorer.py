"""What a retargeted clip is worth. Shares nothing with the solver: own targets, own ground, own rule for contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.motions.human import HumanMotion
from asap_core.motions.robot import RobotMotion
from asap_core.motions.skeleton import INDEX
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array

_HEELS = (INDEX["L_Ankle"], INDEX["R_Ankle"])
_TOES = (INDEX["L_Toe"], INDEX["R_Toe"])
_SPEED = 0.3
"""A heel or toe slower than this stands, m/s."""
_RISE = 0.05
"""It is then at most this far above the height at which it stands, m."""


@dataclass(frozen=True)
class Reference:
    """The person that a robot is held against."""

    links: NDArray[np.intp]
    """(14,) indices of the links that correspond."""
    positions: Array
    """(T, 14, 3) of their joints on the person, m."""
    stands: NDArray[np.bool_]
    """(T, F, 2): the heel and the toe of each of the person's feet are at rest on the ground."""


def reference(person: HumanMotion, profile: RobotProfile, ankle_height: float) -> Reference:
    """The person on its clip's rotations and root path as they are, but for one constant shift of the height.

    It puts the ankles of the person's standing feet at `ankle_height` (m); the robot's motion has no part in it.
    """
    joints = person.joint_positions()
    stands = _stands(joints, person.fps)
    joints[..., 2] += ankle_height - _standing_height(joints, stands)
    pairs = profile.correspondences
    links = profile.link_indices(link for link, _ in pairs)
    return Reference(links, joints[:, [INDEX[joint] for _, joint in pairs]], stands)


def _stands(joints: Array, fps: float) -> NDArray[np.bool_]:
    """(T, 2, 2) left and right by heel and toe: slow, and near the height at which that joint is when it is slow."""
    speed = np.linalg.norm(np.gradient(joints, axis=0), axis=-1) * fps
    out = np.zeros((len(joints), 2, 2), dtype=bool)
    for part, pair in enumerate((_HEELS, _TOES)):
        for foot, joint in enumerate(pair):
            slow, level = speed[:, joint] < _SPEED, joints[:, joint, 2]
            ground = np.percentile(level[slow], 15) if slow.sum() > 3 else level.min()
            out[:, foot, part] = slow & (level < ground + _RISE)
    return out


def _standing_height(joints: Array, stands: NDArray[np.bool_]) -> float:
    """Mean over the feet of the lower quartile of the standing ankle's height, m."""
    feet = [(joints[stands[:, foot, 0], ankle, 2]) for foot, ankle in enumerate(_HEELS) if stands[:, foot, 0].any()]
    if not feet:
        return float(joints[:, _HEELS, 2].min())
    return float(np.mean([np.percentile(level, 25) for level in feet]))


def score(motion: RobotMotion, kinematics: Kinematics, against: Reference) -> dict[str, float]:
    """Figures of a clip; of the longer of motion and reference the end is left out.

    Returns:
        link_error_mm: mean distance of the links from the person's joints. skate_mm_per_frame: mean horizontal
        movement of sole points from frame to frame where that part of the person's foot stands in both;
        sole_height_mm: their mean absolute height there; penetration_mm: depth of the deepest sole point of the clip.
        max_joint_speed: rad/s; jerk: mean absolute third difference of joint angles, rad/s³; limit_violations: angles
        beyond their limits.
    """
    count = min(motion.num_frames, len(against.positions))
    joint_pos, stands = motion.joint_pos[:count], against.stands[:count]
    poses = kinematics.forward(motion.root_pos[:count], motion.root_quat[:count], joint_pos)
    soles = kinematics.sole_points(poses)
    away = np.linalg.norm(poses.pos[:, against.links] - against.positions[:count], axis=-1)
    contact = _per_point(stands, kinematics.profile)
    held = contact[1:] & contact[:-1]
    slide = np.linalg.norm(np.diff(soles[..., :2], axis=0), axis=-1)
    lower, upper = kinematics.profile.joint_lower, kinematics.profile.joint_upper
    beyond = (joint_pos < lower - 1e-6) | (joint_pos > upper + 1e-6)
    return {
        "link_error_mm": float(away.mean() * 1e3),
        "skate_mm_per_frame": float(slide[held].mean() * 1e3) if held.any() else 0.0,
        "sole_height_mm": float(np.abs(soles[..., 2][contact]).mean() * 1e3) if contact.any() else 0.0,
        "penetration_mm": float(max(0.0, -soles[..., 2].min()) * 1e3),
        "max_joint_speed": float(np.abs(np.diff(joint_pos, axis=0)).max() * motion.fps),
        "jerk": float(np.abs(np.diff(joint_pos, 3, axis=0)).mean() * motion.fps**3) if count > 3 else 0.0,
        "limit_violations": float(beyond.sum()),
    }


def _per_point(stands: NDArray[np.bool_], profile: RobotProfile) -> NDArray[np.bool_]:
    """(T, F, S): a sole point behind the middle of its sole stands with the heel, one before it with the toe."""
    forward = profile.sole_points[..., 0]
    before = forward > forward.mean(axis=1, keepdims=True)
    return np.where(before, stands[..., 1:], stands[..., :1])
