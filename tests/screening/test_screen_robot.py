from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from asap_core.errors import InputFileError
from asap_core.motions.robot import RobotMotion
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.screening.dynamics import GRAVITY
from asap_core.screening.faults import spoil_robot
from asap_core.screening.robot import screen_robot
from asap_core.screening.robot_dynamics import robot_demand
from asap_core.screening.settings import ScreenSettings
from tests.robot_motions import knee_bend

PROFILE = get_profile("g1_23dof")
PHYSICS = PhysicsSettings()
SETTINGS = ScreenSettings()


def _stands(motion: RobotMotion) -> RobotMotion:
    """Its feet on the ground in the first frame, and its hips over them."""
    kinematics = Kinematics(PROFILE)
    poses = kinematics.forward(motion.root_pos, motion.root_quat, motion.joint_pos)
    lowest = kinematics.sole_points(poses)[..., 2].min(axis=(1, 2))
    return replace(motion, root_pos=motion.root_pos - np.stack([0 * lowest, 0 * lowest, lowest], axis=1))


@pytest.fixture
def bend() -> RobotMotion:
    return _stands(knee_bend(seconds=3.0))


def test_a_slow_knee_bend_is_accepted(bend: RobotMotion) -> None:
    verdict = screen_robot(bend, PROFILE, SETTINGS, PHYSICS)
    assert verdict.accepted, [reason.text() for reason in verdict.reasons]
    assert verdict.figures["torque_share"] == 0.0


@pytest.mark.parametrize(
    ("fault", "rule"),
    [("float", "float"), ("penetration", "penetration"), ("slide", "slide"), ("skate", "slide"), ("teleport", "jump")],
)
def test_fault_is_rejected_for_its_own_reason(fault: str, rule: str, bend: RobotMotion) -> None:
    assert rule in screen_robot(spoil_robot(bend, fault), PROFILE, SETTINGS, PHYSICS).rules


def test_demand_of_a_robot_at_rest_is_its_weight(bend: RobotMotion) -> None:
    still = replace(
        bend,
        root_pos=np.tile(bend.root_pos[0], (40, 1)),
        root_quat=np.tile(bend.root_quat[0], (40, 1)),
        joint_pos=np.tile(bend.joint_pos[0], (40, 1)),
    )
    demand = robot_demand(still, PROFILE, PHYSICS)
    assert demand.mass == pytest.approx(build_model(PROFILE, PHYSICS).body_mass.sum())
    np.testing.assert_allclose(demand.contact.force, np.tile([0, 0, GRAVITY], (40, 1)), atol=1e-6)
    np.testing.assert_allclose(demand.contact.moment, 0.0, atol=1e-6)


def test_torque_of_a_standing_robot_balances_the_contact_forces(bend: RobotMotion) -> None:
    """Static equilibrium, held against MuJoCo's own: bias forces less the transposed Jacobian's share."""
    demand = robot_demand(bend, PROFILE, PHYSICS)
    force = np.zeros((bend.num_frames, 8, 3))
    force[..., 2] = GRAVITY / 8
    torque = demand.torque(force)[0]
    model = build_model(PROFILE, PHYSICS)
    data = mujoco.MjData(model)
    data.qpos[:] = np.concatenate([bend.root_pos[0], bend.root_quat[0], bend.joint_pos[0]])
    mujoco.mj_forward(model, data)
    expected = data.qfrc_bias.copy()
    for foot, points in zip(PROFILE.foot_links, PROFILE.sole_points, strict=True):
        body = model.body(foot).id
        for point in points:
            jacobian = np.zeros((3, model.nv))
            mujoco.mj_jac(model, data, jacobian, None, data.xpos[body] + data.xmat[body].reshape(3, 3) @ point, body)
            expected -= jacobian.T @ [0.0, 0.0, demand.mass * GRAVITY / 8]
    np.testing.assert_allclose(torque, expected[6:], atol=0.2)
    assert np.abs(torque).max() > 3.0


def test_free_fall_asks_nothing_of_the_ground(bend: RobotMotion) -> None:
    times = np.arange(40) / bend.fps
    root = np.tile(bend.root_pos[0], (40, 1))
    root[:, 2] += 3.0 * times - GRAVITY / 2 * times**2
    falls = replace(bend, root_pos=root, root_quat=bend.root_quat[:40], joint_pos=np.tile(bend.joint_pos[0], (40, 1)))
    inner = slice(10, -10)
    np.testing.assert_allclose(robot_demand(falls, PROFILE, PHYSICS).contact.force[inner], 0.0, atol=1e-6)


def test_a_drive_that_is_too_weak_is_named(bend: RobotMotion) -> None:
    deep = _stands(knee_bend(seconds=3.0, depth=1.0))
    weak = replace(PROFILE, joint_torque_limit=PROFILE.joint_torque_limit * 0.1)
    reason = next(r for r in screen_robot(deep, weak, SETTINGS, PHYSICS).reasons if r.rule == "torque")
    assert "of a limit (" in reason.detail
    assert reason.found > 0.3


def test_a_joint_beyond_its_limit_is_found(bend: RobotMotion) -> None:
    joint_pos = bend.joint_pos.copy()
    joint = PROFILE.joint_index("left_elbow_joint")
    joint_pos[30:33, joint] = PROFILE.joint_upper[joint] + 0.05
    reasons = {r.rule: r for r in screen_robot(replace(bend, joint_pos=joint_pos), PROFILE, SETTINGS, PHYSICS).reasons}
    assert reasons["joint_limit"].found == pytest.approx(0.05)
    assert reasons["joint_limit"].frames == [[30, 32]]


def test_joints_held_at_their_limits_are_saturated(bend: RobotMotion) -> None:
    joint_pos = bend.joint_pos.copy()
    arms = [i for i, name in enumerate(PROFILE.joint_names) if "shoulder" in name or "elbow" in name]
    joint_pos[:, arms] = PROFILE.joint_upper[arms]
    verdict = screen_robot(replace(bend, joint_pos=joint_pos), PROFILE, SETTINGS, PHYSICS)
    assert verdict.figures["saturation_share"] == 1.0
    assert "saturation" in verdict.rules


def test_a_joint_faster_than_its_drive_is_found(bend: RobotMotion) -> None:
    """A wave of 1 rad at 8 Hz is 50 rad/s; the elbow's drive gives 37."""
    joint_pos = bend.joint_pos.copy()
    elbow = PROFILE.joint_index("left_elbow_joint")
    times = np.arange(bend.num_frames) / bend.fps
    joint_pos[:, elbow] = 0.5 + np.sin(2 * np.pi * 8 * times)
    assert "joint_speed" in screen_robot(replace(bend, joint_pos=joint_pos), PROFILE, SETTINGS, PHYSICS).rules


def test_another_robots_motion_is_refused(bend: RobotMotion) -> None:
    other = replace(bend, joint_names=bend.joint_names[:-1], joint_pos=bend.joint_pos[:, :-1])
    with pytest.raises(InputFileError, match=r"joints: found 22 joints .*expected those of g1_23dof"):
        screen_robot(other, PROFILE, SETTINGS, PHYSICS)
