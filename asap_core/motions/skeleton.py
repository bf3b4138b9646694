"""The 24-joint SMPL skeleton and a free body for it, made from published segment proportions (no licensed file).

Rest frame of every joint: x left, y up, z forward. A rotation of zero everywhere is the T-pose, facing z.
"""

from __future__ import annotations

import numpy as np

from asap_core.rotations import Array, quat_to_matrix, rotvec_to_quat

JOINT_NAMES: tuple[str, ...] = (
    "Pelvis", "L_Hip", "R_Hip", "Torso", "L_Knee", "R_Knee", "Spine", "L_Ankle", "R_Ankle", "Chest", "L_Toe", "R_Toe",
    "Neck", "L_Thorax", "R_Thorax", "Head", "L_Shoulder", "R_Shoulder", "L_Elbow", "R_Elbow", "L_Wrist", "R_Wrist",
    "L_Hand", "R_Hand",
)  # fmt: skip
PARENTS: tuple[int, ...] = (-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19, 20, 21)
NUM_JOINTS = len(JOINT_NAMES)
INDEX: dict[str, int] = {name: i for i, name in enumerate(JOINT_NAMES)}

REST_TO_WORLD = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
"""Rotation from the rest frame to a z-up world in which the body faces x."""

STATURE = 1.62
"""Metres. Hip to ankle is then 0.795 m, as in the mean SMPL shape, so that its clips keep their feet still."""

ANKLE_HEIGHT = 0.039 * STATURE
"""Ankle joint above the sole, m."""

PELVIS_REST: dict[str, tuple[float, float, float]] = {
    "smpl": (-0.002, -0.223, 0.028),
    "smplh": (-0.002, -0.223, 0.028),
    "smplx": (0.003, -0.351, 0.012),
}
"""Pelvis of each neutral mean shape from its model's origin, rest frame, m. SMPL's `trans` moves that origin."""

# Fractions of stature after Drillis and Contini (Winter, Biomechanics and Motor Control of Human Movement, fig. 4.1);
# the trunk's 0.288 from hip to shoulder is split over the spine joints. Left side; the right one is mirrored in x.
_CENTRE = {
    "Torso": (0.0, 0.066, -0.005),
    "Spine": (0.0, 0.076, 0.008),
    "Chest": (0.0, 0.034, 0.002),
    "Neck": (0.0, 0.128, -0.010),
    "Head": (0.0, 0.052, 0.010),
}
_LEFT = {
    "L_Hip": (0.047, -0.052, 0.0),
    "L_Knee": (0.0, -0.245, 0.0),
    "L_Ankle": (0.0, -0.246, 0.0),
    "L_Toe": (0.0, -0.029, 0.075),
    "L_Thorax": (0.045, 0.068, -0.005),
    "L_Shoulder": (0.065, 0.018, -0.005),
    "L_Elbow": (0.186, 0.0, 0.0),
    "L_Wrist": (0.146, 0.0, 0.0),
    "L_Hand": (0.054, 0.0, 0.0),
}


def body_offsets(stature: float = STATURE) -> Array:
    """Offset (24, 3) of each joint from its parent at rest, metres, row 0 zero, for a body of `stature` metres."""
    offsets = np.zeros((NUM_JOINTS, 3))
    for name, value in (_CENTRE | _LEFT).items():
        offsets[INDEX[name]] = value
        if name.startswith("L_"):
            offsets[INDEX["R_" + name[2:]]] = np.array(value) * (-1.0, 1.0, 1.0)
    return offsets * stature


def world_rotations(joint_rotations: Array) -> Array:
    """Rotation (T, 24, 3, 3) of each joint's frame in the world from rotation vectors (T, 24, 3) against the parent."""
    local = quat_to_matrix(rotvec_to_quat(joint_rotations))
    world = local.copy()
    for joint in range(1, NUM_JOINTS):
        world[:, joint] = world[:, PARENTS[joint]] @ local[:, joint]
    return world


def place_joints(world: Array, root: Array, offsets: Array) -> Array:
    """Joint positions (T, 24, 3) of world rotations (T, 24, 3, 3), pelvis positions (T, 3) and a skeleton (24, 3)."""
    positions = np.empty((len(root), NUM_JOINTS, 3))
    positions[:, 0] = root
    for joint in range(1, NUM_JOINTS):
        parent = PARENTS[joint]
        positions[:, joint] = positions[:, parent] + world[:, parent] @ offsets[joint]
    return positions


def leg_length(offsets: Array) -> float:
    """Mean hip-to-ankle length in metres of a skeleton (24, 3)."""
    lengths = np.linalg.norm(offsets[[INDEX[n] for n in ("L_Knee", "L_Ankle", "R_Knee", "R_Ankle")]], axis=1)
    return float(lengths.sum() / 2)


def sole_points(offsets: Array) -> tuple[tuple[int, Array], ...]:
    """Points under both feet as (joint index, offset (3,) in its frame): two under each heel, ball and toe."""
    points = []
    for side in ("L", "R"):
        ankle, toe = INDEX[f"{side}_Ankle"], INDEX[f"{side}_Toe"]
        scale = leg_length(offsets) / leg_length(body_offsets())
        height, half_width = ANKLE_HEIGHT * scale, 0.04 * scale
        ball_drop, ball_forward = -height - offsets[toe, 1], offsets[toe, 2]
        for lateral in (-half_width, half_width):
            points.append((ankle, np.array([lateral, -height, -0.05 * scale])))
            points.append((ankle, np.array([lateral, -height, ball_forward])))
            points.append((toe, np.array([lateral, ball_drop, 0.06 * scale])))
    return tuple(points)
