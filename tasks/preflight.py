"""One motion file against the robot and the environment of params.yaml, before anything is trained on it."""

from __future__ import annotations

from pathlib import Path

from asap_core.config import Params
from asap_core.environments.feasibility import Feasibility, feasibility
from asap_core.environments.reference import ReferenceMotion
from asap_core.robots import get_profile
from tasks.policy import robot_motion


def preflight_motion(params: Params, motion: Path) -> Feasibility:
    """What the terminations, the joints' limits and the drives say of `motion`.

    Raises:
        InputFileError: the file is missing, damaged, or its motion has open questions, other joints or is a person's.
    """
    profile, physics = get_profile(params.robot), params.simulation.physics
    found = robot_motion(motion, params.robot)
    reference = ReferenceMotion.from_motion(found, profile, physics.control_dt, params.tracking.reference_joint_vel)
    return feasibility(reference, profile, params.tracking.termination, physics)
