"""What is said of a reference before anything is trained on it: constructed faults, and a torque by hand."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from asap_core.environments.effort import drive_load
from asap_core.environments.feasibility import Feasibility, feasibility
from asap_core.environments.reference import ReferenceMotion
from asap_core.environments.terminations import TerminationSettings
from asap_core.motions.formats.asap_pkl import read_asap_pkl
from asap_core.motions.robot import RobotMotion
from asap_core.robots import get_profile
from asap_core.robots.inverse_dynamics import robot_mass
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.rotations import rotvec_to_quat
from tests.robot_motions import knee_bend

PROFILE = get_profile("g1_23dof")
PHYSICS = PhysicsSettings()


def judged(motion: RobotMotion) -> Feasibility:
    return feasibility(ReferenceMotion.from_motion(motion, PROFILE, 0.02), PROFILE, TerminationSettings(), PHYSICS)


def changed(joint: str, angles: np.ndarray, motion: RobotMotion) -> RobotMotion:
    joint_pos = motion.joint_pos.copy()
    joint_pos[:, PROFILE.joint_index(joint)] = angles
    return replace(motion, joint_pos=joint_pos)


def worst(found: Feasibility, name: str) -> tuple[str, float, float, float]:
    """Joint, value, time and share of the joint with the largest value of a demand."""
    unit = next(demand.unit for demand in found.demands if demand.name == name)
    row = max(found.rows(), key=lambda row: row[f"{name} {unit}"])
    return str(row["joint"]), row[f"{name} {unit}"], row[f"{name} at s"], row[f"{name} share"]


def test_a_knee_bend_is_clear():
    found = judged(knee_bend())
    assert found.verdict == "clear"
    assert found.reasons == ()
    assert "is within the robot's limits: 0." in found.text()


def test_a_joint_beyond_its_limit_is_named_with_its_time_and_share():
    """The elbow at 2.3 rad, 0.2056 beyond 2.0944, in the last 11 of 51 frames."""
    motion = knee_bend()
    angles = np.where(np.arange(motion.num_frames) >= 40, 2.3, 2.0)
    found = judged(changed("left_elbow_joint", angles, motion))
    assert worst(found, "position") == ("left_elbow_joint", pytest.approx(2.3 - 2.0944), 0.8, pytest.approx(11 / 51))
    assert found.verdict == "warned"
    assert found.reasons[0].startswith("position: 0.21 rad beyond its limit (left_elbow_joint at 0.80 s), 22% of the")


def test_a_motion_that_is_mostly_beyond_a_limit_is_refused():
    motion = knee_bend()
    found = judged(changed("left_elbow_joint", np.full(motion.num_frames, 2.3), motion))
    assert found.verdict == "refused"


def test_a_jump_of_a_joint_is_named_by_its_speed():
    """1 rad in one frame of 0.02 s is 50 rad/s, 50/37 of the elbow's limit."""
    motion = knee_bend()
    found = judged(changed("right_elbow_joint", np.where(np.arange(motion.num_frames) >= 25, 1.0, 0.0), motion))
    assert worst(found, "speed") == ("right_elbow_joint", pytest.approx(50 / 37), 0.48, pytest.approx(1 / 51))


def test_a_lying_start_is_refused_and_says_why():
    motion = knee_bend()
    lying = replace(motion, root_quat=np.tile(rotvec_to_quat(np.array([0.0, 1.9, 0.0])), (motion.num_frames, 1)))
    found = judged(lying)
    assert found.verdict == "refused"
    assert "would end at step 0: pelvis tilt 0.95 > 0.80" in found.text()


def test_a_speed_that_is_no_number_is_refused_without_torques():
    reference = ReferenceMotion.from_motion(knee_bend(), PROFILE, 0.02)
    speed = reference.state.joint_vel.copy()
    speed[0, 3] = np.nan
    broken = replace(reference, state=replace(reference.state, joint_vel=speed))
    assert feasibility(broken, PROFILE, TerminationSettings(), PHYSICS).verdict == "refused"


