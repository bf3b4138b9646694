"""Action delay as a correction of targets, so that what comes after it sees the target that is in force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.correction import ActionCorrection
from asap_core.rollouts.record import Rollout
from asap_core.simulators.protocol import Ids, RobotState

Array = NDArray[np.floating]


class DelayedTarget:
    """Holds targets back by `steps` control steps, then lets `correction` act on the one in force.

    Exact for whole steps; in between, the mean over a control step of the two targets that it sees. Before the first
    target stand the joint positions of that moment, as in the simulators.
    """

    def __init__(self, steps: float, correction: ActionCorrection) -> None:
        self._steps = steps
        self._correction = correction
        self._past: Array = np.zeros((0, 0, 0))
        self._fresh = np.ones(0, dtype=bool)

    def reset(self, ids: Ids) -> None:
        """See `ActionCorrection.reset`."""
        if len(self._fresh):
            self._fresh[ids] = True
        self._correction.reset(ids)

    def __call__(self, state: RobotState, joint_target: Array) -> Array:
        """See `ActionCorrection.__call__`: what takes the present target to the corrected one in force."""
        depth = int(np.ceil(self._steps))
        if self._past.shape[1:] != joint_target.shape:
            self._past = np.zeros((depth, *joint_target.shape))
            self._fresh = np.ones(len(joint_target), dtype=bool)
        self._past[:, self._fresh] = state.joint_pos[self._fresh]
        self._fresh[:] = False
        known = np.concatenate([self._past, joint_target[None]])
        self._past = known[1:].copy()
        in_force = mixed(known, self._steps)
        return in_force - joint_target + self._correction(state, in_force)


def mixed(known: Array, steps: float) -> Array:
    """The target in force (…) of the last ceil(steps) + 1 targets (…), oldest first."""
    share = np.ceil(steps) - steps
    in_force: Array = known[0] if share == 0 else (1.0 - share) * known[0] + share * known[1]
    return in_force


def with_targets_in_force(rollout: Rollout, steps: float) -> Rollout:
    """The rollout with the joint target of each row replaced by the one that is in force `steps` control steps late."""
    depth = int(np.ceil(steps))
    if not depth:
        return rollout
    target = rollout.joint_target.copy()
    for number in np.unique(rollout.episode):
        rows = np.flatnonzero(rollout.episode == number)
        before = np.repeat(rollout.state.joint_pos[rows[:1]], depth, axis=0)
        padded = np.concatenate([before, rollout.joint_target[rows]])
        target[rows] = mixed(np.stack([padded[i : i + len(rows)] for i in range(depth + 1)]), steps)
    target[np.isnan(rollout.joint_target)] = np.nan
    return replace(rollout, joint_target=target)
