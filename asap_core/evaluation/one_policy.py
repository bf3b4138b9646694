"""One policy, one motion, one run from the exact first frame: the protocol of published policies."""

from __future__ import annotations

import numpy as np

from asap_core.environments.playback import play
from asap_core.environments.reference import ReferenceMotion
from asap_core.metrics import TrackingErrors, tracking_errors
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import Simulator
from asap_core.training.policy import OnnxPolicy


def track_once(
    policy: OnnxPolicy, reference: ReferenceMotion, profile: RobotProfile, simulator: Simulator
) -> TrackingErrors:
    """Errors of one closed-loop run against the reference of the same time, first frame included.

    Args:
        policy: acts by its own contract.
        simulator: of one robot.

    Raises:
        ContractError: the policy is for another robot, rate or motion, or its network has other widths.
    """
    policy.check(profile, reference)
    first = np.zeros(1, np.intp)
    run = play(policy, policy.contract.rule, reference, profile, simulator, reference.state.take(first), first)
    return tracking_errors(run.link_pos[:, 0], reference.links.pos, run.alive[:, 0])
