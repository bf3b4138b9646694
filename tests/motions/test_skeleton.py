from __future__ import annotations

import numpy as np

from asap_core.motions.skeleton import (
    ANKLE_HEIGHT,
    INDEX,
    JOINT_NAMES,
    PARENTS,
    REST_TO_WORLD,
    body_offsets,
    leg_length,
    sole_points,
)


def test_tree_has_every_parent_before_its_child() -> None:
    assert len(JOINT_NAMES) == len(PARENTS) == 24
    assert all(parent < joint for joint, parent in enumerate(PARENTS))
    assert JOINT_NAMES[PARENTS[INDEX["L_Knee"]]] == "L_Hip"
    assert JOINT_NAMES[PARENTS[INDEX["R_Shoulder"]]] == "R_Thorax"


def test_body_is_mirrored_and_scales_with_stature() -> None:
    body = body_offsets()
    for name, joint in INDEX.items():
        if name.startswith("L_"):
            np.testing.assert_array_equal(body[joint] * (-1, 1, 1), body[INDEX["R_" + name[2:]]])
    np.testing.assert_allclose(body_offsets(3.24), 2 * body)


def test_legs_have_winters_proportions() -> None:
    assert leg_length(body_offsets(1.0)) == np.float64(0.491)


def test_rest_frame_maps_left_up_forward_to_the_world() -> None:
    np.testing.assert_array_equal(REST_TO_WORLD @ np.eye(3), np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]]))
    assert np.linalg.det(REST_TO_WORLD) == 1.0


def test_all_sole_points_lie_on_one_plane_under_the_ankles_at_rest() -> None:
    body = body_offsets()
    heights = []
    for joint, offset in sole_points(body):
        above_ankle = body[joint][1] if "Toe" in JOINT_NAMES[joint] else 0.0
        heights.append(above_ankle + offset[1])
    np.testing.assert_allclose(heights, -ANKLE_HEIGHT, atol=1e-12)
