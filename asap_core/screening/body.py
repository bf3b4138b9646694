"""Mass, centre of mass and inertia of the segments of a person (Winter, Biomechanics, table 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asap_core.motions.skeleton import INDEX
from asap_core.rotations import Array

# Joint that carries the segment, joint at its far end, mass as a part of the body's, centre of mass and radius of
# gyration as parts of its length. The trunk's segments are taken as round, the others as rods.
_TRUNK = (
    ("Pelvis", "Torso", 0.142, 0.0, 1.0),
    ("Torso", "Spine", 0.139, 0.5, 0.8),
    ("Chest", "Neck", 0.216, 0.3, 0.6),
    ("Neck", "Head", 0.081, 0.8, 0.9),
)
_SIDE = (
    ("Hip", "Knee", 0.100, 0.433, 0.323),
    ("Knee", "Ankle", 0.0465, 0.433, 0.302),
    ("Ankle", "Toe", 0.0145, 0.5, 0.475),
    ("Shoulder", "Elbow", 0.028, 0.436, 0.322),
    ("Elbow", "Wrist", 0.016, 0.430, 0.303),
    ("Wrist", "Hand", 0.006, 0.506, 0.297),
)
_ROD_AXIS = 0.2
"""Moment about a rod's own axis as a part of that across it."""


@dataclass(frozen=True)
class Segments:
    """S segments of a person of unit mass."""

    joint: Array
    """(S,) SMPL joint whose frame carries the segment."""
    mass: Array
    """(S,) part of the body's mass; sums to 1."""
    com: Array
    """(S, 3) centre of mass in the joint's frame, m."""
    inertia: Array
    """(S, 3, 3) about the centre of mass in the joint's frame, m² (per unit of body mass)."""


def body_segments(skeleton: Array) -> Segments:
    """The segments of a person with this skeleton (24, 3)."""
    rows = [(*row, True) for row in _TRUNK]
    for side in ("L", "R"):
        rows += [(f"{side}_{start}", f"{side}_{end}", *rest, False) for start, end, *rest in _SIDE]  # type: ignore[misc]
    joints, masses, coms, inertias = [], [], [], []
    for start, end, mass, com, radius, is_round in rows:
        bone = skeleton[INDEX[end]]
        length = float(np.linalg.norm(bone))
        along = np.outer(bone, bone) / length**2
        across = np.eye(3) if is_round else np.eye(3) - along * (1 - _ROD_AXIS)
        joints.append(INDEX[start])
        masses.append(mass)
        coms.append(bone * com)
        inertias.append(mass * (radius * length) ** 2 * across)
    return Segments(np.array(joints), np.array(masses) / sum(masses), np.array(coms), np.array(inertias))
