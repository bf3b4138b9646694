"""Delays within a control step, robots of several physics in one simulator, and drives that are not linear."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.errors import UnknownNameError
from asap_core.robots import get_profile
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.drive_law import DriveLaw
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.simulators.target_delay import TargetDelay
from tests.simulators.test_mujoco import standing

PROFILE = get_profile("g1_23dof")


def obeyed(delay_s: float, targets: list[float], past: list[float] | None = None, start: float = 0.0) -> list[float]:
    """The target of each 5 ms step of control steps of 20 ms."""
    delay = TargetDelay([PhysicsSettings(action_delay_s=delay_s)], 1)
    before = None if past is None else np.array(past)[None, :, None]
    delay.refill(np.array([0]), np.array([[start]]), before)
    out: list[float] = []
    for target in targets:
        for value, steps in delay.runs(np.array([[target]])):
            out += [float(value[0, 0])] * steps
    return out


@pytest.mark.parametrize(
    ("delay_s", "expected"),
    [
        (0.0, [1, 1, 1, 1, 2, 2, 2, 2]),
        (0.005, [0, 1, 1, 1, 1, 2, 2, 2]),
        (0.0025, [0.5, 1, 1, 1, 1.5, 2, 2, 2]),
        (0.0175, [0, 0, 0, 0.5, 1, 1, 1, 1.5]),
        (0.02, [0, 0, 0, 0, 1, 1, 1, 1]),
        (0.03, [0, 0, 0, 0, 0, 0, 1, 1]),
    ],
)
def test_targets_come_late_by_any_time(delay_s: float, expected: list[float]) -> None:
    assert obeyed(delay_s, [1.0, 2.0]) == pytest.approx(expected)


def test_the_past_may_be_told() -> None:
    assert obeyed(0.04, [1.0], past=[7.0, 8.0, 9.0], start=5.0) == [8.0] * 4
    assert obeyed(0.04, [1.0, 1.0], past=[9.0], start=5.0) == [5.0] * 4 + [9.0] * 4


def test_robots_of_several_physics_step_as_each_alone() -> None:
    kinds = [
        PhysicsSettings(),
        PhysicsSettings(strength={"knee": 0.8}, action_delay_s=0.0125),
        PhysicsSettings(
            frictionloss_of={"ankle": 0.5}, armature_of={"hip": 0.03}, com_offset={"torso_link": (0.02, 0, 0)}
        ),
    ]
    targets = PROFILE.default_joint_pos + np.random.default_rng(0).normal(0, 0.1, (8, 1, 23))
    together = MujocoSimulator(PROFILE, kinds, 3)
    together.set_state(np.arange(3), standing(3))
    for target in targets:
        together.step(np.repeat(target, 3, axis=0))
    for n, physics in enumerate(kinds):
        alone = MujocoSimulator(PROFILE, physics, 1)
        alone.set_state(np.arange(1), standing(1))
        for target in targets:
            alone.step(target)
        np.testing.assert_allclose(together.state.joint_pos[n], alone.state.joint_pos[0], atol=1e-8)
        np.testing.assert_allclose(together.joint_torque()[n], alone.joint_torque()[0], atol=1e-5)


def test_robots_of_one_simulator_share_their_time_steps() -> None:
    with pytest.raises(ValueError, match="share physics_dt"):
        MujocoSimulator(PROFILE, [PhysicsSettings(), PhysicsSettings(physics_dt=0.002)], 2)


def test_values_of_single_joints_and_links_reach_the_model() -> None:
    physics = PhysicsSettings(
        armature_of={"hip": 0.02, "hip_yaw": 0.04},
        damping_of={"knee": 0.3},
        com_offset={"torso_link": (0.01, 0.0, -0.02)},
    )
    model, nominal = build_model(PROFILE, physics), build_model(PROFILE, PhysicsSettings())
    armature = dict(zip(PROFILE.joint_names, model.dof_armature[6:], strict=True))
    assert armature["left_hip_pitch_joint"] == 0.02
    assert armature["right_hip_yaw_joint"] == 0.04
    assert armature["left_knee_joint"] == 0.01
    damping = dict(zip(PROFILE.joint_names, model.dof_damping[6:], strict=True))
    assert (damping["right_knee_joint"], damping["right_elbow_joint"]) == (0.3, 0.0)
    torso = model.body("torso_link").id
    np.testing.assert_allclose(model.body_ipos[torso] - nominal.body_ipos[torso], [0.01, 0, -0.02], atol=1e-12)


@pytest.mark.parametrize("field", ["armature_of", "damping_of", "frictionloss_of", "com_offset", "backlash"])
def test_unknown_names_are_refused(field: str) -> None:
    value = (0.0, 0.0, 0.0) if field == "com_offset" else 0.1
    with pytest.raises(UnknownNameError, match=field):
        MujocoSimulator(PROFILE, PhysicsSettings.model_validate({field: {"tail": value}}), 1)


def torque_of(physics: PhysicsSettings, error: float, speed: float, joint: str) -> float:
    """What a linear drive gives under the law's target."""
    law = DriveLaw.of(PROFILE, [physics])
    assert law is not None
    pos, vel = np.zeros((1, 23)), np.full((1, 23), speed)
    index = PROFILE.joint_names.index(joint)
    target = law(pos + error, pos, vel)[0, index]
    return float(PROFILE.kp[index] * target - PROFILE.kd[index] * speed)


def test_play_is_slack_in_the_spring() -> None:
    physics = PhysicsSettings(backlash={"ankle": 0.1})
    assert torque_of(physics, 0.04, 0.0, "left_ankle_pitch_joint") == pytest.approx(0.0)
    assert torque_of(physics, -0.15, 0.0, "left_ankle_pitch_joint") == pytest.approx(-20 * 0.10)
    assert torque_of(physics, 0.04, 0.0, "left_knee_joint") == pytest.approx(200 * 0.04)


def test_torque_falls_with_speed() -> None:
    physics = PhysicsSettings(no_load_speed={"knee": 10.0})
    assert torque_of(physics, 2.0, 0.0, "left_knee_joint") == pytest.approx(139.0)
    assert torque_of(physics, 2.0, 5.0, "left_knee_joint") == pytest.approx(69.5)
    assert torque_of(physics, 2.0, 20.0, "left_knee_joint") == pytest.approx(0.0)
    assert torque_of(physics, -2.0, 5.0, "left_knee_joint") == pytest.approx(-139.0)


def test_linear_drives_need_no_law() -> None:
    assert DriveLaw.of(PROFILE, [PhysicsSettings()]) is None
