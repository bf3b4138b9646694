from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from asap_core.banded import BandedSystem
from asap_core.motions.formats.amass import read_amass
from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import INDEX
from asap_core.retargeting.proportions import robot_skeleton
from asap_core.retargeting.retarget import retarget, retarget_figures
from asap_core.retargeting.settings import RetargetSettings
from asap_core.retargeting.solver import solve
from asap_core.retargeting.targets import Targets
from asap_core.retargeting.trajectory import Trajectory
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.rotations import quat_conj, quat_mul, quat_to_rotvec, rotvec_to_quat, slerp

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
    none = np.zeros(0, dtype=np.intp)
    contact = np.zeros((frames, *PROFILE.sole_points.shape[:2]))
    targets = Targets(30.0, root, links, truth.pos[:, links], none, np.zeros((frames, 0, 4)), np.zeros(0), contact)
    still = np.tile(PROFILE.default_joint_pos, (frames, 1))
    start = Trajectory(root + 0.2, np.tile([1.0, 0, 0, 0], (frames, 1)), still)
    free = SETTINGS.model_copy(update={"smoothness": 0.01, "posture": 1e-3, "iterations": 40, "tolerance": 1e-5})
    found = solve(kinematics, targets, start, free)
    poses = kinematics.forward(found.root_pos, found.root_quat, found.joint_pos)
    assert np.linalg.norm(poses.pos[:, links] - truth.pos[:, links], axis=-1).max() < 3e-3


@pytest.mark.parametrize("name", ["squat", "side_step", "kick"])
def test_own_motions_come_out_standing_smooth_and_within_limits(name: str, repo_root: Path) -> None:
    human = read_amass(repo_root / f"data/human/{name}.npz")
    motion = retarget(human, PROFILE, SETTINGS)
    assert (motion.num_frames, motion.fps, motion.source) == (human.num_frames, human.fps, human.source)
    assert motion.joint_names == PROFILE.joint_names
    assert (motion.joint_pos >= PROFILE.joint_lower).all()
    assert (motion.joint_pos <= PROFILE.joint_upper).all()
    figures = retarget_figures(human, motion, PROFILE, SETTINGS)
    assert figures["link_error_mm"] < 6
    assert figures["skate_mm_per_frame"] < 0.2
    assert figures["sole_height_mm"] < 2.5
    assert figures["penetration_mm"] < 0.5
    assert figures["max_joint_speed"] < 5
    assert figures["jerk"] < 15
    assert figures["limit_violations"] == 0


def test_result_repeats_to_the_bit(repo_root: Path) -> None:
    human = read_amass(repo_root / "data/human/kick.npz")
    first, second = (retarget(human, PROFILE, SETTINGS) for _ in range(2))
    np.testing.assert_array_equal(first.joint_pos, second.joint_pos)
    np.testing.assert_array_equal(first.root_pos, second.root_pos)


def test_where_the_clip_floats_or_stands_makes_no_difference(repo_root: Path) -> None:
    human = read_amass(repo_root / "data/human/squat.npz")
    moved = replace(human, root_translation=human.root_translation + np.array([0.0, 0.0, 0.1]))
    np.testing.assert_allclose(
        retarget(moved, PROFILE, SETTINGS).root_pos, retarget(human, PROFILE, SETTINGS).root_pos, atol=1e-6
    )


@pytest.mark.parametrize("yaw", [0.7, 2.0, np.pi])
def test_which_way_the_person_faces_makes_no_difference(yaw: float, repo_root: Path) -> None:
    human = read_amass(repo_root / "data/human/kick.npz")
    turn = rotvec_to_quat(np.array([0.0, 0.0, yaw]))
    spin = Rotation.from_rotvec([0.0, 0.0, yaw])
    rotations = human.joint_rotations.copy()
    rotations[:, 0] = (spin * Rotation.from_rotvec(rotations[:, 0])).as_rotvec()
    turned = replace(human, joint_rotations=rotations, root_translation=spin.apply(human.root_translation))
    there, here = retarget(turned, PROFILE, SETTINGS), retarget(human, PROFILE, SETTINGS)
    np.testing.assert_allclose(there.joint_pos, here.joint_pos, atol=1e-6)
    np.testing.assert_allclose(there.root_pos[:, 2], here.root_pos[:, 2], atol=1e-6)
    off = quat_mul(quat_conj(quat_mul(turn, here.root_quat)), there.root_quat)
    assert np.abs(quat_to_rotvec(off)).max() < 1e-6


def test_hard_limits_hold_where_a_person_bends_further(repo_root: Path) -> None:
    human = read_amass(repo_root / "data/human/squat.npz")
    rotations = human.joint_rotations.copy()
    rotations[:, INDEX["L_Elbow"], 1] = -2.9
    motion = retarget(replace(human, joint_rotations=rotations), PROFILE, SETTINGS)
    elbow = motion.joint_pos[:, PROFILE.joint_index("left_elbow_joint")]
    lower = PROFILE.joint_lower[PROFILE.joint_index("left_elbow_joint")]
    assert elbow.min() == pytest.approx(lower, abs=1e-6)


def test_joints_turn_no_faster_than_they_can(repo_root: Path) -> None:
    """A robot whose joints turn at 2 rad/s at most keeps to it in a kick, which without the term needs more."""
    human = read_amass(repo_root / "data/human/kick.npz")
    slow = replace(PROFILE, joint_velocity_limit=np.full(PROFILE.num_joints, 2.0))
    settings = SETTINGS.model_copy(update={"iterations": 8})
    loose = settings.model_copy(update={"speed_limit": 0.0})
    held, free = (np.abs(np.diff(retarget(human, slow, s).joint_pos, axis=0)).max() * 30.0 for s in (settings, loose))
    assert free > 2.5
    assert held < 2.02


