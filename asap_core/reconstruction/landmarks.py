"""What a pose network saw in a video: 33 body landmarks a frame, in pixels and roughly in metres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.rotations import Array

LANDMARK_NAMES = (
    "nose",
    "left_eye_inner",
    "left_eye",
    "left_eye_outer",
    "right_eye_inner",
    "right_eye",
    "right_eye_outer",
    "left_ear",
    "right_ear",
    "mouth_left",
    "mouth_right",
    "left_shoulder",
    "right_shoulder",
    "left_elbow",
    "right_elbow",
    "left_wrist",
    "right_wrist",
    "left_pinky",
    "right_pinky",
    "left_index",
    "right_index",
    "left_thumb",
    "right_thumb",
    "left_hip",
    "right_hip",
    "left_knee",
    "right_knee",
    "left_ankle",
    "right_ankle",
    "left_heel",
    "right_heel",
    "left_foot_index",
    "right_foot_index",
)
"""BlazePose's order."""


@dataclass(frozen=True)
class LandmarkTrack:
    """Landmarks of one person over the T frames of a video, upright as it is shown (rotation flags applied)."""

    times: Array
    """(T,) s from the first frame, strictly increasing; frame rates may vary."""
    pixels: Array
    """(T, 33, 2) x right, y down, px of the full image; NaN in frames without the person."""
    metric: Array
    """(T, 33, 3) m, centred between the hips, camera axes (x right, y down, z away), as the network guesses them; NaN
    in frames without the person."""
    confidence: Array
    """(T, 33) from 0 to 1: visible and inside the image, as the network says; 0 in frames without the person."""
    found: NDArray[np.bool_]
    """(T,) whether the person was seen in the frame."""
    width: int
    """px."""
    height: int
    """px."""
    focal: float | None = None
    """px, where the file's metadata give it."""
    start: float = 0.0
    """s of the first frame in the file."""
    notes: tuple[str, ...] = ()
    """What a person should know of the choice of frames and persons, in sentences."""
