"""Where the floor is: a robot that stands on it tells its height better than mocap does.

A marker body's lever and a mocap volume are good to millimetres. A simulator's contact is stiffer than that: a robot
put a millimetre too high falls for the length of a control step, and a correction fitted on such steps is wrong.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.ingest.base_velocity import BaseMotion
from asap_core.rollouts.ingest.steps import ControlSteps

SUNK_M = 8e-4
"""By which the lowest sole point of a G1 that stands in the nominal simulator is below the floor."""
_STILL_M_S = 0.05
_LEAST_S = 1.0
_MOST_M = 0.05
"""A floor further away is another one: a mocap volume on a table, a wrong body."""


def on_floor(root: BaseMotion, steps: ControlSteps, profile: RobotProfile) -> tuple[BaseMotion, float | None]:
    """The base moved up or down, by one length for the whole log, so that it stands on z = 0 as the simulator does.

    Returns:
        The base, and how far it was moved in m; None, and the base as it was, where the robot stands on nothing for a
        second, or on something that is more than 5 cm from z = 0.
    """
    rows = np.flatnonzero(root.valid & np.isfinite(root.pos).all(axis=1))
    if not len(rows):
        return root, None
    kinematics = Kinematics(profile)
    order = [steps.joint_names.index(name) for name in profile.joint_names]
    poses = kinematics.forward(root.pos[rows], root.quat[rows], steps.joint_pos[rows][:, order])
    lowest = kinematics.sole_points(poses)[..., 2].min(axis=(1, 2))
    still = np.abs(np.gradient(lowest, steps.control_dt)) < _STILL_M_S if len(rows) > 1 else np.zeros(1, bool)
    if still.sum() * steps.control_dt < _LEAST_S:
        return root, None
    shift = -SUNK_M - float(np.median(lowest[still]))
    if abs(shift) > _MOST_M:
        return root, None
    return replace(root, pos=root.pos + np.array([0.0, 0.0, shift])), shift
