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
from asap_core.alignment.replay import Segments, coordinates, replay_with_joints
from asap_core.alignment.sysid_parameters import joint_groups
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import Simulator

Array = NDArray[np.floating]
JointGroup = Literal["ankles", "legs", "all"]

_UNITS = {
    "torque": 0.1,
    "excess": 0.1,
    "velocity": 0.3,
    "friction": 0.2,
    "friction_smooth": 0.2,
    "acceleration": 0.01,
    "target_change": 0.25,
    "target_change_before": 0.25,
    "standing_torque": 0.1,
    "payload": -0.5,
}
"""Change of each own feature's weight by which derivatives are taken: share of the torque, Nm s/rad, Nm, kg m²,
control steps, kg. Physical sizes, as those of SysID, alike for all joints: steps of equal output would be tiny for a
joint that works hard, and what a contact makes of a tiny step does not carry on. The sign at first is that of a robot
weaker, slower, later and heavier than simulated, since at the edge of a foot the other side answers otherwise."""
_LEAST_SHARE = 0.1
"""Distances below this share of the uncorrected ones count as squares."""
_LEAST_YARDSTICK_M = 1e-4
"""Uncorrected distances below this do not count as a gap."""
_DAMPINGS = (1e-4, 1e-2, 0.1, 0.5)
"""Levenberg-Marquardt dampings that are tried side by side, relative to the mean curvature."""
_FURTHER = 1.5
"""Factor on the step of the second damping that is tried too."""
_FORGET = 0.3
"""Weight of earlier steps in the next one."""
_DELAYS_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Delays in control steps that are tried at the start."""
_ALONE = 0.05
"""Pull of a feature's mean weight towards zero, beside that of the weights towards each other."""
_UNUSED_RAD = 1e-5
"""A feature below this root mean square over the rollouts is not fitted."""
_SHARED_OVER: dict[str, Literal["joint", "place", "robot"]] = {
    "torque": "joint",
    "excess": "place",
    "velocity": "place",
    "friction": "place",
    "friction_smooth": "place",
    "acceleration": "place",
    "target_change": "robot",
    "target_change_before": "robot",
    "standing_torque": "joint",
    "payload": "joint",
}
"""Over which joints a feature has one weight: both sides of a joint, all joints of a place such as the hip, or all."""


def joints_of_group(profile: RobotProfile, group: JointGroup) -> NDArray[np.bool_]:
    """(J,) which joints a delta may move: the ankles as in the paper's real-robot protocol, the legs, or all."""
    parts = {"ankles": ("ankle",), "legs": ("hip", "knee", "ankle"), "all": ("",)}[group]
    return np.array([any(part in name for part in parts) for name in profile.joint_names])


@dataclass(frozen=True)
class SharedWeights:
    """Which weights move together, in units of `_UNITS`."""

    member: NDArray[np.intp]
    """(J, O) free number of each joint's own-feature weight; −1 where it stays."""
    scale: Array
    """(P,) weight change that is one unit."""
    feature: NDArray[np.intp]
    """(P,) own feature that each weighs."""

    @classmethod
    def of(cls, profile: RobotProfile, features: Array, group: JointGroup = "all") -> SharedWeights:
        """Sharing by joint names; of `features` (n, J, F) of the rollouts those that occur."""
        moved = joints_of_group(profile, group)
        names = [name.removeprefix("left_").removeprefix("right_") for name in profile.joint_names]
        places = [next(place for place in joint_groups(profile) if place in name) for name in names]
        size = np.sqrt((features[:, :, : len(OWN_FEATURES)] ** 2).mean(axis=0))
        member = np.full(size.shape, -1)
        scales: list[float] = []
        columns: list[int] = []
        for column, feature in enumerate(OWN_FEATURES):
            keys = {"joint": names, "place": places, "robot": [""] * len(names)}[_SHARED_OVER[feature]]
            for key in dict.fromkeys(keys):
                at = np.array([k == key for k in keys]) & moved
                rms = np.sqrt((size[at, column] ** 2).mean()) if at.any() else 0.0
                if rms > _UNUSED_RAD:
                    member[at, column] = len(scales)
                    scales.append(_UNITS[feature])
                    columns.append(column)
        return cls(member, np.array(scales), np.array(columns, dtype=np.intp))

    @property
    def size(self) -> int:
        """P, free numbers."""
        return len(self.scale)

    def prior(self) -> Array:
        """Precision (P, P) that pulls a feature's weights towards each other, and these a little towards zero.

        One that the rollouts hardly excite follows those of the other joints.
        """
        alike = self.feature[:, None] == self.feature
        out: Array = np.eye(self.size) - (1.0 - _ALONE) * alike / alike.sum(axis=1)
        return out

    def spread(self, values: Array) -> Array:
        """Weight changes (V, J, O) of free numbers (V, P)."""
        padded = np.concatenate([values * self.scale, np.zeros((len(values), 1))], axis=1)
        return padded[:, self.member]


