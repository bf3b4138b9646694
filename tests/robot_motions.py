"""Small robot motions that tests make for themselves."""

from __future__ import annotations

import numpy as np

from asap_core.environments.reference import ReferenceMotion
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import Source
from asap_core.robots import get_profile

STANDING_HEIGHT = 0.784


def knee_bend(seconds: float = 1.0, fps: float = 50.0, depth: float = 0.2) -> RobotMotion:
    """The default pose with knees and hips that bend once by `depth` rad and straighten again; the feet stay low."""
    profile = get_profile("g1_23dof")
    count = round(seconds * fps) + 1
    bend = depth * 0.5 * (1 - np.cos(2 * np.pi * np.arange(count) / (count - 1)))
    joint_pos = np.tile(profile.default_joint_pos, (count, 1))
    for side in ("left", "right"):
        joint_pos[:, profile.joint_index(f"{side}_hip_pitch_joint")] -= bend
        joint_pos[:, profile.joint_index(f"{side}_knee_joint")] += 2 * bend
        joint_pos[:, profile.joint_index(f"{side}_ankle_pitch_joint")] -= bend
    root_pos = np.zeros((count, 3))
    root_pos[:, 2] = STANDING_HEIGHT - 0.6 * (1 - np.cos(bend))
    root_quat = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
    source = Source(path="tests", sha256="0" * 64, tool="tests")
    return RobotMotion("knee_bend", profile.name, fps, root_pos, root_quat, profile.joint_names, joint_pos, source)


def knee_bend_reference(**changes: float) -> ReferenceMotion:
    """`knee_bend` at 50 Hz with all link states."""
    return ReferenceMotion.from_motion(knee_bend(**changes), get_profile("g1_23dof"), 0.02)
