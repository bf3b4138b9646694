from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap_core.motions.formats.amass import read_amass
from asap_core.motions.skeleton import INDEX
from asap_core.retargeting.figures import retarget_figures
from asap_core.retargeting.proportions import robot_skeleton
from asap_core.retargeting.retarget import retarget
from asap_core.retargeting.settings import RetargetSettings
from asap_core.retargeting.solver import Targets, Trajectory, solve
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.rotations import rotvec_to_quat

PROFILE = get_profile("g1_23dof")
SETTINGS = RetargetSettings()


def test_robot_skeleton_has_the_robots_bones() -> None:
    skeleton = robot_skeleton(PROFILE)
    poses = Kinematics(PROFILE).forward(np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]), np.zeros((1, PROFILE.num_joints)))
    link = {joint: name for name, joint in PROFILE.correspondences}
    place = {joint: poses.pos[0, PROFILE.link_index(name)] for joint, name in link.items()}
    for start, end in (("L_Hip", "L_Knee"), ("R_Knee", "R_Ankle"), ("L_Shoulder", "L_Elbow")):
        bone = np.linalg.norm(skeleton[INDEX[end]])
        assert bone == pytest.approx(np.linalg.norm(place[end] - place[start]), rel=1e-9)
    trunk = [INDEX[name] for name in ("Torso", "Spine", "Chest", "L_Thorax", "L_Shoulder")]
    left, up, forward = skeleton[trunk].sum(axis=0)
    np.testing.assert_allclose([forward, left, up], place["L_Shoulder"], atol=1e-9)


def test_solver_finds_a_robots_own_motion_again() -> None:
    """Links of a known smooth motion as targets: the links come back within a few millimetres, from a far start."""
    kinematics = Kinematics(PROFILE)
    frames = 20
    phase = np.linspace(0, 1, frames)[:, None]
    rng = np.random.default_rng(0)
    joints = PROFILE.default_joint_pos + 0.25 * np.sin(np.pi * phase) * rng.uniform(-1, 1, PROFILE.num_joints)
    joints = np.clip(joints, PROFILE.joint_lower, PROFILE.joint_upper)
    root = np.concatenate([0.1 * phase, 0 * phase, 1.2 + 0 * phase], axis=1)
    quat = rotvec_to_quat(np.concatenate([0 * phase, 0.1 * phase, 0.3 * phase], axis=1))
    truth = kinematics.forward(root, quat, joints)
    links = PROFILE.link_indices(name for name, _ in PROFILE.correspondences)
    targets = Targets(30.0, links, truth.pos[:, links], (), np.zeros((frames, 8)))
    still = np.tile(PROFILE.default_joint_pos, (frames, 1))
    start = Trajectory(root + 0.2, np.tile([1.0, 0, 0, 0], (frames, 1)), still)
    free = SETTINGS.model_copy(update={"smoothness": 0.01, "posture": 1e-3, "iterations": 40, "tolerance": 1e-5})
    found = solve(kinematics, targets, start, free)
    poses = kinematics.forward(found.root_pos, found.root_quat, found.joint_pos)
    assert np.linalg.norm(poses.pos[:, links] - truth.pos[:, links], axis=-1).max() < 3e-3


@pytest.mark.parametrize("name", ["squat", "side_step", "kick"])
def test_own_motions_come_out_standing_smooth_and_within_limits(name: str, repo_root: Path) -> None:
    human = read_amass(repo_root / f"data/human/{name}.npz")
    motion, figures = retarget(human, PROFILE, SETTINGS)
    assert (motion.num_frames, motion.fps, motion.source) == (human.num_frames, human.fps, human.source)
    assert motion.joint_names == PROFILE.joint_names
    assert (motion.joint_pos >= PROFILE.joint_lower).all()
    assert (motion.joint_pos <= PROFILE.joint_upper).all()
    assert figures["link_error_mm"] < 6
    assert figures["skate_mm_per_frame"] < 0.3
    assert figures["sole_height_mm"] < 2
    assert figures["penetration_mm"] < 1
    assert figures["max_joint_speed"] < 5
    assert figures["limit_violations"] == 0


def test_result_repeats_to_the_bit(repo_root: Path) -> None:
    human = read_amass(repo_root / "data/human/kick.npz")
    first, second = (retarget(human, PROFILE, SETTINGS)[0] for _ in range(2))
    np.testing.assert_array_equal(first.joint_pos, second.joint_pos)
    np.testing.assert_array_equal(first.root_pos, second.root_pos)


def test_where_the_clip_floats_or_stands_makes_no_difference(repo_root: Path) -> None:
    human = read_amass(repo_root / "data/human/squat.npz")
    moved = replace(human, root_translation=human.root_translation + np.array([0.0, 0.0, 0.1]))
    np.testing.assert_allclose(
        retarget(moved, PROFILE, SETTINGS)[0].root_pos, retarget(human, PROFILE, SETTINGS)[0].root_pos, atol=1e-6
    )


def test_hard_limits_hold_where_a_person_bends_further(repo_root: Path) -> None:
    human = read_amass(repo_root / "data/human/squat.npz")
    rotations = human.joint_rotations.copy()
    rotations[:, INDEX["L_Elbow"], 1] = -2.9
    motion, _ = retarget(replace(human, joint_rotations=rotations), PROFILE, SETTINGS)
    elbow = motion.joint_pos[:, PROFILE.joint_index("left_elbow_joint")]
    lower = PROFILE.joint_lower[PROFILE.joint_index("left_elbow_joint")]
    assert elbow.min() == pytest.approx(lower, abs=1e-6)


def test_figures_measure_what_they_say() -> None:
    """The default pose carried 2 mm a frame at 20 cm above its standing height, with targets 1 cm away."""
    kinematics = Kinematics(PROFILE)
    frames = 10
    root = np.zeros((frames, 3))
    quat = np.tile([1.0, 0, 0, 0], (frames, 1))
    joints = np.tile(PROFILE.default_joint_pos, (frames, 1))
    root[:, 2] -= kinematics.sole_points(kinematics.forward(root, quat, joints))[..., 2].mean() - 0.2
    root[:, 0] = 0.002 * np.arange(frames)
    links = np.array([3, 5], dtype=np.intp)
    targets = kinematics.forward(root, quat, joints).pos[:, links] + [0.0, 0.01, 0.0]
    figures = retarget_figures(kinematics, root, quat, joints, np.zeros((frames, 24, 3)), links, targets, 30.0)
    assert figures["link_error_mm"] == pytest.approx(10.0)
    assert figures["skate_mm_per_frame"] == pytest.approx(2.0)
    assert figures["sole_height_mm"] == pytest.approx(200.0, abs=1e-6)
    assert figures["penetration_mm"] == figures["max_joint_speed"] == figures["jerk"] == 0.0


def test_squat_from_video_beats_the_published_retarget(shared_dir: Path) -> None:
    """Published: 26.9 mm link error, 2.87 mm skate, 74 mm sole height on average over the release."""
    human = read_amass(shared_dir / "data/asap/smpl/video_squat_level1_filter_amass.npz")
    motion, figures = retarget(human, PROFILE, SETTINGS)
    assert figures["link_error_mm"] < 20
    assert figures["skate_mm_per_frame"] < 1.5
    assert figures["sole_height_mm"] < 3
    assert figures["penetration_mm"] < 5
    assert np.ptp(motion.root_pos[:, 2]) > 0.12
