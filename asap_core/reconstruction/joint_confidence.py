"""How far each SMPL-24 joint is to be trusted, from the landmarks that show it."""

from __future__ import annotations

from functools import cache

import numpy as np

from asap_core.motions.skeleton import INDEX, NUM_JOINTS
from asap_core.reconstruction.landmarks import LANDMARK_NAMES
from asap_core.rotations import Array

_TRUNK = ("left_hip", "right_hip", "left_shoulder", "right_shoulder")
_SHOWN_BY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Torso", "Spine", "Chest"), _TRUNK),
    "Pelvis": ("left_hip", "right_hip"),
    "Neck": ("left_shoulder", "right_shoulder"),
    "Head": ("nose", "left_ear", "right_ear"),
}
_SIDED = {
    "Hip": ("hip",),
    "Knee": ("knee",),
    "Ankle": ("ankle",),
    "Toe": ("heel", "foot_index"),
    "Thorax": ("shoulder",),
    "Shoulder": ("shoulder",),
    "Elbow": ("elbow",),
    "Wrist": ("wrist",),
    "Hand": ("wrist", "index"),
}


@cache
def _shares() -> Array:
    """(33, 24) share of each landmark in each joint."""
    shares = np.zeros((len(LANDMARK_NAMES), NUM_JOINTS))
    shown_by = dict(_SHOWN_BY)
    for side, prefix in (("left", "L"), ("right", "R")):
        shown_by |= {f"{prefix}_{joint}": tuple(f"{side}_{n}" for n in names) for joint, names in _SIDED.items()}
    for joint, names in shown_by.items():
        for name in names:
            shares[LANDMARK_NAMES.index(name), INDEX[joint]] = 1.0 / len(names)
    return shares


def joint_confidence(landmarks: Array) -> Array:
    """(T, 24) mean confidence of the landmarks (T, 33) that show each joint."""
    return np.clip(landmarks @ _shares(), 0.0, 1.0)
