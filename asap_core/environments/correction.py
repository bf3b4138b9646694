"""The seam through which a delta action model acts inside the simulator."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from asap_core.simulators.protocol import Array, Ids, RobotState


class ActionCorrection(Protocol):
    """A correction of joint commands, in rad, for N robots. It is never part of what is deployed."""

    def reset(self, ids: Ids) -> None:
        """Forget everything about robots `ids`."""

    def __call__(self, state: RobotState, joint_target: Array) -> Array:
        """Δq (N, J) rad to be added to the nominal `joint_target` (N, J) rad that is about to be applied."""


class NoCorrection:
    """The zero correction."""

    def reset(self, ids: Ids) -> None:
        """Nothing to forget."""

    def __call__(self, state: RobotState, joint_target: Array) -> Array:
        """Zeros (N, J)."""
        return np.zeros_like(joint_target)
