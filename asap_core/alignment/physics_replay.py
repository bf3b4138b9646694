"""Replay of recorded segments under many physics at once, and its derivatives by finite differences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.alignment.replay import Segments, coordinates, replay_with_joints
from asap_core.alignment.sysid_parameters import Parameter, physics_of
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.mujoco import MujocoSimulator

Array = NDArray[np.floating]
_ENVS = 512
_SMALLEST_M = 1e-6
MOCAP_NOISE_M = 0.001
"""What a position from motion capture is trusted to."""


@dataclass(frozen=True)
class Slopes:
    """A quadratic model of the replay error around some values, in units of the parameters' steps."""

    distance_m: Array
    """(S,) of each segment."""
    gradient: Array
    """(S, P)."""
    curvature: Array
    """(P, P) Gauss-Newton, summed over segments."""


class PhysicsReplay(ABC):
    """Segments that can be replayed under any values of some parameters.

    What is compared are D coordinates in metres at each of H steps; their distance is the root of the sum of squares
    over the `points` to which they belong.

    Args:
        parameters: what varies.
        shrink: factor on the steps of the parameters by which derivatives are taken.
    """

    points: int
    """Links, or joints where only they are measured."""
    episode: NDArray[np.int64]
    """(S,); segments of one episode are not independent."""
    noise_m: float
    """What a measurement is trusted to; uncertainties heed it."""

    def __init__(self, parameters: tuple[Parameter, ...], shrink: float) -> None:
        self._parameters = parameters
        self.steps: Array = shrink * np.array([p.step for p in parameters])

    @abstractmethod
    def pieces(self, values: Array) -> Iterator[tuple[Array, Array]]:
        """For some segments after others: recorded (s, H, D) m, and reached (V, s, H, D) m under values (V, P)."""

    def distances(self, values: Array) -> Array:
        """Mean distance (V, S) m under parameter values (V, P)."""
        parts = [self._away(reached - recorded).mean(axis=-1) for recorded, reached in self.pieces(values)]
        return np.concatenate(parts, axis=1)

    def slopes(self, value: Array, least_m: float | None = None) -> Slopes:
        """Distances and their derivatives at parameter values (P,). Squares are reweighted to stand for distances.

        Args:
            least_m: distances below it count as squares; by default it follows the usual distance down from `noise_m`,
                so that the few segments which a contact makes erratic do not decide where the rest fits already.
        """
        inward = np.where(value + self.steps > [p.high for p in self._parameters], -1.0, 1.0)
        moved = value + np.diag(inward * self.steps)
        distance, gradient, curvature = [], [], np.zeros((len(value), len(value)))
        for recorded, reached in self.pieces(np.vstack([value, moved])):
            error = reached[0] - recorded
            away = self._away(error)
            least = least_m or float(np.clip(np.median(away), _SMALLEST_M, self.noise_m))
            root = np.sqrt(1.0 / np.maximum(away, least))[..., None]
            slope = (reached[1:] - reached[0]) * root * inward[:, None, None, None]
            gradient.append(np.einsum("pshd,shd->sp", slope, error * root))
            rows = slope.reshape(len(value), -1)
            curvature += rows @ rows.T
            distance.append(away.mean(axis=-1))
        return Slopes(np.concatenate(distance), np.concatenate(gradient), curvature)

    @property
    def noise_weight(self) -> float:
        """Variance, in the units of `slopes` with `noise_m` as least, of an error that a time step's points share."""
        return self.points * self.noise_m

    def _away(self, error: Array) -> Array:
        distance: Array = np.linalg.norm(error, axis=-1) / np.sqrt(self.points)
        return distance


class RolloutReplay(PhysicsReplay):
    """Segments of rollouts, with the base free and known.

    Args:
        profile: the robot.
        nominal: physics that the parameters alter.
        parameters: what varies.
        segments: recorded; their length is the horizon.
        threads: of the simulator.
        shrink: see `PhysicsReplay`.
    """

    def __init__(
        self,
        profile: RobotProfile,
        nominal: PhysicsSettings,
        parameters: tuple[Parameter, ...],
        segments: Segments,
        threads: int,
        shrink: float = 1.0,
    ) -> None:
        super().__init__(parameters, shrink)
        self._profile = profile
        self._nominal = nominal
        self._segments = segments
        self._threads = threads
        self.points = segments.link_pos.shape[2]
        self.episode = segments.episode
        self.noise_m = MOCAP_NOISE_M

    def pieces(self, values: Array) -> Iterator[tuple[Array, Array]]:
        """See `PhysicsReplay.pieces`: link positions, and joint angles on an arm."""
        count = len(values)
        at_once = min(max(1, _ENVS // count), self._segments.num)
        physics = [physics_of(self._nominal, self._parameters, value) for value in values]
        each = [p for p in physics for _ in range(at_once)]
        simulator = MujocoSimulator(self._profile, each, len(each), self._threads)
        for begin in range(0, self._segments.num, at_once):
            index = np.arange(begin, min(begin + at_once, self._segments.num))
            tiled = self._segments.take(np.tile(np.resize(index, at_once), count))
            reached = coordinates(*replay_with_joints(simulator, self._profile, tiled))
            reached = reached.reshape(count, at_once, *reached.shape[1:])[:, : len(index)]
            yield coordinates(self._segments.link_pos[index], self._segments.joint_pos[index]), reached
