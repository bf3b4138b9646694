"""The G1's figures, groups and names."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.errors import UnknownNameError
from asap_core.robots import get_profile

PROFILE = get_profile("g1_23dof")

# The order and figures of the released configuration: lower, upper, velocity, torque, kp, kd, default.
TABLE = {
    "left_hip_pitch_joint": (-2.5307, 2.8798, 32, 88, 100, 2.5, -0.1),
    "left_hip_roll_joint": (-0.5236, 2.9671, 32, 88, 100, 2.5, 0),
    "left_hip_yaw_joint": (-2.7576, 2.7576, 32, 88, 100, 2.5, 0),
    "left_knee_joint": (-0.087267, 2.8798, 20, 139, 200, 5, 0.3),
    "left_ankle_pitch_joint": (-0.87267, 0.5236, 37, 50, 20, 0.2, -0.2),
    "left_ankle_roll_joint": (-0.2618, 0.2618, 37, 50, 20, 0.1, 0),
    "right_hip_pitch_joint": (-2.5307, 2.8798, 32, 88, 100, 2.5, -0.1),
    "right_hip_roll_joint": (-2.9671, 0.5236, 32, 88, 100, 2.5, 0),
    "right_hip_yaw_joint": (-2.7576, 2.7576, 32, 88, 100, 2.5, 0),
    "right_knee_joint": (-0.087267, 2.8798, 20, 139, 200, 5, 0.3),
    "right_ankle_pitch_joint": (-0.87267, 0.5236, 37, 50, 20, 0.2, -0.2),
    "right_ankle_roll_joint": (-0.2618, 0.2618, 37, 50, 20, 0.1, 0),
    "waist_yaw_joint": (-2.618, 2.618, 32, 88, 400, 5, 0),
    "waist_roll_joint": (-0.52, 0.52, 37, 50, 400, 5, 0),
    "waist_pitch_joint": (-0.52, 0.52, 37, 50, 400, 5, 0),
    "left_shoulder_pitch_joint": (-3.0892, 2.6704, 37, 25, 90, 2, 0),
    "left_shoulder_roll_joint": (-1.5882, 2.2515, 37, 25, 60, 1, 0),
    "left_shoulder_yaw_joint": (-2.618, 2.618, 37, 25, 20, 0.4, 0),
    "left_elbow_joint": (-1.0472, 2.0944, 37, 25, 60, 1, 0),
    "right_shoulder_pitch_joint": (-3.0892, 2.6704, 37, 25, 90, 2, 0),
    "right_shoulder_roll_joint": (-2.2515, 1.5882, 37, 25, 60, 1, 0),
    "right_shoulder_yaw_joint": (-2.618, 2.618, 37, 25, 20, 0.4, 0),
    "right_elbow_joint": (-1.0472, 2.0944, 37, 25, 60, 1, 0),
}


def test_joint_order_limits_and_gains() -> None:
    assert tuple(TABLE) == PROFILE.joint_names
    found = np.stack(
        [
            PROFILE.joint_lower,
            PROFILE.joint_upper,
            PROFILE.joint_velocity_limit,
            PROFILE.joint_torque_limit,
            PROFILE.kp,
            PROFILE.kd,
            PROFILE.default_joint_pos,
        ],
        axis=1,
    )
    np.testing.assert_array_equal(found, np.array(list(TABLE.values())))


def test_link_names_put_virtual_links_last() -> None:
    assert PROFILE.num_links == 27
    assert PROFILE.link_names[0] == "pelvis"
    assert PROFILE.link_names[24:] == ("left_hand_link", "right_hand_link", "head_link")
    assert [PROFILE.link_names[i] for i in PROFILE.foot_index] == ["left_ankle_roll_link", "right_ankle_roll_link"]


def test_link_groups_part_the_body() -> None:
    assert (len(PROFILE.lower_body_index), len(PROFILE.upper_body_index), len(PROFILE.tracking_index)) == (16, 11, 3)
    assert sorted([*PROFILE.lower_body_index, *PROFILE.upper_body_index]) == list(range(27))
    assert "torso_link" in PROFILE.lower_body_links
    np.testing.assert_array_equal(PROFILE.tracking_index, [24, 25, 26])


def test_correspondences_name_existing_links() -> None:
    assert len(PROFILE.correspondences) == 14
    assert len(PROFILE.paper_correspondences) == 12
    assert set(PROFILE.correspondences) - set(PROFILE.paper_correspondences) == {
        ("pelvis", "Pelvis"),
        ("head_link", "Head"),
    }
    assert ("right_hand_link", "R_Hand") in PROFILE.correspondences
    assert {link for link, _ in PROFILE.correspondences} <= set(PROFILE.link_names)


def test_action_scale_is_a_quarter_of_the_torque_limit() -> None:
    scale = PROFILE.action_scale_from_torque()
    np.testing.assert_allclose(scale[PROFILE.joint_index("left_knee_joint")], 0.25 * 139 / 200)
    np.testing.assert_allclose(scale * PROFILE.kp / PROFILE.joint_torque_limit, 0.25)


def test_unknown_names_list_the_valid_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"left_knee_joint.*Did you mean 'left_knee_joint'"):
        PROFILE.joint_index("left_knee")
    with pytest.raises(UnknownNameError, match="torso_link"):
        PROFILE.link_index("chest")
    with pytest.raises(UnknownNameError, match="g1_23dof"):
        get_profile("g1")


def test_figures_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        PROFILE.kp[0] = 1.0