def still(joint_pos: np.ndarray, frames: int = 11) -> ReferenceMotion:
    """A pose with its lowest sole point on the ground."""
    poses = Kinematics(PROFILE).forward(np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]), joint_pos[None])
    height = -Kinematics(PROFILE).sole_points(poses)[..., 2].min()
    source = knee_bend()
    motion = replace(
        source,
        root_pos=np.tile([0.0, 0.0, height], (frames, 1)),
        root_quat=np.tile([1.0, 0.0, 0.0, 0.0], (frames, 1)),
        joint_pos=np.tile(joint_pos, (frames, 1)),
    )
    return ReferenceMotion.from_motion(motion, PROFILE, 0.02)


def height_of_mass(joint_pos: np.ndarray) -> float:
    """Of the whole robot's centre of mass over its root, m, by MuJoCo's forward kinematics."""
    model = build_model(PROFILE, PHYSICS)
    data = mujoco.MjData(model)
    data.qpos[:] = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, *joint_pos]
    mujoco.mj_forward(model, data)
    return float(data.subtree_com[1, 2])


def test_an_arm_held_out_costs_the_slope_of_its_potential_energy():
    """A still arm bears no contact: the torque is m g dz/dq of the robot's centre of mass."""
    pose = PROFILE.default_joint_pos.copy()
    joint = PROFILE.joint_index("left_shoulder_roll_joint")
    pose[joint] = 1.5
    turned = pose.copy()
    turned[joint] += 1e-4
    slope = (height_of_mass(turned) - height_of_mass(pose)) / 1e-4
    torque = abs(robot_mass(PROFILE, PHYSICS) * 9.81 * slope)
    assert torque > 3.0
    load = drive_load(still(pose), PROFILE, PHYSICS)[5, joint]
    assert load == pytest.approx(torque / PROFILE.joint_torque_limit[joint], rel=1e-3)


def test_both_legs_of_a_still_squat_are_loaded_alike():
    """Symmetric and still: sharing the ground's forces otherwise would load one leg more."""
    pose = PROFILE.default_joint_pos.copy()
    for side in ("left", "right"):
        pose[PROFILE.joint_index(f"{side}_hip_pitch_joint")] = -1.2
        pose[PROFILE.joint_index(f"{side}_knee_joint")] = 2.2
        pose[PROFILE.joint_index(f"{side}_ankle_pitch_joint")] = -0.8
    load = drive_load(still(pose), PROFILE, PHYSICS)[5]
    legs = [n for n, name in enumerate(PROFILE.joint_names) if "hip" in name or "knee" in name or "ankle" in name]
    mirrored = {n: PROFILE.joint_index(PROFILE.joint_names[n].replace("left", "right")) for n in legs[:6]}
    assert load[legs].max() < 1.0
    for left, right in mirrored.items():
        assert load[left] == pytest.approx(load[right], abs=0.05)


def test_a_heavier_torso_loads_the_legs_more():
    pose = PROFILE.default_joint_pos.copy()
    heavy = PhysicsSettings(added_mass={"torso_link": 20.0})
    light = drive_load(still(pose), PROFILE, PHYSICS)[5]
    loaded = drive_load(still(pose), PROFILE, heavy)[5]
    assert robot_mass(PROFILE, heavy) - robot_mass(PROFILE, PHYSICS) == pytest.approx(20.0)
    assert loaded.max() > 1.2 * light.max()


@pytest.mark.slow
def test_a_published_squat_is_clear_and_a_jump_warned_of(shared_dir):
    """For the jump there is a published policy, which survives it 0.13 m off: it must not be refused."""
    folder = shared_dir / "data/asap/g1"
    clips = (("squat_level1", "clear", "waist_pitch", 0.64), ("CR7_level1", "warned", "waist_pitch", 2.40))
    for part, verdict, joint, load in clips:
        path = next(folder.glob(f"*_{part}_*.pkl"))
        found = judged(read_asap_pkl(path, PROFILE.name, PROFILE.joint_names))
        assert found.verdict == verdict, found.text()
        name, value, _, _ = worst(found, "torque")
        assert joint in name
        assert value == pytest.approx(load, abs=0.01)
