"""Joints of a person that bend one way only: elbows and knees. Left and right columns mixed up bend elbows backward."""

from __future__ import annotations

import numpy as np

from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import INDEX
from asap_core.rotations import Array, quat_to_matrix, rotvec_to_quat


def elbow_flexion(motion: HumanMotion) -> Array:
    """(T, 2) left and right, rad: the forearm's angle in front of the upper arm's line, negative behind it.

    At rest the left arm points along x, the right one along -x and z is in front (see `motions.skeleton`).
    """
    angles = []
    for name, outward in (("L_Elbow", 1.0), ("R_Elbow", -1.0)):
        forearm = outward * _axis(motion, name, 0)
        angles.append(np.arctan2(forearm[:, 2], outward * forearm[:, 0]))
    return np.stack(angles, axis=1)


def knee_flexion(motion: HumanMotion) -> Array:
    """(T, 2) left and right, rad: the shin's angle behind the thigh's line (-y at rest), negative in front of it."""
    shins = [-_axis(motion, name, 1) for name in ("L_Knee", "R_Knee")]
    return np.stack([np.arctan2(-shin[:, 2], -shin[:, 1]) for shin in shins], axis=1)


def backward_bend(motion: HumanMotion) -> Array:
    """(T,) rad: the most that an elbow or a knee bends the wrong way, negative if none does."""
    return np.asarray(-np.concatenate([elbow_flexion(motion), knee_flexion(motion)], axis=1).min(axis=1))


def _axis(motion: HumanMotion, joint: str, axis: int) -> Array:
    """(T, 3) an axis of the joint's frame in its parent's."""
    local = quat_to_matrix(rotvec_to_quat(motion.joint_rotations[:, INDEX[joint]]))
    return np.asarray(local[..., axis])
