"""Several cameras give back what was acted, in a world with z up, and a measure of one camera alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from asap_core.errors import StageError
from asap_core.reconstruction.calibration import CalibratedCamera
from asap_core.reconstruction.camera import Known
from asap_core.reconstruction.landmarks import LANDMARK_NAMES, LandmarkTrack
from asap_core.reconstruction.markers import used_landmarks
from asap_core.reconstruction.multiview import compare_with_triangulation, lift_views, see
from tests.reconstruction.acted import CAMERA, act, walk_on_the_spot

SCENE = act(walk_on_the_spot(60))
MIDDLE = np.array([4.0, 0.2, 0.9])
ORIGIN = np.array([3.0, 1.0, 0.4])
"""Of the calibration's world in the scene's."""


def ring(turn: np.ndarray) -> tuple[CalibratedCamera, ...]:
    """The scene's camera and three around the person, in a world turned by `turn` (3, 3) and shifted."""
    matrix = np.array([[700.0, 0.0, 320.0], [0.0, 700.0, 320.0], [0.0, 0.0, 1.0]])
    bent = np.array([-0.1, 0.02, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    found = [(CAMERA.rotation(), np.array([0.0, 0.0, CAMERA.height]), np.zeros(8))]
    for angle in (0.5, 2.0, 4.0):
        centre = MIDDLE + np.array([4 * np.cos(angle), 4 * np.sin(angle), 0.8])
        forward = (MIDDLE - centre) / np.linalg.norm(MIDDLE - centre)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        found.append((np.stack([right, np.cross(forward, right), forward]), centre, bent))
    cameras = []
    for k, (rotation, centre, distortion) in enumerate(found):
        own = rotation @ turn.T
        place = turn @ (centre - ORIGIN)
        cameras.append(CalibratedCamera(f"cam{k}", (640, 640), matrix, distortion, own, -own @ place))
    return tuple(cameras)


def tracks_of(cameras: tuple[CalibratedCamera, ...], turn: np.ndarray) -> list[LandmarkTrack]:
    tracks = [SCENE.track]
    for camera in cameras[1:]:
        pixels = SCENE.track.pixels.copy()
        pixels[:, list(used_landmarks())] = camera.project((SCENE.landmarks - ORIGIN) @ turn.T)
        tracks.append(replace(SCENE.track, pixels=pixels))
    return tracks


Z_UP, Y_UP = np.eye(3), np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize("turn", [Z_UP, Y_UP], ids=["z up", "y up"])
def test_exact_views_give_the_motion_on_the_ground(turn: np.ndarray) -> None:
    cameras = ring(turn)
    result = lift_views(tracks_of(cameras, turn), cameras, Known(person_height=1.70))
    found, true = result.motion.joint_positions(), SCENE.joints
    np.testing.assert_allclose(found[..., 2], true[..., 2], atol=0.03)
    distances = np.linalg.norm(found - found[:, :1], axis=-1) - np.linalg.norm(true - true[:, :1], axis=-1)
    assert 1e3 * np.abs(distances).mean() < 6.0
    assert result.estimates["person_height"].origin == "given"
    assert not result.bridged.any()


def test_the_persons_height_is_estimated_from_views() -> None:
    cameras = ring(Z_UP)
    height = lift_views(tracks_of(cameras, Z_UP), cameras).estimates["person_height"]
    assert height.origin == "estimated"
    assert height.value == pytest.approx(1.70, abs=0.02)


def test_one_camera_alone_is_compared_by_landmark() -> None:
    cameras = ring(Z_UP)
    known = Known(CAMERA.focal, CAMERA.pitch, CAMERA.height, 1.70, 0.0)
    found = compare_with_triangulation(tracks_of(cameras, Z_UP), cameras, 0, known)
    assert set(found.landmark_error) == {LANDMARK_NAMES[i] for i in used_landmarks()}
    assert found.error < 12.0
    assert found.drift < 15.0
    assert found.reprojection < 0.1


def test_another_number_or_size_of_videos_is_refused() -> None:
    cameras = ring(Z_UP)
    tracks = tracks_of(cameras, Z_UP)
    with pytest.raises(StageError, match="videos: found 3, expected one for each of 4 cameras"):
        see(tracks[:3], cameras)
    with pytest.raises(StageError, match="cam1: the video is 1280 x 640 px, its calibration 640 x 640"):
        see([tracks[0], replace(tracks[1], width=1280), *tracks[2:]], cameras)


def test_a_world_in_which_the_person_stands_askew_is_refused() -> None:
    c, s = np.cos(0.8), np.sin(0.8)
    askew = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    cameras = ring(askew)
    with pytest.raises(StageError, match=r"calibration: the person stands along .* expected along an axis"):
        see(tracks_of(cameras, askew), cameras)
