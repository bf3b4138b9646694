"""A simulator whose state is moved a little after each control step: how delta dynamics acts."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from asap_core.simulators.protocol import Array, RobotState, Simulator, TargetCorrection
from asap_core.simulators.wrapped import WrappedSimulator


class StateResidual(Protocol):
    """A learned correction of the next state."""

    def __call__(self, state: RobotState, joint_target: Array, reached: RobotState) -> RobotState:
        """The state N robots are put into, of the state before the step, its target and the state that it reached."""


class ResidualSimulator(WrappedSimulator):
    """`simulator` with `residual` after each control step."""

    def __init__(self, simulator: Simulator, residual: StateResidual) -> None:
        super().__init__(simulator)
        self._residual = residual

    def step(self, joint_target: Array, correction: TargetCorrection | None = None) -> None:
        """See `Simulator.step`."""
        before = self._simulator.state
        self._simulator.step(joint_target, correction)
        moved = self._residual(before, joint_target, self._simulator.state)
        self._simulator.set_state(np.arange(self.num_envs), moved)
