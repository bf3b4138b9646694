"""Reward terms by hand-computed values."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.environments.rewards import TERMS, RewardContext
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.simulators.protocol import RobotState
from tests.robot_motions import STANDING_HEIGHT

PROFILE = get_profile("g1_23dof")
TRACKING = {
    "body_position": 1.0,
    "vr_3point": 1.6,
    "body_position_feet": 2.1,
    "body_rotation": 0.5,
    "body_velocity": 0.5,
    "body_ang_velocity": 0.5,
    "joint_position": 0.75,
    "joint_velocity": 0.5,
}
"""Weights of the paper's Table I."""


def context(**changes) -> RewardContext:
    joint_pos = PROFILE.default_joint_pos[None].copy()
    state = RobotState(
        np.array([[0.0, 0, STANDING_HEIGHT]]), np.array([[1.0, 0, 0, 0]]), np.zeros((1, 3)), np.zeros((1, 3)),
        joint_pos, np.zeros((1, 23)),
    )  # fmt: skip
    links = Kinematics(PROFILE).forward_with_velocities(
        state.root_pos, state.root_quat, state.joint_pos, state.root_lin_vel, state.root_ang_vel, state.joint_vel
    )
    base = {
        "profile": PROFILE,
        "state": state,
        "links": links,
        "torque": np.zeros((1, 23)),
        "foot_contact": np.ones((1, 2), bool),
        "action": np.zeros((1, 23)),
        "last_action": np.zeros((1, 23)),
        "ref_joint_pos": joint_pos,
        "ref_joint_vel": np.zeros((1, 23)),
        "ref_link_pos": links.pos,
        "ref_link_quat": links.quat,
        "ref_link_lin_vel": links.lin_vel,
        "ref_link_ang_vel": links.ang_vel,
    }
    return RewardContext(**{**base, **changes})


def test_perfect_tracking_earns_the_papers_maximum_per_step():
    c = context()
    assert 0.02 * sum(w * TERMS[n](c)[0] for n, w in TRACKING.items()) == pytest.approx(0.159, abs=1e-12)


def test_all_links_off_by_ten_centimetres_upwards():
    c = context()
    c = context(ref_link_pos=c.links.pos + np.array([0, 0, 0.1]))
    mse = 0.1**2 / 3
    assert TERMS["body_position"](c)[0] == pytest.approx(0.5 * np.exp(-mse / 0.1) + np.exp(-mse / 0.03))
    assert TERMS["vr_3point"](c)[0] == pytest.approx(np.exp(-mse / 0.03))
    assert TERMS["body_position_feet"](c)[0] == pytest.approx(np.exp(-mse / 0.03))


def test_rotation_measures_the_angle():
    c = context()
    half = 0.5 * 0.4
    turn = np.array([np.cos(half), 0, 0, np.sin(half)])
    c = context(ref_link_quat=np.broadcast_to(turn, c.links.quat.shape), links=c.links)
    flat = [i for i in range(27) if abs(c.links.quat[0, i, 0] - 1) < 1e-12]
    cosine = np.abs((c.ref_link_quat * c.links.quat).sum(-1))[0]
    assert 2 * np.arccos(cosine[flat[0]]) == pytest.approx(0.4)
    want = np.exp(-np.mean((2 * np.arccos(np.minimum(cosine, 1))) ** 2))
    assert TERMS["body_rotation"](c)[0] == pytest.approx(want)


@pytest.mark.parametrize(
    ("term", "changes", "want"),
    [
        ("torques", {"torque": np.full((1, 23), 2.0)}, 4 * 23),
        ("action_rate", {"action": np.full((1, 23), 0.5)}, 0.25 * 23),
        ("joint_velocity", {"ref_joint_vel": np.full((1, 23), 1.0)}, np.exp(-1.0)),
        ("joint_position", {"ref_joint_pos": PROFILE.default_joint_pos[None] + 0.5}, np.exp(-0.25)),
        ("limits_torque", {"torque": PROFILE.joint_torque_limit[None] * 0.9 + 0.25}, 0.25 * 23),
        ("limits_dof_pos", {}, 0.0),
        ("feet_heading", {}, 0.0),
    ],
)
def test_term_by_hand(term, changes, want):
    assert TERMS[term](context(**changes))[0] == pytest.approx(want, abs=1e-9)


def test_feet_orientation_is_zero_when_flat_and_the_sine_when_tilted():
    flat = PROFILE.default_joint_pos.copy()
    assert TERMS["feet_orientation"](context())[0] == pytest.approx(0.0, abs=1e-6)
    flat[PROFILE.joint_index("left_ankle_pitch_joint")] += 0.3
    links = Kinematics(PROFILE).forward_with_velocities(
        np.array([[0.0, 0, 1]]), np.array([[1.0, 0, 0, 0]]), flat[None], np.zeros((1, 3)), np.zeros((1, 3)),
        np.zeros((1, 23)),
    )  # fmt: skip
    assert TERMS["feet_orientation"](context(links=links))[0] == pytest.approx(np.sin(0.3), abs=1e-6)
