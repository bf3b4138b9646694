"""The 29-joint G1 against the 23-joint one and Unitree's published tables."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings

G29, G23 = get_profile("g1_29dof"), get_profile("g1_23dof")


def _forward(profile, joint_pos):
    n = len(joint_pos)
    return Kinematics(profile).forward(np.zeros((n, 3)), np.tile([1.0, 0, 0, 0], (n, 1)), joint_pos)


def test_joint_order_is_the_sdk_order() -> None:
    assert G29.num_joints == 29
    assert G29.joint_names[12:15] == ("waist_yaw_joint", "waist_roll_joint", "waist_pitch_joint")
    assert G29.joint_names[18:22] == (
        "left_elbow_joint",
        "left_wrist_roll_joint",
        "left_wrist_pitch_joint",
        "left_wrist_yaw_joint",
    )
    kept = [*range(19), 22, 23, 24, 25]
    assert tuple(G29.joint_names[i] for i in kept) == G23.joint_names
    np.testing.assert_array_equal(G29.kp[kept], G23.kp)


def test_wrist_limits_are_the_published_ones() -> None:
    index = G29.joint_index("right_wrist_roll_joint")
    assert (G29.joint_lower[index], G29.joint_upper[index]) == (-1.97222, 1.97222)
    assert G29.joint_torque_limit[G29.joint_index("left_wrist_yaw_joint")] == 5


def test_hands_and_arms_are_where_they_were_at_zero_waist_and_wrists() -> None:
    rng = np.random.default_rng(0)
    q23 = rng.uniform(-0.5, 0.5, (5, 23))
    q23[:, [13, 14]] = 0.0
    q29 = np.zeros((5, 29))
    q29[:, [*range(19), 22, 23, 24, 25]] = q23
    a, b = _forward(G23, q23), _forward(G29, q29)
    names = [name for name in G23.link_names if name not in ("torso_link", "waist_roll_link", "head_link")]
    np.testing.assert_allclose(a.pos[:, G23.link_indices(names)], b.pos[:, G29.link_indices(names)], atol=1e-9)


def test_the_waist_joints_of_revision_1_0_meet_at_one_point() -> None:
    poses = _forward(G29, np.random.default_rng(1).uniform(-0.4, 0.4, (3, 29)))
    roll, torso = G29.link_index("waist_roll_link"), G29.link_index("torso_link")
    np.testing.assert_allclose(poses.pos[:, roll], poses.pos[:, torso], atol=1e-12)


def test_it_compiles_in_mujoco_with_the_published_mass() -> None:
    model = build_model(G29, PhysicsSettings())
    assert model.nu == 29
    assert model.body_mass.sum() == pytest.approx(sum(link.mass for link in G29.links))
    assert 33.0 < model.body_mass.sum() < 34.5
