"""Using a delta without training: commands y that the delta carries to what the policy asked for, y + Δq(s, y) = q̂.

Source: ASAP's two training-free uses, `delta_a_fixed_point_iteration` and `delta_a_gradient_search`. They act where the
policy is deployed, once in a control step, on joint targets in rad.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from asap_core.alignment.delta_model import DeltaActionModel, DeltaCorrection
from asap_core.alignment.features import INPUTS
from asap_core.simulators.protocol import Array, Ids, RobotState, Simulator, TargetCorrection
from asap_core.simulators.wrapped import WrappedSimulator

FIXED_POINT_STEPS = 10
"""As in ASAP's code."""
GRADIENT_STEPS, GRADIENT_RATE = 20, 0.02
"""ASAP's code goes 2000 steps of 2e-4: the same way, in steps that a CPU can take."""

Inputs = Callable[[Array], tuple[Array, ...]]
"""Joint target (N, J) → the model's inputs, all else being as it is."""
Solve = Callable[[DeltaActionModel, Inputs, Array], Array]
"""Model, inputs and wanted target q̂ (N, J) → the command y (N, J)."""


def fixed_point(model: DeltaActionModel, inputs: Inputs, wanted: Array) -> Array:
    """y ← q̂ − Δq(s, y), from y = q̂."""
    command = wanted
    for _ in range(FIXED_POINT_STEPS):
        command = wanted - model.predict(inputs(command))
    return command


def gradient_search(model: DeltaActionModel, inputs: Inputs, wanted: Array) -> Array:
    """Descent on ‖y + Δq(s, y) − q̂‖², from y = q̂."""
    given = [torch.as_tensor(x, dtype=torch.float64) for x in inputs(wanted)]
    goal, at = given[INPUTS.index("joint_target")], INPUTS.index("joint_target")
    command = goal.clone()
    for _ in range(GRADIENT_STEPS):
        command.requires_grad_(True)
        given[at] = command
        error = (command + model(*given) - goal).square().sum()
        (slope,) = torch.autograd.grad(error, command)
        command = command.detach() - GRADIENT_RATE * slope
    return np.asarray(command.numpy())


class InvertedSimulator(WrappedSimulator):
    """`simulator` whose joint targets are first replaced by commands that `solve` finds.

    Args:
        simulator: the target, where the policy is deployed.
        model: the delta that made the nominal simulator behave like it.
    """

    def __init__(self, simulator: Simulator, model: DeltaActionModel, solve: Solve) -> None:
        super().__init__(simulator)
        self._model = model
        self._memory = DeltaCorrection(model.predict, simulator.control_dt)
        self._solve = solve

    def set_state(self, ids: Ids, state: RobotState, past_target: Array | None = None) -> None:
        """See `Simulator.set_state`."""
        super().set_state(ids, state, past_target)
        self._memory.reset(ids)

    def step(self, joint_target: Array, correction: TargetCorrection | None = None) -> None:
        """See `Simulator.step`."""
        state = self._simulator.state
        self._memory.recall(state, joint_target)
        command = self._solve(self._model, lambda target: self._memory.inputs(state, target), joint_target)
        self._memory.amend(command)
        self._simulator.step(command, correction)
