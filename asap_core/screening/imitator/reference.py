"""The robot motion that stands for a person's clip before the imitator, faults of the clip included."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from asap_core.motions.human import HumanMotion
from asap_core.motions.robot import RobotMotion
from asap_core.motions.skeleton import leg_length
from asap_core.retargeting.proportions import robot_skeleton
from asap_core.retargeting.retarget import retarget
from asap_core.retargeting.settings import RetargetSettings
from asap_core.robots.profile import RobotProfile
from asap_core.screening.faults import standing_level
from asap_core.screening.settings import ScreenSettings


def imitation_reference(
    motion: HumanMotion, profile: RobotProfile, settings: RetargetSettings, screening: ScreenSettings
) -> RobotMotion:
    """Retargeted, at the height at which the clip stands.

    Retargeting puts a clip on the ground, which would hide a float or a depth from the imitator. So the level that it
    took away is given back, scaled as the robot's path is, unless the screen too would put the clip on the ground.
    """
    result = retarget(motion, profile, settings)
    level = standing_level(motion)
    if -screening.ground_depth <= level <= screening.ground_float:
        return result
    scale = leg_length(robot_skeleton(profile)) / leg_length(motion.skeleton)
    return replace(result, root_pos=result.root_pos + np.array([0.0, 0.0, level * scale]))
