"""How a frozen delta is met in fine-tuning: some robots do without it, and each has it a little stronger or weaker.

Source: the options `cotrain_with_without_delta_a` and `rescale_delta_a` of ASAP's code. There the strength is drawn
anew for each episode; here every robot keeps its own, as in `environments/randomisation.py`, so that a training that
was interrupted goes on exactly.
"""

from __future__ import annotations

import numpy as np

from asap_core.environments.correction import ActionCorrection
from asap_core.simulators.protocol import Array, Ids, RobotState
from asap_core.training.settings import FinetuneSettings


class MixedCorrection:
    """`correction` times a factor of each robot and joint, an `ActionCorrection` of N robots.

    Args:
        correction: of N robots.
        num_envs, num_joints: N and J.
        without: share of the robots that have none.
        scale: bounds of the uniform factor of each joint of the others.
        seed: of the draws.
    """

    def __init__(
        self,
        correction: ActionCorrection,
        num_envs: int,
        num_joints: int,
        without: float,
        scale: tuple[float, float],
        seed: int,
    ) -> None:
        rng = np.random.default_rng(seed)
        self._correction = correction
        self.factor: Array = rng.uniform(*scale, (num_envs, num_joints))
        """(N, J)."""
        self.factor[rng.permutation(num_envs)[: round(without * num_envs)]] = 0.0

    def __call__(self, state: RobotState, joint_target: Array, time_s: float) -> Array:
        """See `TargetCorrection.__call__`."""
        return self.factor * self._correction(state, joint_target, time_s)

    def reset(self, ids: Ids) -> None:
        """See `ActionCorrection.reset`."""
        self._correction.reset(ids)

    def recall(self, state: RobotState, joint_target: Array) -> None:
        """See `ActionCorrection.recall`."""
        self._correction.recall(state, joint_target)


def mixed(
    correction: ActionCorrection, settings: FinetuneSettings, num_envs: int, num_joints: int, seed: int
) -> ActionCorrection:
    """`correction` as `settings` want it met; itself where every robot has it in full."""
    if settings.without_delta == 0 and settings.delta_scale == (1.0, 1.0):
        return correction
    return MixedCorrection(correction, num_envs, num_joints, settings.without_delta, settings.delta_scale, seed)