def _at_rate(human: HumanMotion, fps: float) -> HumanMotion:
    times = np.arange(human.num_frames) / human.fps
    at = np.arange(int(times[-1] * fps) + 1) / fps
    rotations = [quat_to_rotvec(slerp(rotvec_to_quat(r), times, at)) for r in human.joint_rotations.transpose(1, 0, 2)]
    root = np.stack([np.interp(at, times, column) for column in human.root_translation.T], axis=1)
    return replace(human, fps=fps, joint_rotations=np.stack(rotations, axis=1), root_translation=root)


@pytest.mark.parametrize("fps", [20.0, 60.0, 120.0, 29.97])
def test_any_rate_gives_the_same_motion(fps: float, repo_root: Path) -> None:
    human = read_amass(repo_root / "data/human/kick.npz")
    motion, usual = (retarget(_at_rate(human, rate), PROFILE, SETTINGS) for rate in (fps, 30.0))
    figures = retarget_figures(_at_rate(human, fps), motion, PROFILE, SETTINGS)
    assert motion.fps == fps
    assert figures["link_error_mm"] < 6
    assert figures["skate_mm_per_frame"] * fps / 30.0 < 0.3
    assert figures["penetration_mm"] < 1
    at, times = np.arange(usual.num_frames) / 30.0, np.arange(motion.num_frames) / fps
    inside = at <= times[-1]
    again = np.stack([np.interp(at[inside], times, column) for column in motion.joint_pos.T], axis=1)
    assert np.sqrt(np.mean((again - usual.joint_pos[inside]) ** 2)) < 0.02


def test_two_and_three_frames_are_enough(repo_root: Path) -> None:
    human = read_amass(repo_root / "data/human/squat.npz")
    for count in (2, 3):
        short = replace(
            human, joint_rotations=human.joint_rotations[:count], root_translation=human.root_translation[:count]
        )
        figures = retarget_figures(short, retarget(short, PROFILE, SETTINGS), PROFILE, SETTINGS)
        assert figures["link_error_mm"] < 10
        assert figures["penetration_mm"] < 1


def test_windows_give_what_the_whole_solve_gives(repo_root: Path) -> None:
    """Three clips one after the other (12 s), in windows of 3 s: within millimetres of the whole, and no seam."""
    parts = [read_amass(repo_root / f"data/human/{name}.npz") for name in ("squat", "kick", "squat")]
    human = replace(
        parts[0],
        joint_rotations=np.concatenate([part.joint_rotations for part in parts]),
        root_translation=np.concatenate([part.root_translation for part in parts]),
    )
    settings = SETTINGS.model_copy(update={"iterations": 8, "coarse_iterations": 12})
    whole = retarget(human, PROFILE, settings)
    pieces = retarget(human, PROFILE, settings.model_copy(update={"window": 3.0, "overlap": 1.0}))
    kinematics = Kinematics(PROFILE)
    there, here = (kinematics.forward(m.root_pos, m.root_quat, m.joint_pos).pos for m in (pieces, whole))
    apart = np.linalg.norm(there - here, axis=-1)
    assert apart.max() < 0.005
    assert apart.mean() < 0.001
    jerk = [np.abs(np.diff(m.joint_pos, 3, axis=0)).max() for m in (pieces, whole)]
    assert jerk[0] < 1.05 * jerk[1]


def test_squat_from_video_beats_the_published_retarget(shared_dir: Path) -> None:
    """Published: 2.84 mm skate and 73 mm sole height on average over the clips."""
    human = read_amass(shared_dir / "data/asap/smpl/video_squat_level1_filter_amass.npz")
    motion = retarget(human, PROFILE, SETTINGS)
    figures = retarget_figures(human, motion, PROFILE, SETTINGS)
    assert figures["link_error_mm"] < 20
    assert figures["skate_mm_per_frame"] < 0.8
    assert figures["sole_height_mm"] < 2.5
    assert figures["penetration_mm"] < 2
    assert np.ptp(motion.root_pos[:, 2]) > 0.12


def test_forearms_that_hang_at_zero_do_not_bend_the_person_backwards() -> None:
    """A robot whose elbows are turned by 90 degrees at zero has the skeleton of the one whose are not."""
    turned = [
        replace(link, quat=(0.5**0.5, 0.0, 0.5**0.5, 0.0)) if link.name.endswith("elbow_link") else link
        for link in PROFILE.links
    ]
    hanging = robot_skeleton(replace(PROFILE, links=tuple(turned)))
    np.testing.assert_allclose(hanging, robot_skeleton(PROFILE), atol=1e-3)


def test_memory_is_that_of_a_window(repo_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a clip of a minute, no system of equations has more frames than a window and a half."""
    squat = read_amass(repo_root / "data/human/squat.npz")
    times = 1 + 1800 // squat.num_frames
    human = replace(
        squat,
        joint_rotations=np.tile(squat.joint_rotations, (times, 1, 1)),
        root_translation=np.tile(squat.root_translation, (times, 1)),
    )
    frames = []
    solve_system = BandedSystem.solve

    def recorded(system: BandedSystem) -> np.ndarray:
        frames.append(len(system.gradient))
        return solve_system(system)

    monkeypatch.setattr(BandedSystem, "solve", recorded)
    settings = SETTINGS.model_copy(update={"window": 10.0, "coarse_iterations": 2, "iterations": 1})
    motion = retarget(human, PROFILE, settings)
    assert motion.num_frames == human.num_frames > 1800
    assert 300 <= max(frames) <= 450 + 2
