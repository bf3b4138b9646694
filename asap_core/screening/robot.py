"""`screen_robot`: the verdict on a robot's motion: what the screen asks of a person, and what its drives can give."""

from __future__ import annotations

import numpy as np

from asap_core.errors import InputFileError
from asap_core.motions.robot import RobotMotion
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array
from asap_core.screening.robot_dynamics import robot_demand
from asap_core.screening.screen import contact_rules, grounded, path_rules
from asap_core.screening.settings import RobotScreenSettings, ScreenSettings
from asap_core.screening.verdict import Trial, Verdict, too_short


def screen_robot(
    motion: RobotMotion, profile: RobotProfile, settings: ScreenSettings, physics: PhysicsSettings
) -> Verdict:
    """Judge a robot's motion: path, feet, balance and contact forces, joint limits and speeds, and drive torques.

    Raises:
        InputFileError: the motion's joints are not those of `profile`.
    """
    if motion.joint_names != profile.joint_names:
        found = f"found {len(motion.joint_names)} joints from {', '.join(motion.joint_names[:2])}"
        raise InputFileError(motion.source.path, f"joints: {found} …, expected those of {profile.name}")
    short = too_short(motion.num_frames)
    if short is not None:
        return short
    demand = robot_demand(motion, profile, physics)
    contact, level = grounded(demand.contact, settings)
    trial = Trial(motion.num_frames)
    trial.figures["ground_level"] = level
    path_rules(trial, motion.root_pos, motion.fps, settings)
    force = contact_rules(trial, contact, settings.model_copy(update={"max_unbalanced": settings.robot.max_unbalanced}))
    _joint_rules(trial, motion, profile, settings.robot)
    load = np.abs(demand.torque(force)) / profile.joint_torque_limit
    name = profile.joint_names[int(load.max(axis=0).argmax())]
    worst = load.max(axis=1)
    trial.share("torque", worst > settings.robot.torque, settings.robot.max_overloaded, worst, f"of a limit ({name})")
    return trial.verdict()


def _joint_rules(trial: Trial, motion: RobotMotion, profile: RobotProfile, settings: RobotScreenSettings) -> None:
    speed = np.abs(np.gradient(motion.joint_pos, 1 / motion.fps, axis=0)) / profile.joint_velocity_limit
    trial.share("joint_speed", speed.max(axis=1) > 1.0, settings.max_fast, speed.max(axis=1), "of a limit")
    beyond = _beyond(motion.joint_pos, profile)
    trial.peak("joint_limit", beyond.max(axis=1), settings.beyond_limit, "rad beyond a limit")
    saturated = (beyond > -settings.saturation).sum(axis=1).astype(float)
    many = saturated > settings.saturated_joints
    trial.share("saturation", many, settings.max_saturated, saturated, "joints at a limit")


def _beyond(joint_pos: Array, profile: RobotProfile) -> Array:
    """(T, J) rad beyond the nearer limit, negative inside."""
    return np.asarray(np.maximum(profile.joint_lower - joint_pos, joint_pos - profile.joint_upper))
