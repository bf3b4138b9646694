"""What a retargeted clip is worth, in figures that its solver does not optimise directly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asap_core.retargeting.contacts import scoring_contacts
from asap_core.robots.kinematics import Kinematics
from asap_core.rotations import Array


def retarget_figures(
    kinematics: Kinematics,
    root_pos: Array,
    root_quat: Array,
    joint_pos: Array,
    human_joints: Array,
    links: NDArray[np.intp],
    link_targets: Array,
    fps: float,
) -> dict[str, float]:
    """Figures of one clip.

    Args:
        kinematics: of the robot.
        root_pos, root_quat, joint_pos: the clip, (T, 3) m, (T, 4) wxyz, (T, J) rad.
        human_joints: (T, 24, 3) of the robot-proportioned human, m; they say when a foot stands.
        links, link_targets: (n,) and (T, n, 3) of the corresponding links.
        fps: frames per second.

    Returns:
        link_error_mm: mean distance of links from their targets; skate_mm_per_frame: horizontal movement of soles that
        stand; sole_height_mm: their mean distance from the ground; penetration_mm: deepest sole point;
        max_joint_speed: rad/s; jerk: mean of joints, rad/s³; limit_violations: angles beyond their limits.
    """
    poses = kinematics.forward(root_pos, root_quat, joint_pos)
    soles = kinematics.sole_points(poses)
    stands = scoring_contacts(human_joints, fps)
    held = stands[1:] & stands[:-1]
    slide = np.linalg.norm(np.diff(soles[..., :2], axis=0), axis=-1).mean(axis=-1)
    height = np.abs(soles[..., 2]).mean(axis=-1)
    away = np.linalg.norm(poses.pos[:, links] - link_targets, axis=-1)
    lower, upper = kinematics.profile.joint_lower, kinematics.profile.joint_upper
    beyond = (joint_pos < lower - 1e-9) | (joint_pos > upper + 1e-9)
    return {
        "link_error_mm": float(away.mean() * 1e3),
        "skate_mm_per_frame": float(slide[held].mean() * 1e3) if held.any() else 0.0,
        "sole_height_mm": float(height[stands].mean() * 1e3) if stands.any() else 0.0,
        "penetration_mm": float(max(0.0, -soles[..., 2].min()) * 1e3),
        "max_joint_speed": float(np.abs(np.diff(joint_pos, axis=0)).max() * fps),
        "jerk": float(np.abs(np.diff(joint_pos, 3, axis=0)).mean() * fps**3) if len(joint_pos) > 3 else 0.0,
        "limit_violations": float(beyond.sum()),
    }
