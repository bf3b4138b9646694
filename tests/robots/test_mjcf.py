"""The compiled model against the profile, the settings and the published model."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import mujoco
import numpy as np
import pytest

from asap_core.errors import ConfigError, UnknownNameError
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings

PROFILE = get_profile("g1_23dof")


@pytest.fixture(scope="module")
def nominal() -> mujoco.MjModel:
    return build_model(PROFILE, PhysicsSettings())


@pytest.fixture(scope="module")
def published(shared_dir: Path) -> mujoco.MjModel:
    path = shared_dir / "data/asap/robot/g1_29dof_anneal_23dof.xml"
    if not path.exists():
        pytest.skip(f"shared data absent: {path}")
    root = ET.parse(path).getroot()
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == "mesh" or (child.tag == "geom" and child.get("type") == "mesh"):
                parent.remove(child)
    return mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))


def standing_state(model: mujoco.MjModel) -> mujoco.MjData:
    """Default pose with both soles on the floor, drives holding it."""
    poses = Kinematics(PROFILE).forward(np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]), PROFILE.default_joint_pos[None])
    height = -Kinematics(PROFILE).sole_points(poses)[..., 2].min()
    data = mujoco.MjData(model)
    data.qpos[:] = np.r_[0, 0, height, 1, 0, 0, 0, PROFILE.default_joint_pos]
    data.ctrl[:] = PROFILE.default_joint_pos
    return data


def composite_inertia(model: mujoco.MjModel, joint_pos: np.ndarray) -> np.ndarray:
    """Inertia tensor (3, 3) of all bodies about the common centre of mass, world frame."""
    data = mujoco.MjData(model)
    data.qpos[:] = np.r_[0, 0, 0, 1, 0, 0, 0, joint_pos]
    mujoco.mj_kinematics(model, data)
    mass, com = model.body_mass, data.xipos
    arm = com - (mass[:, None] * com).sum(axis=0) / mass.sum()
    rot = data.ximat.reshape(-1, 3, 3)
    own = np.einsum("bij,bj,bkj->ik", rot, model.body_inertia, rot)
    square = np.einsum("b,bk,bk->", mass, arm, arm)
    return own + square * np.eye(3) - np.einsum("b,bi,bj->ij", mass, arm, arm)


def test_state_layout(nominal: mujoco.MjModel) -> None:
    assert (nominal.nq, nominal.nv, nominal.nu) == (30, 29, 23)
    assert nominal.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    assert tuple(nominal.joint(i + 1).name for i in range(23)) == PROFILE.joint_names
    assert tuple(nominal.actuator(i).name for i in range(23)) == PROFILE.joint_names
    np.testing.assert_array_equal(nominal.actuator_trnid[:, 0], np.arange(1, 24))


def test_drives_hold_gains_and_limits(nominal: mujoco.MjModel) -> None:
    np.testing.assert_allclose(nominal.actuator_gainprm[:, 0], PROFILE.kp)
    np.testing.assert_allclose(nominal.actuator_biasprm[:, 1], -PROFILE.kp)
    np.testing.assert_allclose(nominal.actuator_biasprm[:, 2], -PROFILE.kd)
    torque = PROFILE.joint_torque_limit
    np.testing.assert_allclose(nominal.actuator_forcerange, np.stack([-torque, torque], axis=1))
    np.testing.assert_allclose(nominal.jnt_range[1:], np.stack([PROFILE.joint_lower, PROFILE.joint_upper], axis=1))
    assert nominal.jnt_limited[1:].all()
    assert not nominal.actuator_ctrllimited.any()


def test_drive_torque_is_clipped_pd(nominal: mujoco.MjModel) -> None:
    rng = np.random.default_rng(1)
    data = mujoco.MjData(nominal)
    data.qpos[2] = 2.0
    data.qvel[6:] = rng.normal(size=23)
    data.ctrl[:] = rng.normal(size=23)
    mujoco.mj_forward(nominal, data)
    torque = PROFILE.kp * (data.ctrl - data.qpos[7:]) - PROFILE.kd * data.qvel[6:]
    limit = PROFILE.joint_torque_limit
    assert (np.abs(torque) > limit).any()
    np.testing.assert_allclose(data.qfrc_actuator[6:], np.clip(torque, -limit, limit), atol=1e-9)


def test_settings_reach_the_model() -> None:
    physics = PhysicsSettings(physics_dt=0.002, armature=0.03, damping=0.05, frictionloss=0.2, friction=0.7)
    model = build_model(PROFILE, physics)
    assert model.opt.timestep == 0.002
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for values, expected in ((model.dof_armature, 0.03), (model.dof_damping, 0.05), (model.dof_frictionloss, 0.2)):
        np.testing.assert_array_equal(values[6:], expected)
        np.testing.assert_array_equal(values[:6], 0.0)
    np.testing.assert_array_equal(model.geom_friction[:, 0], 0.7)


def test_strength_scales_matching_drives(nominal: mujoco.MjModel) -> None:
    model = build_model(PROFILE, PhysicsSettings(strength={"ankle": 0.6, "left_ankle_roll": 0.5}))
    factor = np.ones(23)
    factor[[4, 5, 10, 11]] = 0.6
    factor[5] *= 0.5
    np.testing.assert_allclose(model.actuator_gainprm[:, 0], PROFILE.kp * factor)
    np.testing.assert_allclose(model.actuator_biasprm[:, 2], -PROFILE.kd * factor)
    np.testing.assert_allclose(model.actuator_forcerange[:, 1], PROFILE.joint_torque_limit * factor)


def test_strength_that_matches_nothing_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"'knees' matches no joint.*left_knee_joint"):
        build_model(PROFILE, PhysicsSettings(strength={"knees": 0.5}))


def test_added_mass_sits_at_the_link_centre(nominal: mujoco.MjModel) -> None:
    model = build_model(PROFILE, PhysicsSettings(added_mass={"torso_link": 2.5, "pelvis": -0.5}))
    difference = dict(
        zip([model.body(i).name for i in range(model.nbody)], model.body_mass - nominal.body_mass, strict=True)
    )
    assert {name: pytest.approx(kg) for name, kg in difference.items() if kg} == {"torso_link": 2.5, "pelvis": -0.5}
    np.testing.assert_array_equal(model.body_ipos, nominal.body_ipos)
    np.testing.assert_array_equal(model.body_inertia, nominal.body_inertia)


def test_added_mass_on_no_link_or_beyond_it_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="torso_link"):
        build_model(PROFILE, PhysicsSettings(added_mass={"torso": 1.0}))
    with pytest.raises(ConfigError, match=r"added_mass\['torso_link'\]"):
        build_model(PROFILE, PhysicsSettings(added_mass={"torso_link": -9.598}))


def test_total_mass(nominal: mujoco.MjModel) -> None:
    assert nominal.body_mass.sum() == pytest.approx(35.112142, abs=1e-9)


def test_inertials_equal_the_published(nominal: mujoco.MjModel, published: mujoco.MjModel) -> None:
    assert nominal.body_mass.sum() == pytest.approx(published.body_mass.sum(), abs=1e-9)
    rng = np.random.default_rng(2)
    for joint_pos in (PROFILE.default_joint_pos, rng.uniform(PROFILE.joint_lower, PROFILE.joint_upper)):
        found = composite_inertia(nominal, joint_pos)
        assert found[2, 2] > 0.1
        np.testing.assert_allclose(found, composite_inertia(published, joint_pos), atol=1e-9)


def test_limits_equal_the_published(nominal: mujoco.MjModel, published: mujoco.MjModel) -> None:
    for name in PROFILE.joint_names:
        np.testing.assert_allclose(nominal.joint(name).range, published.joint(name).range, atol=1e-12)
        torque_range = published.jnt_actfrcrange[published.joint(name).id]
        np.testing.assert_allclose(nominal.actuator(name).forcerange, torque_range, atol=1e-12)


def test_kinematics_equal_the_published(published: mujoco.MjModel) -> None:
    rng = np.random.default_rng(3)
    n = 20
    root_pos, root_quat = rng.normal(size=(n, 3)), rng.normal(size=(n, 4))
    root_quat /= np.linalg.norm(root_quat, axis=1, keepdims=True)
    joint_pos = rng.uniform(PROFILE.joint_lower, PROFILE.joint_upper, (n, 23))
    poses = Kinematics(PROFILE).forward(root_pos, root_quat, joint_pos)
    data = mujoco.MjData(published)
    bodies = [published.body(link.name).id for link in PROFILE.links]
    for i in range(n):
        data.qpos[:] = np.r_[root_pos[i], root_quat[i], joint_pos[i]]
        mujoco.mj_kinematics(published, data)
        np.testing.assert_allclose(poses.pos[i, :24], data.xpos[bodies], atol=1e-5)
        np.testing.assert_allclose(poses.rot[i, :24], data.xmat[bodies].reshape(-1, 3, 3), atol=1e-5)


@pytest.mark.parametrize("self_collision", [False, True])
def test_default_pose_touches_only_the_floor(self_collision: bool) -> None:
    model = build_model(PROFILE, PhysicsSettings(self_collision=self_collision))
    data = standing_state(model)
    data.qpos[2] -= 0.001
    mujoco.mj_forward(model, data)
    floor = model.geom("floor").id
    assert data.ncon == 8
    assert all(floor in (contact.geom1, contact.geom2) for contact in data.contact)
    touching = {model.body(model.geom_bodyid[max(contact.geom1, contact.geom2)]).name for contact in data.contact}
    assert touching == set(PROFILE.foot_links)


def test_hands_collide_only_if_self_collision() -> None:
    joint_pos = PROFILE.default_joint_pos.copy()
    for side, sign in (("left", 1), ("right", -1)):
        joint_pos[PROFILE.joint_index(f"{side}_shoulder_yaw_joint")] = -sign * 0.7
    found = {}
    for self_collision in (False, True):
        model = build_model(PROFILE, PhysicsSettings(self_collision=self_collision))
        data = mujoco.MjData(model)
        data.qpos[:] = np.r_[0, 0, 3.0, 1, 0, 0, 0, joint_pos]
        mujoco.mj_forward(model, data)
        found[self_collision] = data.ncon
    assert found[False] == 0
    assert found[True] > 0


def test_stiffened_robot_stands_two_seconds() -> None:
    """At nominal gains the ankles (40 N m/rad) cannot hold the inverted pendulum (240 N m/rad) without a policy."""
    model = build_model(PROFILE, PhysicsSettings(strength={"ankle": 20, "hip": 3, "knee": 3}))
    data = standing_state(model)
    start = data.qpos[2]
    supported = []
    for _ in range(400):
        mujoco.mj_step(model, data)
        supported.append(data.qfrc_constraint[2])
    assert abs(data.qpos[2] - start) < 0.02
    assert 1 - 2 * (data.qpos[4] ** 2 + data.qpos[5] ** 2) > 0.99
    assert np.mean(supported[200:]) == pytest.approx(model.body_mass.sum() * 9.81, rel=0.03)


def test_nominal_robot_lies_on_the_floor_after_its_fall() -> None:
    model = build_model(PROFILE, PhysicsSettings())
    data = standing_state(model)
    for _ in range(800):
        mujoco.mj_step(model, data)
    assert np.isfinite(data.qpos).all()
    assert data.xpos[1:, 2].min() > 0.0
    assert data.qpos[2] < 0.3
    assert np.abs(data.qvel).max() < 1.0
