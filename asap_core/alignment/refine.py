"""Gauss-Newton on the true multi-step replay error, over the linear part of a delta model.

Left and right joints share the weights of their own features (these are odd in the joint's sign), so some hundred
numbers are fitted, each by one perturbed replay beside the others in a single batch of robots. Iterative reweighting
makes the squares stand for mean distances, the quantity that decides.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from asap_core.alignment.delta_model import DeltaActionModel, DeltaCorrection
from asap_core.alignment.features import OWN_FEATURES, joint_features
from asap_core.alignment.replay import Segments, replay
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import Simulator

Array = NDArray[np.floating]

_STEP_RAD = 0.01
"""Size of the output change by which derivatives are taken."""
_LEAST_DISTANCE_M = 0.003
"""Distances below this count as squares."""
_DAMPINGS = (3e-4, 3e-3, 3e-2, 0.3)
"""Levenberg-Marquardt dampings that are tried side by side, relative to the mean curvature."""


@dataclass(frozen=True)
class SharedWeights:
    """Which weights move together: G joint groups × 8 own features, in units of _STEP_RAD of output."""

    member: NDArray[np.intp]
    """(J,) group of each joint."""
    scale: Array
    """(G, 8) weight change that alters the output by `_STEP_RAD` root mean square."""

    @classmethod
    def of(cls, profile: RobotProfile, features: Array) -> SharedWeights:
        """Groups by joint name without its side; scales from `features` (n, J, F)."""
        names = [name.removeprefix("left_").removeprefix("right_") for name in profile.joint_names]
        unique = list(dict.fromkeys(names))
        member = np.array([unique.index(name) for name in names])
        size = np.sqrt((features[:, :, : len(OWN_FEATURES)] ** 2).mean(axis=0))
        rms = np.stack([size[member == g].mean(axis=0) for g in range(len(unique))])
        return cls(member, _STEP_RAD / np.maximum(rms, 1e-6))

    @property
    def size(self) -> int:
        """Free numbers."""
        return self.scale.size

    def spread(self, values: Array) -> Array:
        """Weight changes (V, J, 8) of free numbers (V, size)."""
        return (values.reshape(-1, *self.scale.shape) * self.scale)[:, self.member]


def replay_variants(
    simulator: Simulator, profile: RobotProfile, segments: Segments, model: DeltaActionModel, changes: Array
) -> Array:
    """Link positions (V, S, H, L, 3) under V variants of `model` whose own-feature weights differ by `changes`.

    Args:
        simulator: nominal; its robots are filled with as many (variant, segment) pairs as fit, segment by segment.
        changes: (V, J, 8).
    """
    count = len(changes)
    per_chunk = max(1, simulator.num_envs // count)
    reached = np.empty((count, *segments.link_pos.shape))
    change = torch.as_tensor(changes)
    for begin in range(0, segments.num, per_chunk):
        index = np.arange(begin, min(begin + per_chunk, segments.num))
        pairs = np.resize(np.tile(index, count), simulator.num_envs)
        variant = torch.as_tensor(np.resize(np.repeat(np.arange(count), len(index)), simulator.num_envs))
        correction = DeltaCorrection(_varied(model, change[variant]))
        out = replay(simulator, profile, segments.take(pairs), correction)[: count * len(index)]
        reached[:, index] = out.reshape(count, len(index), *segments.link_pos.shape[1:])
    return reached


def _varied(model: DeltaActionModel, change: torch.Tensor) -> Callable[[tuple[Array, ...]], Array]:
    """A predictor in which robot n has `change[n]` (J, 8) added to its own-feature weights."""

    def predict(inputs: tuple[Array, ...]) -> Array:
        with torch.no_grad():
            features = joint_features(tuple(torch.as_tensor(x) for x in inputs))
            raw = model.unbounded(features) + (features[:, :, : change.shape[-1]] * change).sum(-1)
            return model.bound(raw).numpy()

    return predict


class Refiner:
    """Improves a model's linear part step by step; see the module.

    Args:
        simulator: nominal; N is best a multiple of `weights.size + 1`.
        segments: recorded pieces that are replayed; their length is the horizon.
        prior: pull towards the start, relative to the mean curvature.
    """

    def __init__(
        self,
        simulator: Simulator,
        profile: RobotProfile,
        segments: Segments,
        weights: SharedWeights,
        model: DeltaActionModel,
        prior: float,
    ) -> None:
        self._simulator = simulator
        self._profile = profile
        self._segments = segments
        self._weights = weights
        self._start = model
        self._prior = prior
        self.value: Array = np.zeros(weights.size)
        """Free numbers of the present model; zero is the start."""

    @property
    def model(self) -> DeltaActionModel:
        """The start with the present change."""
        model = copy.deepcopy(self._start)
        change = torch.as_tensor(self._weights.spread(self.value[None])[0])
        with torch.no_grad():
            model.linear[:, : change.shape[1]] += change
        return model

    def step(self) -> float:
        """One Gauss-Newton step; returns the mean replay distance (m) after it, never more than before."""
        count = self._weights.size
        base, gradient, curvature = self._linearise()
        scale = np.trace(curvature) / count
        prior = self._prior * scale
        trials = [self.value]
        for damping in _DAMPINGS:
            matrix = curvature + (damping * scale + prior) * np.eye(count)
            trials.append(self.value - np.linalg.solve(matrix, gradient + prior * self.value))
        errors = [base, *self._mean_distance(np.stack(trials[1:]))]
        best = int(np.argmin(errors))
        self.value = trials[best]
        return float(errors[best])

    def _replay(self, values: Array) -> Array:
        changes = self._weights.spread(values)
        return replay_variants(self._simulator, self._profile, self._segments, self._start, changes)

    def _mean_distance(self, values: Array) -> list[float]:
        distance = np.linalg.norm(self._replay(values) - self._segments.link_pos, axis=-1)
        return [float(d) for d in distance.mean(axis=(1, 2, 3))]

    def _linearise(self) -> tuple[float, Array, Array]:
        """Mean distance, gradient and curvature of the reweighted squares at the present value."""
        count = self._weights.size
        reached = self._replay(np.vstack([self.value, self.value + np.eye(count)]))
        error = reached[0] - self._segments.link_pos
        distance = np.linalg.norm(error, axis=-1, keepdims=True)
        root = np.sqrt(1.0 / np.maximum(distance, _LEAST_DISTANCE_M))
        slopes = ((reached[1:] - reached[0]) * root).reshape(count, -1)
        return float(distance.mean()), slopes @ (error * root).ravel(), slopes @ slopes.T
