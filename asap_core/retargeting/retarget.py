"""`retarget`: a `HumanMotion` becomes a `RobotMotion` that stands on the ground (paper section III-A, rebuilt)."""

from __future__ import annotations

import numpy as np

from asap_core.motions.human import HumanMotion
from asap_core.motions.robot import RobotMotion
from asap_core.retargeting.scorer import reference, score
from asap_core.retargeting.settings import RetargetSettings
from asap_core.retargeting.solver import solve
from asap_core.retargeting.targets import followed_person, make_targets
from asap_core.retargeting.trajectory import Trajectory
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile


def retarget(motion: HumanMotion, profile: RobotProfile, settings: RetargetSettings) -> RobotMotion:
    """Retarget a clip of any length at its own frame rate.

    The person gets the robot's bone lengths (or keeps its own, `settings.body`), is put on the ground by its standing
    feet, and the robot's motion is solved for whole.
    """
    targets = make_targets(followed_person(motion, profile, settings), profile, settings)
    joint_pos = np.tile(np.asarray(profile.default_joint_pos, dtype=float), (motion.num_frames, 1))
    start = Trajectory(targets.pelvis, targets.orientations[:, 0], joint_pos)
    solved = solve(Kinematics(profile), targets, start, settings)
    return RobotMotion(
        name=motion.name,
        robot=profile.name,
        fps=motion.fps,
        root_pos=solved.root_pos,
        root_quat=solved.root_quat,
        joint_names=profile.joint_names,
        joint_pos=solved.joint_pos,
        source=motion.source,
        screening=motion.screening,
    )


def retarget_figures(
    motion: HumanMotion, result: RobotMotion, profile: RobotProfile, settings: RetargetSettings
) -> dict[str, float]:
    """The scorer's figures of a retarget, held against the person whose body it followed."""
    person = followed_person(motion, profile, settings)
    ankle_height = -float(profile.sole_points[..., 2].min())
    return score(result, Kinematics(profile), reference(person, profile, ankle_height))
