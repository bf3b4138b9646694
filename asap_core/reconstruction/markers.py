"""Where BlazePose's landmarks and the soles lie on the SMPL-24 skeleton."""

from __future__ import annotations

from functools import cache

import numpy as np

from asap_core.motions.skeleton import INDEX
from asap_core.reconstruction.body import Points
from asap_core.reconstruction.landmarks import LANDMARK_NAMES
from asap_core.rotations import Array

_LEFT_OR_MIDDLE = {
    "nose": ("Head", (0.0, 0.001, 0.107)),
    "left_ear": ("Head", (0.044, 0.020, 0.023)),
    "left_shoulder": ("L_Thorax", (0.137, 0.009, -0.005)),
    "left_elbow": ("L_Elbow", (0.007, 0.009, 0.020)),
    "left_wrist": ("L_Wrist", (0.009, 0.002, 0.004)),
    "left_hip": ("Pelvis", (0.096, -0.120, 0.039)),
    "left_knee": ("L_Knee", (-0.002, -0.004, -0.006)),
    "left_ankle": ("L_Ankle", (-0.006, 0.026, 0.003)),
    "left_heel": ("L_Ankle", (-0.007, -0.036, -0.033)),
    "left_foot_index": ("L_Ankle", (-0.012, -0.053, 0.167)),
}
"""Joint and offset of a base body's landmarks in its rest frame, m: fitted to what BlazePose sees of rendered squats,
walks, kicks and side jumps (level 1 of ASAP's clips), whose joints are known; median misfit 5 to 15 mm."""
_SOLE = (("L_Ankle", (0.0, -0.072, -0.04)), ("L_Ankle", (0.0, -0.072, 0.13)))
"""Under the heel and under the ball of the left foot."""
_DEPTH_ERROR = {
    "nose": (0.134, 0.083),
    "left_ear": (0.109, 0.084),
    "left_shoulder": (0.126, 0.069),
    "left_elbow": (0.108, 0.072),
    "left_wrist": (0.126, 0.115),
    "left_hip": (0.0, 0.017),
    "left_knee": (0.050, 0.060),
    "left_ankle": (0.010, 0.101),
    "left_heel": (0.058, 0.108),
    "left_foot_index": (0.007, 0.122),
}
"""How far BlazePose puts a landmark too far ahead of the body, and the spread that remains of its depth, m: from the
same renders, in which it lets the whole upper body lean forward."""
SOLE_LANDMARKS = ("left_heel", "left_foot_index", "right_heel", "right_foot_index")
"""The landmarks that show whether these points and their mirror images move."""


def _mirrored(joint: str, offset: tuple[float, float, float]) -> tuple[str, tuple[float, float, float]]:
    return joint.replace("L_", "R_"), (-offset[0], offset[1], offset[2])


@cache
def used_landmarks() -> tuple[int, ...]:
    """Indices of the landmarks that the lift uses, in `LANDMARK_NAMES`."""
    names = [*_LEFT_OR_MIDDLE, *(n.replace("left", "right") for n in _LEFT_OR_MIDDLE if n.startswith("left"))]
    return tuple(sorted(LANDMARK_NAMES.index(name) for name in names))


@cache
def depth_errors() -> Array:
    """(P, 2) for each used landmark how far its depth is off in the direction the body faces, and its spread, m."""
    names = [LANDMARK_NAMES[index].replace("right", "left") for index in used_landmarks()]
    return np.array([_DEPTH_ERROR[name] for name in names])


@cache
def landmark_points() -> Points:
    """The used landmarks on the base body, in order of their indices."""
    places = []
    for index in used_landmarks():
        name = LANDMARK_NAMES[index]
        if name.startswith("right"):
            places.append(_mirrored(*_LEFT_OR_MIDDLE[name.replace("right", "left")]))
        else:
            places.append(_LEFT_OR_MIDDLE[name])
    return Points(np.array([INDEX[joint] for joint, _ in places]), np.array([offset for _, offset in places]))


@cache
def sole_points() -> Points:
    """Left heel, left ball, right heel, right ball on the base body."""
    places = [*_SOLE, *(_mirrored(*place) for place in _SOLE)]
    return Points(np.array([INDEX[joint] for joint, _ in places]), np.array([offset for _, offset in places]))


def columns(*names: str) -> list[int]:
    """Where landmarks are among the used ones."""
    used = used_landmarks()
    return [used.index(LANDMARK_NAMES.index(name)) for name in names]
