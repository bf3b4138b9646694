from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from asap_core.motions.formats.amass import read_amass
from asap_core.motions.human import HumanMotion
from asap_core.motions.robot import RobotMotion
from asap_core.motions.skeleton import INDEX
from asap_core.motions.tables import Source
from asap_core.retargeting.scorer import Reference, reference, score
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings

PROFILE = get_profile("g1_23dof")
KINEMATICS = Kinematics(PROFILE)
FPS, FRAMES = 30.0, 12
SOURCE = Source("made.npz", "0" * 64, "test")


def _gliding() -> RobotMotion:
    """The default pose carried 2 mm a frame along x, its soles 20 cm above the ground on average."""
    root, quat = np.zeros((FRAMES, 3)), np.tile([1.0, 0, 0, 0], (FRAMES, 1))
    joints = np.tile(PROFILE.default_joint_pos, (FRAMES, 1))
    root[:, 2] -= KINEMATICS.sole_points(KINEMATICS.forward(root, quat, joints))[..., 2].mean() - 0.2
    root[:, 0] = 0.002 * np.arange(FRAMES)
    return RobotMotion("made", PROFILE.name, FPS, root, quat, PROFILE.joint_names, joints, SOURCE)


def _beside(motion: RobotMotion, stands: np.ndarray) -> Reference:
    """Targets 1 cm beside the links of a motion."""
    links = PROFILE.link_indices(link for link, _ in PROFILE.correspondences)
    poses = KINEMATICS.forward(motion.root_pos, motion.root_quat, motion.joint_pos)
    return Reference(links, poses.pos[:, links] + [0.0, 0.01, 0.0], stands)


def test_figures_measure_what_they_say() -> None:
    motion = _gliding()
    figures = score(motion, KINEMATICS, _beside(motion, np.ones((FRAMES, 2, 2), dtype=bool)))
    assert figures["link_error_mm"] == pytest.approx(10.0)
    assert figures["skate_mm_per_frame"] == pytest.approx(2.0)
    assert figures["sole_height_mm"] == pytest.approx(200.0, abs=1e-6)
    assert figures["penetration_mm"] == figures["max_joint_speed"] == figures["jerk"] == 0.0


def test_only_the_part_of_the_foot_that_stands_counts() -> None:
    motion = _gliding()
    pitched = replace(motion, joint_pos=motion.joint_pos.copy())
    pitched.joint_pos[:, PROFILE.joint_index("left_ankle_pitch_joint")] += 0.3  # toes down, heel up
    soles = KINEMATICS.sole_points(KINEMATICS.forward(pitched.root_pos, pitched.root_quat, pitched.joint_pos))
    for part, rows in ((0, [0, 1]), (1, [2, 3])):
        stands = np.zeros((FRAMES, 2, 2), dtype=bool)
        stands[3:, 0, part] = True
        figures = score(pitched, KINEMATICS, _beside(pitched, stands))
        assert figures["sole_height_mm"] == pytest.approx(1e3 * soles[3:, 0, rows, 2].mean(), rel=1e-9)


def test_depth_speed_jerk_and_limits() -> None:
    motion = _gliding()
    root, joints = motion.root_pos - [0, 0, 0.25], motion.joint_pos.copy()
    knee = PROFILE.joint_index("left_knee_joint")
    joints[:, knee] = PROFILE.joint_upper[knee] + 0.1 - 0.01 * np.arange(FRAMES) ** 3 / FRAMES
    moved = replace(motion, root_pos=root, joint_pos=joints)
    figures = score(moved, KINEMATICS, _beside(moved, np.zeros((FRAMES, 2, 2), dtype=bool)))
    soles = KINEMATICS.sole_points(KINEMATICS.forward(root, moved.root_quat, joints))
    assert figures["penetration_mm"] == pytest.approx(-1e3 * soles[..., 2].min())
    assert figures["jerk"] == pytest.approx(0.06 / FRAMES * FPS**3 / PROFILE.num_joints)
    assert figures["max_joint_speed"] == pytest.approx(0.01 * (11**3 - 10**3) / FRAMES * FPS)
    assert figures["limit_violations"] == (joints[:, knee] > PROFILE.joint_upper[knee]).sum()
    assert figures["skate_mm_per_frame"] == figures["sole_height_mm"] == 0.0


def test_its_kinematics_are_mujocos() -> None:
    model = build_model(PROFILE, PhysicsSettings())
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    quat = rng.normal(size=4)
    root, quat, joints = rng.normal(size=3), quat / np.linalg.norm(quat), 0.5 * rng.normal(size=PROFILE.num_joints)
    data.qpos[:] = np.concatenate([root, quat, joints])
    mujoco.mj_kinematics(model, data)
    poses = KINEMATICS.forward(root[None], quat[None], joints[None])
    bodies = {link.name: (link.name, np.zeros(3)) for link in PROFILE.links}
    bodies |= {point.name: (point.parent, np.array(point.offset)) for point in PROFILE.virtual_links}
    for link, _ in PROFILE.correspondences:
        name, offset = bodies[link]
        place = data.body(name).xpos + data.body(name).xmat.reshape(3, 3) @ offset
        np.testing.assert_allclose(poses.pos[0, PROFILE.link_index(link)], place, atol=1e-9)


def test_the_person_stands_at_its_ankles_height_wherever_the_clip_has_its_floor(repo_root: Path) -> None:
    human = read_amass(repo_root / "data/human/kick.npz")
    here = reference(human, PROFILE, 0.035)
    raised = replace(human, root_translation=human.root_translation + np.array([0.0, 0.0, 0.7]))
    there = reference(raised, PROFILE, 0.035)
    np.testing.assert_allclose(there.positions, here.positions, atol=1e-9)
    np.testing.assert_array_equal(there.stands, here.stands)
    ankle = [joint for _, joint in PROFILE.correspondences].index("L_Ankle")
    assert np.median(here.positions[:, ankle, 2]) == pytest.approx(0.035, abs=2e-3)


def test_a_kicking_foot_stands_before_and_after_but_not_in_the_air(repo_root: Path) -> None:
    human = read_amass(repo_root / "data/human/kick.npz")
    stands = reference(human, PROFILE, 0.035).stands
    level = human.joint_positions()[:, INDEX["R_Ankle"], 2]
    assert stands[:, 0].all()
    assert not stands[level > level[0] + 0.06, 1].any()
    assert stands[:20, 1].all()
    assert stands[-10:, 1].all()


def test_a_fast_foot_on_the_ground_does_not_stand() -> None:
    """A person that glides at 0.25 m/s stands, at 0.35 m/s it does not."""
    for speed, expected in ((0.25, True), (0.35, False)):
        root = np.outer(np.arange(FRAMES) / FPS * speed, [1.0, 0.0, 0.0]) + np.array([0.0, 0.0, 0.9])
        human = HumanMotion("made", FPS, np.zeros((FRAMES, 24, 3)), root, np.full((24, 3), -0.05), SOURCE)
        assert (reference(human, PROFILE, 0.035).stands == expected).all()
