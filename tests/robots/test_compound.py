"""Welded bodies joined to their links, and the USD scene: no engine is needed to see that they are right."""

from __future__ import annotations

import re
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from asap_core.robots import get_profile
from asap_core.robots.compound import carriers, compound_inertials
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import Link, RobotProfile
from asap_core.robots.usd import joint_prims, link_prims, scene_usda

PROFILE = get_profile("g1_23dof")
ALTERED = PhysicsSettings(added_mass={"left_elbow_link": 1.5}, com_offset={"torso_link": (0.01, 0.02, -0.03)})


def without_welds(profile: RobotProfile, physics: PhysicsSettings) -> RobotProfile:
    """The robot with what is welded to each link counted in, and `physics` in its masses."""

    def joined(link: Link) -> Link:
        inertial = compound_inertials(profile, physics)[link.name]
        moments, axes = np.linalg.eigh(inertial.inertia)
        axes[:, 0] *= np.sign(np.linalg.det(axes))
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, axes.reshape(9))
        return replace(
            link, mass=inertial.mass, com=tuple(inertial.com), inertia_quat=tuple(quat), inertia=tuple(moments)
        )

    return replace(profile, links=tuple(joined(link) for link in profile.links), fixed_links=())


def mass_matrix(model: mujoco.MjModel, seed: int) -> np.ndarray:
    data = mujoco.MjData(model)
    data.qpos[7:] = np.random.default_rng(seed).uniform(-0.5, 0.5, model.nq - 7)
    mujoco.mj_forward(model, data)
    columns = np.zeros((model.nv, model.nv))
    for row, unit in zip(columns, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, row, unit)
    return columns


@pytest.mark.parametrize("physics", [PhysicsSettings(), ALTERED], ids=["nominal", "altered"])
def test_compound_links_have_the_mass_matrix_of_the_welded_robot(physics):
    """MuJoCo joins welded bodies itself: same inertia in every direction of motion."""
    whole = build_model(PROFILE, physics)
    joined = build_model(without_welds(PROFILE, physics), PhysicsSettings())
    for seed in range(3):
        np.testing.assert_allclose(mass_matrix(joined, seed), mass_matrix(whole, seed), atol=1e-9)


def test_carriers_of_a_chain_of_welds():
    """The left hand's last wrist link lies 0.1 + 0.038 + 0.046 m before its elbow, which carries all three."""
    at = carriers(PROFILE)["left_wrist_yaw_link"]
    assert at.link == "left_elbow_link"
    np.testing.assert_allclose(at.pos, [0.184, 0.00188791, -0.01], atol=1e-12)


def test_scene_names_every_link_and_joint_once_and_gives_every_joint_a_drive():
    text = scene_usda(PROFILE, PhysicsSettings())
    for prim in (*link_prims(PROFILE), *joint_prims(PROFILE)):
        assert text.count(f'"{prim}"') == 1
    assert text.count("PhysicsDriveAPI:angular") == text.count("def PhysicsRevoluteJoint") == PROFILE.num_joints
    assert text.count("PhysicsArticulationRootAPI") == 1
    assert text.count("{") == text.count("}")


def test_prims_of_links_whose_names_usd_does_not_allow():
    first, second, *rest = PROFILE.links
    odd = replace(PROFILE, links=(replace(first, name="base.link-1"), replace(second, parent="base.link-1"), *rest))
    assert link_prims(odd)[0] == "link0_base_link_1"
    assert len(set(link_prims(odd)) & set(joint_prims(odd))) == 0
    assert all(re.fullmatch(r"[A-Za-z]\w*", prim) for prim in (*link_prims(odd), *joint_prims(odd)))
