"""A reference is made of a motion of the same robot only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from asap_core.environments.reference import ReferenceMotion
from asap_core.errors import StageError
from asap_core.robots import get_profile
from tests.robot_motions import knee_bend


def test_joints_in_another_order_and_of_another_robot_are_refused() -> None:
    motion, profile = knee_bend(), get_profile("g1_23dof")
    other = replace(motion, joint_names=motion.joint_names[::-1])
    with pytest.raises(StageError, match=r"expected those of 'g1_23dof', in this order: left_hip_pitch_joint"):
        ReferenceMotion.from_motion(other, profile, 0.02)
    with pytest.raises(StageError, match=r"made for robot 'g1_23dof', 23 joints.*expected those of 'g1_29dof'"):
        ReferenceMotion.from_motion(motion, get_profile("g1_29dof"), 0.02)
