"""The control of a delta that has no data: uniform noise on joint targets."""

from __future__ import annotations

import numpy as np

from asap_core.simulators.protocol import Array, Ids, RobotState


class ActionNoise:
    """An `ActionCorrection` that adds U(−β, β) rad to each joint's target, drawn for each control step.

    Source: ASAP's comparison with random action noise, in the form of its code (joint targets, both signs).

    Args:
        beta: rad.
        seed: of the draws.
    """

    def __init__(self, beta: float, seed: int) -> None:
        self._beta = beta
        self._rng = np.random.default_rng(seed)
        self._noise: Array = np.zeros((0, 0))

    def __call__(self, state: RobotState, joint_target: Array, time_s: float) -> Array:
        """See `TargetCorrection.__call__`. Each control step begins with a call at time 0."""
        if time_s == 0.0:
            self._noise = self._rng.uniform(-self._beta, self._beta, joint_target.shape)
        return self._noise

    def reset(self, ids: Ids) -> None:
        """Noise has no memory."""

    def recall(self, state: RobotState, joint_target: Array) -> None:
        """Noise has no memory."""
