from __future__ import annotations

import numpy as np
import pytest

from asap_core.errors import ConfigError
from asap_core.reconstruction.camera import Camera, Known

CAMERA = Camera(focal=800.0, pitch=0.2, roll=0.05, height=1.4, centre=(320.0, 240.0))
PLACES = np.array([[3.0, 0.2, 0.0], [2.5, -0.6, 1.8], [5.0, 1.0, 0.9]])


def test_a_point_ahead_on_the_ground_is_seen_where_trigonometry_has_it() -> None:
    camera = Camera(800.0, 0.2, 0.0, 1.4, (320.0, 240.0))
    below = np.arctan2(1.4, 3.0) - 0.2
    pixel = camera.project(camera.seen(np.array([3.0, 0.0, 0.0])))
    np.testing.assert_allclose(pixel, [320.0, 240.0 + 800.0 * np.tan(below)])


def test_what_is_on_the_left_is_left_and_what_is_high_is_up() -> None:
    camera = Camera(800.0, 0.0, 0.0, 1.4, (320.0, 240.0))
    pixel = camera.project(camera.seen(np.array([4.0, 1.0, 2.4])))
    np.testing.assert_allclose(pixel, [320.0 - 200.0, 240.0 - 200.0])


def test_a_camera_rolled_clockwise_sees_the_world_rolled_the_other_way() -> None:
    camera = Camera(800.0, 0.0, np.pi / 2, 1.4, (0.0, 0.0))
    np.testing.assert_allclose(camera.project(camera.seen(np.array([4.0, 0.0, 2.4]))), [-200.0, 0.0], atol=1e-9)


def test_derivatives_equal_finite_differences() -> None:
    step = 1e-6
    seen = CAMERA.seen(PLACES)
    for axis in range(3):
        change = np.eye(3)[axis] * step
        after, before = (CAMERA.project(CAMERA.seen(PLACES + s * change)) for s in (1, -1))
        np.testing.assert_allclose(
            CAMERA.pixel_rows(seen)[..., axis], (after - before) / (2 * step), rtol=1e-6, atol=1e-5
        )
    for variable in range(4):
        cameras = [CAMERA.moved(np.eye(4)[variable] * step * s) for s in (1, -1)]
        after, before = (camera.project(camera.seen(PLACES)) for camera in cameras)
        np.testing.assert_allclose(
            CAMERA.derivatives(seen)[..., variable], (after - before) / (2 * step), rtol=1e-6, atol=1e-5
        )


def test_impossible_knowledge_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"person_height: found 170, expected 0.4 to 2.6 m"):
        Known(person_height=170.0)