def replay_variants(
    simulator: Simulator, profile: RobotProfile, segments: Segments, model: DeltaActionModel, changes: Array
) -> Array:
    """`coordinates` (V, S, H, D) under V variants of `model` whose own-feature weights differ by `changes`.

    Args:
        simulator: nominal; its robots are filled with as many (variant, segment) pairs as fit, segment by segment.
        changes: (V, J, O).
    """
    count = len(changes)
    per_chunk = max(1, simulator.num_envs // count)
    parts = []
    change = torch.as_tensor(changes)
    for begin in range(0, segments.num, per_chunk):
        index = np.arange(begin, min(begin + per_chunk, segments.num))
        pairs = np.resize(np.tile(index, count), simulator.num_envs)
        variant = torch.as_tensor(np.resize(np.repeat(np.arange(count), len(index)), simulator.num_envs))
        correction = DeltaCorrection(_varied(model, change[variant]), simulator.control_dt)
        reached = coordinates(*replay_with_joints(simulator, profile, segments.take(pairs), correction))
        parts.append(reached[: count * len(index)].reshape(count, len(index), *reached.shape[1:]))
    return np.concatenate(parts, axis=1)


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
        simulator: nominal; N is best a multiple of `weights.size + 2`.
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
        self._side: Array = -np.ones(weights.size)
        """Direction of the derivatives: where the last step went."""
        self._curvature: Array = np.zeros((weights.size, weights.size))
        self._pull: Array = np.zeros(weights.size)
        """Curvature times minimiser of the quadratic models so far."""
        self._gradients: Array = np.zeros((0, weights.size))
        """(E, P) of the episodes of the last step."""

    @property
    def memory(self) -> Array:
        """Everything that a later step or the ensemble depends on, (P + 3 + E, P)."""
        return np.vstack([self.value, self._side, self._pull, self._curvature, self._gradients])

    @memory.setter
    def memory(self, kept: Array) -> None:
        (self.value, self._side, self._pull), matrices = kept[:3], kept[3:]
        self._curvature, self._gradients = np.split(matrices, [self._weights.size])

    @property
    def model(self) -> DeltaActionModel:
        """The start with the present change."""
        return self._changed(self.value)

    def ensemble(self, members: int, seed: int) -> tuple[DeltaActionModel, ...]:
        """What the last step would have given, had other episodes been recorded: each drawn again with replacement.

        To first order, so that nothing is replayed anew.
        """
        episodes = max(1, len(self._gradients))
        drawn = np.random.default_rng(seed).multinomial(episodes, np.full(episodes, 1.0 / episodes), members) - 1
        pull = drawn[:, : len(self._gradients)] @ self._gradients
        matrix = self._curvature + self._prior_precision() + self._damped(_DAMPINGS[0])
        return tuple(self._changed(self.value - change) for change in np.linalg.solve(matrix, pull.T).T)

    def _changed(self, value: Array) -> DeltaActionModel:
        model = copy.deepcopy(self._start)
        change = torch.as_tensor(self._weights.spread(value[None])[0])
        with torch.no_grad():
            model.linear[:, : change.shape[1]] += change
        return model

    def start_with_delay(self, segments: Segments) -> float:
        """Begin with the whole delay, of `_DELAYS_STEPS`, that replays the pieces best; returns it in control steps.

        A late target is far from linear in its weights' surroundings, and the same for all joints.
        """
        values = np.stack([self._delayed(steps) for steps in _DELAYS_STEPS])
        errors = self._errors(segments, values, self._uncorrected(segments))
        best = int(np.argmin(errors))
        self.value = values[best]
        return _DELAYS_STEPS[best]

    def _delayed(self, steps: float) -> Array:
        change, before = (OWN_FEATURES.index(name) for name in ("target_change", "target_change_before"))
        weights = self._weights
        late = np.where(weights.feature == change, -min(steps, 1.0), 0.0)
        late += np.where(weights.feature == before, -max(steps - 1.0, 0.0), 0.0)
        return late / weights.scale

    def step(self, segments: Segments, shrink: float = 1.0) -> float:
        """One Gauss-Newton step over recorded pieces, whose length is the horizon.

        The quadratic models of earlier steps count on, ever less, so that each step can be over other pieces.

        Args:
            shrink: factor on the units by which derivatives are taken.

        Returns:
            Mean replay distance, relative to the uncorrected one, over these pieces after the step, never more than
            before.
        """
        yardstick = self._uncorrected(segments)
        base, gradients, curvature = self._linearise(segments, yardstick, shrink)
        self._gradients = np.stack([gradients[segments.episode == e].sum(axis=0) for e in np.unique(segments.episode)])
        self._curvature = _FORGET * self._curvature + curvature
        self._pull = _FORGET * self._pull + curvature @ self.value - gradients.sum(axis=0)
        matrix = self._curvature + self._prior_precision()
        slope = self._pull - matrix @ self.value
        steps = [np.linalg.solve(matrix + self._damped(damping), slope) for damping in _DAMPINGS]
        steps.append(_FURTHER * steps[1])
        trials = np.stack([self.value, *(self.value + step for step in steps)])
        errors = [base, *self._errors(segments, trials[1:], yardstick)]
        best = int(np.argmin(errors))
        self._side = np.where((steps[0] if best == 0 else trials[best] - self.value) > 0, 1.0, -1.0)
        self.value = trials[best]
        return float(errors[best])

    def _prior_precision(self) -> Array:
        return self._prior * self._mean_curvature() * self._weights.prior()

    def _damped(self, damping: float) -> Array:
        least = 1e-3 * self._mean_curvature()
        return damping * np.diag(np.diag(self._curvature) + least)

    def _mean_curvature(self) -> float:
        return float(np.trace(self._curvature)) / self._weights.size

    def _replay(self, segments: Segments, values: Array) -> Array:
        changes = self._weights.spread(values)
        return replay_variants(self._simulator, self._profile, segments, self._start, changes)

    def _uncorrected(self, segments: Segments) -> Array:
        """(H,) m, mean distance of the start after each step."""
        distance = away(self._replay(segments, np.zeros((1, self._weights.size)))[0], segments)
        return np.maximum(distance.mean(axis=0), _LEAST_YARDSTICK_M)

    def _errors(self, segments: Segments, values: Array, yardstick: Array) -> list[float]:
        return [float((away(r, segments) / yardstick).mean()) for r in self._replay(segments, values)]

    def _linearise(self, segments: Segments, yardstick: Array, shrink: float) -> tuple[float, Array, Array]:
        """Of the reweighted squares: mean relative distance, gradients (S, P) of the segments, curvature (P, P)."""
        count = self._weights.size
        step = shrink * self._side
        reached = self._replay(segments, np.vstack([self.value, self.value + np.diag(step)]))
        error = (reached[0] - coordinates(segments.link_pos, segments.joint_pos)) / np.sqrt(_points(segments))
        relative = away(reached[0], segments) / yardstick
        root = (np.sqrt(1.0 / np.maximum(relative, _LEAST_SHARE)) / yardstick)[..., None]
        slopes = (reached[1:] - reached[0]) * root / (step[:, None, None, None] * np.sqrt(_points(segments)))
        rows = slopes.reshape(count, -1)
        return float(relative.mean()), np.einsum("pshd,shd->sp", slopes, error * root), rows @ rows.T


def _points(segments: Segments) -> int:
    return segments.link_pos.shape[2]


def away(reached: Array, segments: Segments) -> Array:
    """Distance (S, H) m of `coordinates` (S, H, D) to the record: root mean square over links, joints beside."""
    error = reached - coordinates(segments.link_pos, segments.joint_pos)
    distance: Array = np.linalg.norm(error, axis=-1) / np.sqrt(_points(segments))
    return distance
