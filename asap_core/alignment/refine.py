"""Gauss-Newton on the true multi-step replay error, over the own features of a delta model.

Left and right joints share the weights of their own features (these are odd in the joint's sign), and a feature whose
physics is the same all over a limb shares one weight there, so that some seventy numbers are fitted, each by one
perturbed replay beside the others in a single batch of robots. Iterative reweighting makes the squares stand for mean
distances relative to the uncorrected ones, so that early steps count as much as late ones.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from asap_core.alignment.delta_model import DeltaActionModel, DeltaCorrection
from asap_core.alignment.features import OWN_FEATURES
from asap_core.alignment.replay import Segments, replay
from asap_core.alignment.sysid_parameters import joint_groups
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import Simulator

Array = NDArray[np.floating]
JointGroup = Literal["ankles", "legs", "all"]

_STEP_RAD = 0.01
"""Size of the output change by which derivatives are taken."""
_LEAST_SHARE = 0.1
"""Distances below this share of the uncorrected ones count as squares."""
_DAMPINGS = (3e-4, 3e-3, 3e-2, 0.3)
"""Levenberg-Marquardt dampings that are tried side by side, relative to the mean curvature."""
_FORGET = 0.6
"""Weight of earlier steps in the next one."""
_DELAYS_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Delays in control steps that are tried at the start."""
_ALONE = 0.05
"""Pull of a feature's mean weight towards zero, beside that of the weights towards each other."""
_UNUSED_RAD = 1e-5
"""A feature below this root mean square over the rollouts is not fitted."""
_SHARED_OVER: dict[str, Literal["joint", "place"]] = {
    "torque": "joint",
    "excess": "place",
    "velocity": "place",
    "friction": "place",
    "friction_smooth": "place",
    "acceleration": "joint",
    "target_change": "joint",
    "target_change_before": "place",
    "standing_torque": "joint",
    "payload": "joint",
}
"""Over which joints a feature has one weight: both sides of a joint, or all joints of a place such as the hip."""


def joints_of_group(profile: RobotProfile, group: JointGroup) -> NDArray[np.bool_]:
    """(J,) which joints a delta may move: the ankles as in the paper's real-robot protocol, the legs, or all."""
    parts = {"ankles": ("ankle",), "legs": ("hip", "knee", "ankle"), "all": ("",)}[group]
    return np.array([any(part in name for part in parts) for name in profile.joint_names])


@dataclass(frozen=True)
class SharedWeights:
    """Which weights move together, in units of _STEP_RAD of output."""

    member: NDArray[np.intp]
    """(J, O) free number of each joint's own-feature weight; −1 where it stays."""
    scale: Array
    """(P,) weight change that alters the output by `_STEP_RAD` root mean square."""
    feature: NDArray[np.intp]
    """(P,) own feature that each weighs."""

    @classmethod
    def of(cls, profile: RobotProfile, features: Array, group: JointGroup = "all") -> SharedWeights:
        """Sharing by joint names; scales from `features` (n, J, F) of the rollouts."""
        moved = joints_of_group(profile, group)
        names = [name.removeprefix("left_").removeprefix("right_") for name in profile.joint_names]
        places = [next(place for place in joint_groups(profile) if place in name) for name in names]
        size = np.sqrt((features[:, :, : len(OWN_FEATURES)] ** 2).mean(axis=0))
        member = np.full(size.shape, -1)
        scales: list[float] = []
        columns: list[int] = []
        for column, feature in enumerate(OWN_FEATURES):
            keys = names if _SHARED_OVER[feature] == "joint" else places
            for key in dict.fromkeys(keys):
                at = np.array([k == key for k in keys]) & moved
                rms = np.sqrt((size[at, column] ** 2).mean()) if at.any() else 0.0
                if rms > _UNUSED_RAD:
                    member[at, column] = len(scales)
                    scales.append(_STEP_RAD / rms)
                    columns.append(column)
        return cls(member, np.array(scales), np.array(columns, dtype=np.intp))

    @property
    def size(self) -> int:
        """P, free numbers."""
        return len(self.scale)

    def prior(self) -> Array:
        """Precision (P, P) that pulls a feature's weights towards each other, and these a little towards zero.

        In units of the weights: one that the rollouts hardly excite follows those of the other joints.
        """
        out: Array = np.zeros((self.size, self.size))
        for column in np.unique(self.feature):
            at = np.flatnonzero(self.feature == column)
            unit = self.scale[at] / np.exp(np.log(self.scale[at]).mean())
            out[np.ix_(at, at)] = np.outer(unit, unit) * (np.eye(len(at)) - (1.0 - _ALONE) / len(at))
        return out

    def spread(self, values: Array) -> Array:
        """Weight changes (V, J, O) of free numbers (V, P)."""
        padded = np.concatenate([values * self.scale, np.zeros((len(values), 1))], axis=1)
        return padded[:, self.member]


