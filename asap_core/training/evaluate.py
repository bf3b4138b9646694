"""A quick look at a policy while it trains: 32 perturbed starts at the clip's start, at the nominal physics step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.correction import ActionCorrection
from asap_core.environments.playback import ActingRule, perturbed_starts, play
from asap_core.environments.reference import ReferenceMotion
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import Simulator


@dataclass(frozen=True)
class QuickScore:
    """Success rate, share of the clip covered, and E_g_mpjpe (mm) over the rows before a failure."""

    success: float
    coverage: float
    E_g_mpjpe: float

    def better_than(self, other: QuickScore | None) -> bool:
        """Higher success first, then higher coverage, then lower error."""
        if other is None:
            return True
        mine = (round(self.success, 6), round(self.coverage, 6), -self.E_g_mpjpe)
        return mine > (round(other.success, 6), round(other.coverage, 6), -other.E_g_mpjpe)


def quick_score(
    policy: Callable[[NDArray[np.float32]], NDArray[np.floating]],
    rule: ActingRule,
    reference: ReferenceMotion,
    profile: RobotProfile,
    simulator: Simulator,
    seed: int,
    correction: ActionCorrection | None = None,
) -> QuickScore:
    """Score `policy` from as many perturbed starts at frame 0 as the simulator has robots, under `correction`."""
    frames = np.zeros(simulator.num_envs, np.intp)
    starts = perturbed_starts(reference, frames, seed)
    run = play(policy, rule, reference, profile, simulator, starts, frames, correction)
    return QuickScore(
        success=float(run.alive[-1].mean()),
        coverage=float(run.alive[1:].mean()),
        E_g_mpjpe=1000.0 * float(run.mean_distance[run.alive].mean()),
    )


def mean_score(scores: Sequence[QuickScore]) -> QuickScore:
    """The mean over motions, each counting alike."""
    return QuickScore(*np.mean([astuple(score) for score in scores], axis=0).tolist())
