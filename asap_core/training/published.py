"""The contract of the policies that ASAP published, whose ONNX files carry none.

Source: ASAP's released configuration and deployment code: an actor of 380 inputs, 76 of the present frame and four
such frames of history, and actions of 0.25 rad about the default pose, with the gains of `g1_23dof`. The phase is 1 at
the clip's own end.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from asap_core.environments.observations import ObservationSettings
from asap_core.environments.playback import ActingRule
from asap_core.environments.reference import ReferenceMotion
from asap_core.robots.profile import RobotProfile
from asap_core.training.contract import PolicyContract

ACTION_SCALE = 0.25
"""rad per unit action, every joint."""
_FRAME = ("actions", "base_ang_vel", "dof_pos", "dof_vel", "projected_gravity", "ref_motion_phase")
OBSERVATION = ObservationSettings(
    terms=_FRAME, history_terms=_FRAME, history_length=4, scales={"base_ang_vel": 0.25, "dof_vel": 0.05}
)


def published_contract(profile: RobotProfile, reference: ReferenceMotion) -> PolicyContract:
    """The contract of a published policy for the motion `reference` on `profile`."""
    scale = np.full(profile.num_joints, ACTION_SCALE)
    return PolicyContract.of_rule(
        profile, reference, ActingRule(OBSERVATION, "default", scale, reference.clip_length_s)
    )


CONTRACTS: dict[str, Callable[[RobotProfile, ReferenceMotion], PolicyContract]] = {"asap": published_contract}
"""Contracts by name, for policies whose file carries none."""
