"""Tracking relative to an anchor: the reference moved to where the robot is, so that drift costs nothing.

Source: BeyondMimic (arXiv 2508.08241): position in the plane and heading are the anchor's, height and tilt the
reference's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asap_core.robots.kinematics import LinkStates
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array, quat_conj, quat_mul, rotate, yaw_quat
from asap_core.simulators.protocol import Ids


@dataclass(frozen=True)
class LinkTargets:
    """Where the links of N robots should be, world frame: (N, L, 3 or 4), quaternions wxyz."""

    pos: Array
    quat: Array
    lin_vel: Array
    ang_vel: Array


def targets_at(reference: LinkStates, frames: Ids) -> LinkTargets:
    """The reference's links in frames (N,)."""
    return LinkTargets(
        reference.pos[frames], reference.quat[frames], reference.lin_vel[frames], reference.ang_vel[frames]
    )


def anchored(target: LinkTargets, links: LinkStates, profile: RobotProfile) -> LinkTargets:
    """`target` turned about the vertical and shifted in the plane until its torso stands over the robot's."""
    anchor = profile.link_index(profile.torso_link)
    level = np.array([1.0, 1.0, 0.0])
    turn = quat_mul(yaw_quat(links.quat[:, anchor]), quat_conj(yaw_quat(target.quat[:, anchor])))[:, None]
    away = target.pos - target.pos[:, anchor, None] * level
    return LinkTargets(
        pos=rotate(turn, away) + links.pos[:, anchor, None] * level,
        quat=quat_mul(np.broadcast_to(turn, target.quat.shape), target.quat),
        lin_vel=rotate(turn, target.lin_vel),
        ang_vel=rotate(turn, target.ang_vel),
    )
