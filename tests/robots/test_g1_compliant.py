"""Gains from motor inertias: BeyondMimic's figures, from rotors and gears."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.robots import get_profile
from asap_core.robots.g1_compliant import ARMATURE, joint_armature
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings

PROFILE = get_profile("g1_23dof_compliant")
STAGES = {
    "elbow": ((0.139e-4, 0.017e-4, 0.169e-4), (1 + 46 / 18, 1 + 56 / 16), 1),
    "hip_yaw": ((0.489e-4, 0.098e-4, 0.533e-4), (4.5, 1 + 48 / 22), 1),
    "knee": ((0.489e-4, 0.109e-4, 0.738e-4), (4.5, 5.0), 1),
    "ankle": ((0.139e-4, 0.017e-4, 0.169e-4), (1 + 46 / 18, 1 + 56 / 16), 2),
}
"""Inertias (kg m²) of rotor, first and second carrier, the two gear ratios, and the number of motors."""


@pytest.mark.parametrize("part", STAGES)
def test_armature_is_the_rotors_seen_through_the_gears(part):
    (rotor, first, second), (low, high), motors = STAGES[part]
    want = motors * (rotor * (low * high) ** 2 + first * high**2 + second)
    assert ARMATURE[part] == pytest.approx(want, rel=2e-3)


@pytest.mark.parametrize(
    ("joint", "kp"),
    [("left_elbow_joint", 14.25), ("left_hip_pitch_joint", 40.2), ("right_knee_joint", 99.1),
     ("left_ankle_pitch_joint", 28.5), ("waist_roll_joint", 28.5), ("waist_yaw_joint", 40.2)],
)  # fmt: skip
def test_gains_are_the_published_ones(joint, kp):
    j = PROFILE.joint_index(joint)
    assert PROFILE.kp[j] == pytest.approx(kp, rel=3e-3)
    assert PROFILE.kd[j] == pytest.approx(2 * 2.0 * kp / (2 * np.pi * 10), rel=3e-3)


def test_action_scale_asks_for_a_quarter_of_the_torque():
    scale = PROFILE.action_scale_from_torque()
    np.testing.assert_allclose(scale * PROFILE.kp, 0.25 * PROFILE.joint_torque_limit)
    assert scale[PROFILE.joint_index("left_elbow_joint")] == pytest.approx(0.25 * 25 / 14.25, rel=3e-3)


def test_everything_else_is_that_of_the_g1():
    base = get_profile("g1_23dof")
    assert PROFILE.joint_names == base.joint_names
    assert PROFILE.links == base.links
    np.testing.assert_array_equal(PROFILE.joint_torque_limit, base.joint_torque_limit)


def test_the_model_takes_the_motors_armature():
    model = build_model(PROFILE, PhysicsSettings(armature_of=ARMATURE))
    np.testing.assert_allclose(model.dof_armature[6:], joint_armature(PROFILE.joint_names))
