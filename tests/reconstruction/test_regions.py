"""The square that is cut out of a picture, the detector's anchors, and landmarks refined on heat maps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from asap_core.reconstruction.detector import Region, _persons, anchors
from tests.video_fixtures import require_video

require_video()

from asap_core.reconstruction.pose_network import SIDE, cut_out, refined  # noqa: E402


def test_anchors_are_those_of_the_published_grids() -> None:
    """28 × 28 cells of two, 14 × 14 of two, 7 × 7 of six; centres of cells, x before y."""
    places = anchors()
    assert places.shape == (2254, 2)
    np.testing.assert_allclose(places[0], [4 / 224, 4 / 224])
    np.testing.assert_allclose(places[2], [12 / 224, 4 / 224])
    np.testing.assert_allclose(places[2 * 28], [4 / 224, 12 / 224])
    np.testing.assert_allclose(places[2 * 28 * 28], [8 / 224, 8 / 224])
    np.testing.assert_allclose(places[-1], [208 / 224, 208 / 224])


@pytest.mark.parametrize(
    ("rim", "angle"), [((100, 40), 0.0), ((160, 100), math.pi / 2), ((40, 100), -math.pi / 2), ((100, 160), math.pi)]
)
def test_region_around_a_person_stands_its_head_up(rim: tuple[int, int], angle: float) -> None:
    """Hips at (100, 100), the head's rim 60 px away: above, to the right, to the left, below."""
    region = Region.around(np.array([100.0, 100.0]), np.array(rim, dtype=float))
    assert region.size == pytest.approx(2 * 60 * 1.25)
    assert abs(math.remainder(region.angle - angle, 2 * math.pi)) < 1e-12
    place = region.to_picture(SIDE)
    up = place[:, :2] @ [0.0, -1.0]
    np.testing.assert_allclose(up / np.linalg.norm(up), (np.array(rim) - 100) / 60, atol=1e-12)
    np.testing.assert_allclose(place @ [SIDE / 2, SIDE / 2, 1], [100, 100], atol=1e-9)


@pytest.mark.parametrize("size", [180.0, 256.0, 500.0, 900.0])
@pytest.mark.parametrize("angle", [0.0, 0.4, -2.0])
def test_a_point_of_the_picture_is_found_again_through_the_region(size: float, angle: float) -> None:
    """A bright spot of the picture, cut out, and carried back by the region's matrix, lies where it was."""
    picture = np.zeros((900, 1200, 3), dtype=np.uint8)
    y, x = np.mgrid[:900, :1200]
    spot = np.array([655.0, 478.0])
    picture[...] = (255 * np.exp(-((x - spot[0]) ** 2 + (y - spot[1]) ** 2) / (2 * (size / 30) ** 2)))[..., None]
    region = Region(640.0, 450.0, size, angle)
    crop = cut_out(picture, region)[..., 0].astype(float)
    assert crop.shape == (SIDE, SIDE)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    found = np.array([(crop * columns).sum(), (crop * rows).sum(), crop.sum()]) / crop.sum()
    np.testing.assert_allclose(region.to_picture(SIDE) @ found, spot, atol=0.02 * size / 30 + 0.3)


def test_region_beyond_the_picture_is_black() -> None:
    picture = np.full((100, 100, 3), 255, dtype=np.uint8)
    assert cut_out(picture, Region(1000.0, 1000.0, 100.0, 0.0)).max() == 0
    assert cut_out(picture, Region(0.0, 50.0, 100.0, 0.0)).mean() == pytest.approx(0.5, abs=0.01)


def test_boxes_that_overlap_are_one_person() -> None:
    corners = np.array([[0, 0, 1, 1], [0.05, 0, 1.05, 1], [3, 3, 4, 4], [0, 0.1, 1, 1.1], [3.1, 3, 4.1, 4]])
    assert [group.tolist() for group in _persons(corners)] == [[0, 1, 3], [2, 4]]


def test_landmarks_move_to_the_heat_around_them() -> None:
    """A hot spot at cell (20, 30) draws a landmark at cell (19, 31); where it is cold the landmark stays."""
    heat = np.full((64, 64, 39), -20.0, dtype=np.float32)
    y, x = np.mgrid[:64, :64]
    warm = 1.0 - ((x - 20) ** 2 + (y - 30) ** 2) / 2
    heat[..., 0] = np.log(np.clip(warm, 1e-9, 1 - 1e-6) / np.clip(1 - warm, 1e-6, None))
    points = np.full((39, 2), 100.0)
    points[0] = 4 * np.array([19.3, 31.4])
    points[1] = [-50.0, 300.0]
    moved = refined(points, heat)
    np.testing.assert_allclose(moved[0], [80.0, 120.0], atol=1e-3)
    np.testing.assert_array_equal(moved[1:], points[1:])


def test_heat_at_the_edge_is_cut_off_there() -> None:
    heat = np.full((64, 64, 39), -20.0, dtype=np.float32)
    heat[0, 0, 0] = 20.0
    heat[63, 63, 1] = 20.0
    points = np.zeros((39, 2))
    points[1] = 255.0
    moved = refined(points, heat)
    np.testing.assert_allclose(moved[:2], [[0.0, 0.0], [252.0, 252.0]], atol=1e-3)
