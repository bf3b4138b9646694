"""A made motion of the lift's own body before a camera, with the landmarks that a faultless network would see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asap_core.reconstruction.body import NEUTRAL_BALLS, SHAPE_GROUPS, BodyState, Pose, upright
from asap_core.reconstruction.camera import Camera
from asap_core.reconstruction.first_guess import facing, towards
from asap_core.reconstruction.landmarks import LandmarkTrack
from asap_core.reconstruction.markers import columns, depth_errors, landmark_points, sole_points, used_landmarks
from asap_core.rotations import quat_mul, quat_to_matrix, rotvec_to_quat

FPS = 30.0
CAMERA = Camera(700.0, 0.12, 0.0, 1.3, (320.0, 320.0))
NO_SHAPE = np.zeros(len(SHAPE_GROUPS))

FACING_X = quat_mul(rotvec_to_quat(np.array([0.0, 0.0, np.pi / 2])), rotvec_to_quat(np.array([np.pi / 2, 0.0, 0.0])))
"""wxyz of a pelvis that stands upright in the world and faces x."""


@dataclass(frozen=True)
class Scene:
    state: BodyState
    joints: np.ndarray
    landmarks: np.ndarray
    """(T, P, 3) world."""
    contacts: np.ndarray
    track: LandmarkTrack


def walk_on_the_spot(frames: int = 90, turn: float = 0.6) -> BodyState:
    """Knees are lifted in turn, arms swing, the other foot stands; the body faces the camera but for `turn`."""
    t = np.arange(frames) / FPS
    facing = quat_mul(rotvec_to_quat(np.array([0.0, 0.0, np.pi + turn])), FACING_X)
    state = upright(np.tile([4.0, 0.2, 0.0], (frames, 1)), np.tile(facing, (frames, 1)))
    balls, angles = state.balls.copy(), state.angles.copy()
    angles[:, 10:12] = 0.5
    for side, sign in ((0, 1.0), (1, -1.0)):
        swing = np.clip(sign * np.sin(2 * np.pi * 0.5 * t), 0.0, None) ** 2
        lift = np.stack([-(0.9 * swing + 0.15), 0 * t, 0 * t], axis=1)
        balls[:, 1 + side] = rotvec_to_quat(lift)
        angles[:, 12 + side] = 0.9 * swing + 0.3
        angles[:, 14 + 2 * side] = -0.15
        arm = rotvec_to_quat(np.stack([-0.5 * swing, 0 * t, 0 * t], axis=1))
        balls[:, 3 + side] = quat_mul(arm, np.tile(NEUTRAL_BALLS[3 + side], (frames, 1)))
    low = Pose(NO_SHAPE, BodyState(state.root, balls, angles)).place(sole_points())[..., 2].min(axis=1)
    return BodyState(state.root - np.stack([0 * low, 0 * low, low], axis=1), balls, angles)


def act(state: BodyState, camera: Camera = CAMERA, focal: float | None = None) -> Scene:
    """What the camera sees."""
    pose = Pose(NO_SHAPE, state)
    landmarks, soles = pose.place(landmark_points()), pose.place(sole_points())
    seen = camera.seen(landmarks)
    frames, used = len(seen), list(used_landmarks())
    hips = seen[:, columns("left_hip", "right_hip")].mean(axis=1)
    pixels, metric, confidence = np.zeros((frames, 33, 2)), np.zeros((frames, 33, 3)), np.zeros((frames, 33))
    pixels[:, used] = camera.project(seen)
    relative = (seen - hips[:, None]) @ towards(hips)
    ahead = quat_to_matrix(facing(relative))[:, 2, 2]
    relative[..., 2] += ahead[:, None] * depth_errors()[:, 0]  # as the network errs
    metric[:, used] = 0.9 * relative
    confidence[:, used] = 1.0
    times = np.arange(frames) / FPS
    track = LandmarkTrack(times, pixels, metric, confidence, np.ones(frames, dtype=bool), 640, 640, focal=focal)
    return Scene(state, pose.joints, landmarks, soles[..., 2] < 0.01, track)