def replay_variants(
    simulator: Simulator, profile: RobotProfile, segments: Segments, model: DeltaActionModel, changes: Array
) -> Array:
    """Link positions (V, S, H, L, 3) under V variants of `model` whose own-feature weights differ by `changes`.

    Args:
        simulator: nominal; its robots are filled with as many (variant, segment) pairs as fit, segment by segment.
        changes: (V, J, O).
    """
    count = len(changes)
    per_chunk = max(1, simulator.num_envs // count)
    reached = np.empty((count, *segments.link_pos.shape))
    change = torch.as_tensor(changes)
    for begin in range(0, segments.num, per_chunk):
        index = np.arange(begin, min(begin + per_chunk, segments.num))
        pairs = np.resize(np.tile(index, count), simulator.num_envs)
        variant = torch.as_tensor(np.resize(np.repeat(np.arange(count), len(index)), simulator.num_envs))
        correction = DeltaCorrection(_varied(model, change[variant]), simulator.control_dt)
        out = replay(simulator, profile, segments.take(pairs), correction)[: count * len(index)]
        reached[:, index] = out.reshape(count, len(index), *segments.link_pos.shape[1:])
    return reached


def _varied(model: DeltaActionModel, change: torch.Tensor) -> Callable[[tuple[Array, ...]], Array]:
    """A predictor in which robot n has `change[n]` (J, O) added to its own-feature weights."""

    def predict(inputs: tuple[Array, ...]) -> Array:
        with torch.no_grad():
            features = model.features(tuple(torch.as_tensor(x) for x in inputs))
            raw = model.unbounded(features) + (features[:, :, : change.shape[-1]] * change).sum(-1)
            return model.bound(raw).numpy()

    return predict


class Refiner:
    """Improves a model's own-feature weights step by step; see the module.

    Args:
        simulator: nominal; N is best a multiple of `weights.size + 1`.
        weights: what is fitted.
        model: the start.
        prior: strength of `SharedWeights.prior`, relative to the mean curvature.
    """

    def __init__(
        self,
        simulator: Simulator,
        profile: RobotProfile,
        weights: SharedWeights,
        model: DeltaActionModel,
        prior: float,
    ) -> None:
        self._simulator = simulator
        self._profile = profile
        self._weights = weights
        self._start = model
        self._prior = prior
        self.value: Array = np.zeros(weights.size)
        """Free numbers of the present model; zero is the start."""
        self._curvature: Array = np.zeros((weights.size, weights.size))
        self._pull: Array = np.zeros(weights.size)
        """Curvature times minimiser of the quadratic models so far."""

    @property
    def memory(self) -> Array:
        """Everything that a later step depends on, (P + 2, P)."""
        return np.vstack([self.value, self._pull, self._curvature])

    @memory.setter
    def memory(self, kept: Array) -> None:
        self.value, self._pull, self._curvature = kept[0], kept[1], kept[2:]

    @property
    def model(self) -> DeltaActionModel:
        """The start with the present change."""
        model = copy.deepcopy(self._start)
        change = torch.as_tensor(self._weights.spread(self.value[None])[0])
        with torch.no_grad():
            model.linear[:, : change.shape[1]] += change
        return model

    def start_with_delay(self, segments: Segments, yardstick: Array) -> float:
        """Begin with the whole delay, of `_DELAYS_STEPS`, that replays the pieces best; returns it in control steps.

        A late target is far from linear in its weights' surroundings, and the same for all joints.
        """
        values = np.stack([self._delayed(steps) for steps in _DELAYS_STEPS])
        best = int(np.argmin(self._errors(segments, values, yardstick)))
        self.value = values[best]
        return _DELAYS_STEPS[best]

    def _delayed(self, steps: float) -> Array:
        change, before = (OWN_FEATURES.index(name) for name in ("target_change", "target_change_before"))
        weights = self._weights
        late = np.where(weights.feature == change, -min(steps, 1.0), 0.0)
        late += np.where(weights.feature == before, -max(steps - 1.0, 0.0), 0.0)
        return late / weights.scale

    def step(self, segments: Segments, yardstick: Array) -> float:
        """One Gauss-Newton step over recorded pieces, whose length is the horizon.

        The quadratic models of earlier steps count on, ever less, so that each step can be over other pieces.

        Args:
            yardstick: (H,) m, the uncorrected mean distance after each step.

        Returns:
            Mean replay distance relative to `yardstick` over these pieces after the step, never more than before.
        """
        count = self._weights.size
        base, gradient, curvature = self._linearise(segments, yardstick)
        self._curvature = _FORGET * self._curvature + curvature
        self._pull = _FORGET * self._pull + curvature @ self.value - gradient
        scale = np.trace(self._curvature) / count
        prior = self._prior * scale * self._weights.prior()
        slope = self._pull - (self._curvature + prior) @ self.value
        trials = [self.value]
        for damping in _DAMPINGS:
            damped = damping * (np.diag(np.diag(self._curvature)) + 1e-3 * scale * np.eye(count))
            trials.append(self.value + np.linalg.solve(self._curvature + prior + damped, slope))
        errors = [base, *self._errors(segments, np.stack(trials[1:]), yardstick)]
        best = int(np.argmin(errors))
        self.value = trials[best]
        return float(errors[best])

    def _replay(self, segments: Segments, values: Array) -> Array:
        changes = self._weights.spread(values)
        return replay_variants(self._simulator, self._profile, segments, self._start, changes)

    def _errors(self, segments: Segments, values: Array, yardstick: Array) -> list[float]:
        distance = np.linalg.norm(self._replay(segments, values) - segments.link_pos, axis=-1).mean(axis=-1)
        return [float(d) for d in (distance / yardstick).mean(axis=(1, 2))]

    def _linearise(self, segments: Segments, yardstick: Array) -> tuple[float, Array, Array]:
        """Mean relative distance, gradient and curvature of the reweighted squares at the present value."""
        count = self._weights.size
        reached = self._replay(segments, np.vstack([self.value, self.value + np.eye(count)]))
        error = reached[0] - segments.link_pos
        away = np.linalg.norm(error, axis=-1).mean(axis=-1) / yardstick
        root = (np.sqrt(1.0 / np.maximum(away, _LEAST_SHARE)) / yardstick)[..., None, None]
        slopes = ((reached[1:] - reached[0]) * root).reshape(count, -1)
        return float(away.mean()), slopes @ (error * root).ravel(), slopes @ slopes.T
