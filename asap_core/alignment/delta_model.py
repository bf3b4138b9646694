"""The delta action model: state and nominal joint target in, a bounded joint correction in rad out.

It acts at each physics step: there the torque of a drive is made, and what a physical difference asks for is a simple
function of the state. Held for a control step, a correction of a stiff joint is wrong before the step ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from asap_core.alignment.features import (
    ACCELERATION_TIME_S,
    INPUTS,
    NUM_FEATURES,
    NUM_SHARED,
    OWN_FEATURES,
    PhysicalFeatures,
)
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import Ids, RobotState

Array = NDArray[np.floating]
_RESIDUAL_OWN = tuple(OWN_FEATURES.index(n) for n in ("torque", "velocity", "acceleration", "target_change"))


class ResidualNet(torch.nn.Module):
    """A small network over all joints at once, zero at the start."""

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, num_joints: int, hidden: int = 128) -> None:
        super().__init__()
        width = num_joints * len(_RESIDUAL_OWN) + NUM_SHARED
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        self.net = torch.nn.Sequential(
            torch.nn.Linear(width, hidden),
            torch.nn.ELU(),
            torch.nn.Linear(hidden, hidden),
            torch.nn.ELU(),
            torch.nn.Linear(hidden, num_joints),
        )
        last = cast(torch.nn.Linear, self.net[-1])
        torch.nn.init.zeros_(last.weight)
        torch.nn.init.zeros_(last.bias)

    def inputs(self, features: torch.Tensor) -> torch.Tensor:
        """Features (N, J, 17) flattened to (N, width), not yet normalised."""
        own = features[:, :, list(_RESIDUAL_OWN)].flatten(1)
        return torch.cat([own, features[:, 0, -NUM_SHARED:]], dim=-1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Correction (N, J) rad before the bound."""
        x = (self.inputs(features) - self.mean) / self.scale
        return cast(torch.Tensor, self.net(torch.clamp(x, -5.0, 5.0)))


class DeltaActionModel(torch.nn.Module):
    """Per joint a linear map of physical features, plus an optional network; cut off at ± limit.

    Zero-initialised: a new model corrects nothing. In float64, as files are in float32.

    Args:
        profile: the robot.
        limit: bound of |Δq| per joint, rad.
        residual: whether the network is part of it.
    """

    limit: torch.Tensor
    residual_share: torch.Tensor

    def __init__(self, profile: RobotProfile, limit: float, residual: bool = False) -> None:
        super().__init__()
        self.features = PhysicalFeatures(profile)
        self.linear = torch.nn.Parameter(torch.zeros(profile.num_joints, NUM_FEATURES))
        self.bias = torch.nn.Parameter(torch.zeros(profile.num_joints))
        self.register_buffer("limit", torch.tensor(float(limit)))
        self.register_buffer("residual_share", torch.tensor(1.0))
        self.residual = ResidualNet(profile.num_joints) if residual else None
        self.double()

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Δq (N, J) rad of the raw quantities in the order of `INPUTS`."""
        return self.bound(self.unbounded(self.features(inputs)))

    def unbounded(self, features: torch.Tensor) -> torch.Tensor:
        """Correction (N, J) rad of `features` (N, J, 17), before the bound."""
        raw = (features * self.linear).sum(-1) + self.bias
        return raw if self.residual is None else raw + self.residual_share * self.residual(features)

    def bound(self, raw: torch.Tensor) -> torch.Tensor:
        """The bounded correction."""
        return torch.minimum(torch.maximum(raw, -self.limit), self.limit)

    def predict(self, inputs: tuple[Array, ...]) -> Array:
        """The same on numpy arrays, in the precision of the weights."""
        with torch.no_grad():
            tensors = [torch.as_tensor(x, dtype=self.linear.dtype) for x in inputs]
            return self(*tensors).numpy().astype(np.float64)


class DeltaCorrection:
    """An `ActionCorrection` of any predictor: keeps each robot's acceleration and its last two nominal targets.

    The one place where the model's inputs are put together, so that fitting, open-loop replay, fine-tuning and
    evaluation give the same Δq for the same state and target.

    Args:
        predict: raw quantities in the order of `INPUTS` → Δq (N, J) rad.
        control_dt: s.
    """

    def __init__(self, predict: Callable[[tuple[Array, ...]], Array], control_dt: float) -> None:
        self._predict = predict
        self._control_dt = control_dt
        self._time_s = 0.0
        self._fresh = np.ones(0, dtype=bool)
        self._vel: Array = np.zeros((0, 0))
        self._acc: Array = np.zeros((0, 0))
        self._targets: tuple[Array, ...] = ()
        """This control step's, the last one's and the one's before that, (N, J) each."""

    def reset(self, ids: Ids) -> None:
        """Robots `ids` have no past: as if their joints had been held where the next call finds them.

        So do simulators with a delay begin (`Simulator.set_state` without a past).
        """
        if len(self._fresh):
            self._fresh[ids] = True

    def recall(self, state: RobotState, joint_target: Array) -> None:
        """See `ActionCorrection.recall`."""
        self._see(state, joint_target, 0.0)

    def __call__(self, state: RobotState, joint_target: Array, time_s: float) -> Array:
        """See `TargetCorrection.__call__`. Each control step begins with a call at time 0."""
        self._see(state, joint_target, time_s)
        return self._predict(self.inputs(state, joint_target))

    def inputs(self, state: RobotState, joint_target: Array) -> tuple[Array, ...]:
        """What the model sees if `joint_target` is in force in `state`, the latest that was seen or recalled."""
        return model_inputs(state, self._acc, joint_target, *self._targets[1:])

    def amend(self, joint_target: Array) -> None:
        """The nominal target (N, J) rad of the latest control step is another one than was recalled."""
        self._targets = (np.array(joint_target, dtype=np.float64), *self._targets[1:])

    def _see(self, state: RobotState, joint_target: Array, time_s: float) -> None:
        if self._vel.shape != state.joint_vel.shape:
            self._fresh = np.ones(len(state.joint_vel), dtype=bool)
            self._vel, self._acc = state.joint_vel, np.zeros_like(state.joint_vel)
            self._targets = (state.joint_pos,) * 3
        fresh = self._fresh[:, None]
        if time_s == 0.0:
            held = [np.where(fresh, state.joint_pos, target) for target in self._targets[:2]]
            self._targets = (np.array(joint_target, dtype=np.float64), *held)
        elapsed = (time_s or self._control_dt) - self._time_s
        now = (state.joint_vel - self._vel) / elapsed
        keep = np.exp(-elapsed / ACCELERATION_TIME_S)
        self._acc = np.where(fresh, 0.0, now + keep * (self._acc - now))
        self._vel, self._time_s = state.joint_vel.copy(), time_s
        self._fresh[:] = False


def model_inputs(
    state: RobotState, joint_acc: Array, joint_target: Array, last_joint_target: Array, earlier_joint_target: Array
) -> tuple[Array, ...]:
    """Raw quantities in the order of `INPUTS`."""
    values = {
        "joint_pos": state.joint_pos,
        "joint_vel": state.joint_vel,
        "joint_acc": joint_acc,
        "joint_target": joint_target,
        "last_joint_target": last_joint_target,
        "earlier_joint_target": earlier_joint_target,
        "root_pos": state.root_pos,
        "root_quat": state.root_quat,
        "root_ang_vel": state.root_ang_vel,
    }
    return tuple(values[name] for name in INPUTS)
