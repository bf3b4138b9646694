"""Clean clips made from kinematics alone, and the same in the layouts of files: what the doctor is measured on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from asap_core.motions.derived import derive_motion
from asap_core.motions.formats.clip import Declared, RobotClip
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import Source
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile, breadth_first
from asap_core.rotations import Array, rotate, rotvec_to_quat

_STEP_HZ = 0.8
_HOP_SPEED = 2.5
"""m/s at take-off; the flight lasts half a second."""
_G = 9.81
_XYZW = [1, 2, 3, 0]


def walk_and_hop(robot: str = "g1_29dof", seconds: float = 10.0, fps: float = 50.0) -> RobotMotion:
    """A walk on a slow curve with a swinging arm and one hop in the middle; the standing foot is still, on z = 0."""
    profile = get_profile(robot)
    times = np.arange(round(seconds * fps)) / fps
    take_off, landing = _hop_times(times)
    flying = (times >= take_off) & (times < landing)
    phase = 2 * np.pi * _STEP_HZ * np.where(times < take_off, times, np.maximum(take_off, times - landing + take_off))
    joint_pos = _gait(profile, phase)
    heading = 0.2 * np.where(times < take_off, times, np.maximum(take_off, times - landing + take_off))
    root_quat = rotvec_to_quat(np.stack([0 * times, 0 * times, heading], axis=1))
    root_pos = _on_standing_foot(profile, joint_pos, root_quat)
    since = times - take_off
    root_pos[:, 2] += np.where(flying, _HOP_SPEED * since - 0.5 * _G * since**2, 0.0)
    source = Source("made", "0" * 64, "asap doctor")
    return RobotMotion("walk_and_hop", robot, fps, root_pos, root_quat, profile.joint_names, joint_pos, source)


def _hop_times(times: Array) -> tuple[float, float]:
    take_off = float(times[len(times) // 2])
    return take_off, take_off + 2 * _HOP_SPEED / _G


def _gait(profile: RobotProfile, phase: Array) -> Array:
    """(T, J) rad: legs that step with level soles, a right arm that swings, and a turning waist."""
    joint_pos = np.tile(profile.default_joint_pos, (len(phase), 1))

    def put(joint: str, values: Array) -> None:
        joint_pos[:, profile.joint_index(f"{joint}_joint")] = values

    for side, shift in (("left", 0.0), ("right", np.pi)):
        hip = -0.3 + 0.25 * np.sin(phase + shift)
        knee = 0.5 + 0.5 * np.maximum(0, np.cos(phase + shift)) ** 2
        put(f"{side}_hip_pitch", hip)
        put(f"{side}_knee", knee)
        put(f"{side}_ankle_pitch", -(hip + knee))
    put("right_shoulder_pitch", 0.8 * np.sin(phase))
    put("right_shoulder_roll", -0.9 + 0.3 * np.sin(2 * phase))
    put("left_shoulder_roll", 0.2 + 0.05 * np.sin(phase))
    put("right_elbow", 0.6 + 0.4 * np.cos(phase))
    put("waist_yaw", 0.2 * np.sin(phase))
    put("waist_roll", 0.05 * np.sin(phase + 1))
    return joint_pos


def _on_standing_foot(profile: RobotProfile, joint_pos: Array, root_quat: Array) -> Array:
    """Root positions (T, 3) m that keep the lower foot where it is and its sole on z = 0."""
    kinematics = Kinematics(profile)
    still = np.zeros((len(joint_pos), 3)), np.tile([1.0, 0.0, 0.0, 0.0], (len(joint_pos), 1))
    soles = rotate(root_quat[:, None, None], kinematics.sole_points(kinematics.forward(*still, joint_pos)))
    lower = soles[..., 2].min(axis=2).argmin(axis=1)
    centre = soles.mean(axis=2)
    moved = np.diff(centre, axis=0)[np.arange(len(lower) - 1), lower[1:], :2]
    root = np.zeros((len(joint_pos), 3))
    root[1:, :2] = -np.cumsum(moved, axis=0)
    root[:, 2] = -soles[..., 2].min(axis=(1, 2))
    return root


def as_clip(motion: RobotMotion, order: str = "mjcf", quat: str = "wxyz", bodies: bool = True) -> RobotClip:
    """The motion as a file without names holds it: joints and bodies in MJCF or Isaac order, with velocities.

    Args:
        order: `mjcf` or `isaac`. quat: order of all quaternions. bodies: whether bodies and velocities are stored.
    """
    profile = get_profile(motion.robot)
    links = breadth_first(profile) if order == "isaac" else tuple(link.name for link in profile.links)
    joint_of = {link.name: link.joint for link in profile.links}
    joints = [profile.joint_index(joint) for joint in (joint_of[link] for link in links) if joint is not None]
    columns = _XYZW if quat == "xyzw" else [0, 1, 2, 3]
    clip = RobotClip(
        path=Path(motion.source.path),
        name=motion.name,
        format="made",
        sha256=motion.source.sha256,
        root_pos=motion.root_pos,
        root_quat=motion.root_quat[:, columns],
        joint_pos=motion.joint_pos[:, joints],
        fps=motion.fps,
        declared=Declared(up_axis="z", length_unit="m", angle_unit="rad", frame="world"),
    )
    return with_bodies(clip, motion, links, joints, columns) if bodies else clip


def with_bodies(
    clip: RobotClip, motion: RobotMotion, links: tuple[str, ...], joints: list[int], columns: list[int]
) -> RobotClip:
    """The clip with its bodies and all velocities, at link origins and in the world."""
    profile = get_profile(motion.robot)
    derived = derive_motion(motion, profile)
    rows = profile.link_indices(links)
    return replace(
        clip,
        joint_vel=derived.joint_vel[:, joints],
        body_pos=derived.links.pos[:, rows],
        body_quat=derived.links.quat[:, rows][..., columns],
        body_lin_vel=derived.links.lin_vel[:, rows],
        body_ang_vel=derived.links.ang_vel[:, rows],
    )
