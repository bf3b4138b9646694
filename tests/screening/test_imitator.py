from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap_core.motions.formats.amass import read_amass
from asap_core.motions.robot import RobotMotion
from asap_core.retargeting.settings import RetargetSettings
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.screening.dynamics import GRAVITY
from asap_core.screening.faults import shifts, spoil_robot
from asap_core.screening.imitator.controller import Controller
from asap_core.screening.imitator.imitate import imitate
from asap_core.screening.imitator.plan import nearest_in_hull, plan_com
from asap_core.screening.imitator.reference import imitation_reference
from asap_core.screening.settings import ImitatorSettings, ScreenSettings
from tests.robot_motions import knee_bend

PROFILE = get_profile("g1_23dof")
SQUARE = np.array([[x, y, 0.0] for x in (-0.1, 0.1) for y in (-0.1, 0.1)])


@pytest.fixture
def bend() -> RobotMotion:
    motion = knee_bend(seconds=2.0)
    kinematics = Kinematics(PROFILE)
    poses = kinematics.forward(motion.root_pos, motion.root_quat, motion.joint_pos)
    lowest = kinematics.sole_points(poses)[..., 2].min(axis=(1, 2))
    return replace(motion, root_pos=motion.root_pos - np.stack([0 * lowest, 0 * lowest, lowest], axis=1))


def test_nearest_in_hull() -> None:
    square = SQUARE[:, :2]
    np.testing.assert_allclose(nearest_in_hull(square, np.array([0.03, -0.05])), [0.03, -0.05], atol=1e-4)
    np.testing.assert_allclose(nearest_in_hull(square, np.array([0.5, 0.0])), [0.1, 0.0], atol=1e-3)


def test_plan_leaves_a_balanced_clip_alone() -> None:
    com = np.tile([0.02, -0.01, 0.7], (50, 1))
    plan = plan_com(com, np.tile(SQUARE, (50, 1, 1)), np.ones((50, 4), bool), 50.0)
    np.testing.assert_allclose(plan, com, atol=1e-4)


def test_plan_brings_a_clip_beside_its_feet_over_them() -> None:
    com = np.tile([0.3, 0.0, 0.7], (100, 1))
    plan = plan_com(com, np.tile(SQUARE, (100, 1, 1)), np.ones((100, 4), bool), 50.0)
    assert (plan[20:-20, 0] < 0.12).all()
    np.testing.assert_allclose(plan[:, 1], 0.0, atol=1e-3)


def test_plan_falls_freely_in_flight() -> None:
    times = np.arange(100) / 50.0
    bears = np.ones((100, 4), bool)
    bears[40:60] = False
    com = np.stack([0 * times, 0 * times, 0.7 + 0.1 * np.exp(-(((times - 1.0) / 0.15) ** 2))], axis=1)
    plan = plan_com(com, np.tile(SQUARE, (100, 1, 1)), bears, 50.0)
    second = np.diff(plan[:, 2], 2) * 50.0**2
    np.testing.assert_allclose(second[42:56], -GRAVITY, rtol=0.02)
    np.testing.assert_allclose(np.diff(plan[:, :2], 2, axis=0)[42:56] * 50.0**2, 0.0, atol=1e-2)


def test_a_knee_bend_is_followed_without_any_help(bend: RobotMotion) -> None:
    result = imitate(bend, PROFILE, ImitatorSettings(root_force=0.0), PhysicsSettings())
    assert result.passed
    assert result.root_force < 1e-9
    assert result.mean_error < 0.03


@pytest.mark.parametrize("fault", ["float", "slide", "teleport"])
def test_what_no_robot_can_do_is_not_followed(fault: str, bend: RobotMotion) -> None:
    settings = ImitatorSettings()
    result = imitate(spoil_robot(bend, fault), PROFILE, settings, PhysicsSettings())
    assert not result.passed
    assert result.share < 1.0
    verdict = result.verdict(settings)
    assert verdict.rules >= {"imitation"}
    assert "m off in the mean, limit 0.30 m" in verdict.reasons[0].text()


def test_torques_and_residual_stay_in_their_bounds(bend: RobotMotion, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = []
    solve = Controller.solve

    def spy(self: Controller, *args: object) -> object:
        commands.append(solve(self, *args))  # type: ignore[arg-type]
        return commands[-1]

    monkeypatch.setattr(Controller, "solve", spy)
    imitate(spoil_robot(bend, "teleport"), PROFILE, ImitatorSettings(root_force=0.05), PhysicsSettings())
    mass = float(build_model(PROFILE, PhysicsSettings()).body_mass.sum())
    assert max(np.abs(c.torque / PROFILE.joint_torque_limit).max() for c in commands) <= 1 + 1e-6
    assert max(np.abs(c.wrench[:3]).max() for c in commands) <= 0.05 * mass * GRAVITY * (1 + 1e-6)


def test_standing_torque_of_the_controller_holds_the_robot_still(bend: RobotMotion) -> None:
    """One step at rest in a balanced pose: the whole weight on the feet, hardly an acceleration."""
    still = replace(
        bend,
        root_pos=np.tile(bend.root_pos[0], (60, 1)),
        root_quat=bend.root_quat[:60],
        joint_pos=np.tile(bend.joint_pos[0], (60, 1)),
    )
    result = imitate(still, PROFILE, ImitatorSettings(root_force=0.0), PhysicsSettings())
    assert result.passed
    assert result.worst_error < 0.02


def test_two_runs_are_equal(bend: RobotMotion) -> None:
    first, second = (imitate(bend, PROFILE, ImitatorSettings(), PhysicsSettings()) for _ in range(2))
    np.testing.assert_array_equal(first.error, second.error)


def test_retargeting_does_not_hide_a_float_or_a_depth(repo_root: Path) -> None:
    motion = read_amass(repo_root / "data/human/squat.npz")
    settings = ScreenSettings()

    def height(by: float) -> float:
        moved = replace(motion, root_translation=motion.root_translation + np.array([0.0, 0.0, by]))
        return float(imitation_reference(moved, PROFILE, RetargetSettings(), settings).root_pos[0, 2])

    base = height(0.0)
    assert height(0.05) == pytest.approx(base, abs=1e-6)  # a ground error that the screen forgives too
    assert 0.3 < height(0.5) - base < 0.5
    assert -0.1 < height(-0.1) - base < -0.06
    assert shifts("float")(motion).root_translation[0, 2] == pytest.approx(motion.root_translation[0, 2] + 0.5)
