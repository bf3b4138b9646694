"""Replay of recorded segments under many physics at once, and its derivatives by finite differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.alignment.replay import Segments, replay_with_joints
from asap_core.alignment.sysid_parameters import Parameter, physics_of
from asap_core.environments.correction import NoCorrection
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.mujoco import MujocoSimulator

Array = NDArray[np.floating]
_ENVS = 512
_JOINT_ARM_M = 0.15
"""Turns a joint angle's error into a length; the feet and hands, which no link origin shows turning, have about it."""
_LEAST_DISTANCE_M = 0.001
"""Mean distances below this count as squares."""


@dataclass(frozen=True)
class Slopes:
    """A quadratic model of the replay error around some values, in units of the parameters' steps."""

    distance_m: Array
    """(S,) mean link distance of each segment."""
    gradient: Array
    """(S, P)."""
    curvature: Array
    """(P, P) Gauss-Newton, summed over segments."""


class PhysicsReplay:
    """Replays segments in MuJoCo, one physics a robot.

    Args:
        profile: the robot.
        nominal: physics that the parameters alter.
        parameters: what varies.
        segments: recorded; their length is the horizon.
        threads: of the simulator.
        shrink: factor on the steps of the parameters by which derivatives are taken.
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
        self._profile = profile
        self._nominal = nominal
        self._parameters = parameters
        self._segments = segments
        self._threads = threads
        self.steps: Array = shrink * np.array([p.step for p in parameters])

    def noise_weight(self, noise_m: float) -> float:
        """Variance, in the weighted units of `Slopes`, of `noise_m` that a whole segment shares."""
        shared = self._segments.steps * self._segments.link_pos.shape[2]
        return shared * noise_m**2 / max(noise_m, _LEAST_DISTANCE_M)

    def distances(self, values: Array) -> Array:
        """Mean link distance (V, S) m under parameter values (V, P)."""
        parts = [np.linalg.norm(links - part.link_pos, axis=-1) for part, links, _ in self._reached(values)]
        return np.concatenate([p.mean(axis=(2, 3)) for p in parts], axis=1)

    def slopes(self, value: Array) -> Slopes:
        """Distances and their derivatives at parameter values (P,). Squares are reweighted to stand for distances."""
        inward = np.where(value + self.steps > [p.high for p in self._parameters], -1.0, 1.0)
        moved = value + np.diag(inward * self.steps)
        distance, gradient, curvature = [], [], np.zeros((len(value), len(value)))
        for part, links, joints in self._reached(np.vstack([value, moved])):
            error = links[0] - part.link_pos
            away = np.linalg.norm(error, axis=-1).mean(axis=-1)
            root = np.sqrt(1.0 / np.maximum(away, _LEAST_DISTANCE_M))[..., None]
            flat = np.concatenate([links.reshape(*links.shape[:3], -1), _JOINT_ARM_M * joints], axis=-1)
            slope = (flat[1:] - flat[0]) * root * inward[:, None, None, None]
            recorded = np.concatenate([part.link_pos.reshape(*away.shape, -1), _JOINT_ARM_M * part.joint_pos], axis=-1)
            gradient.append(np.einsum("pshd,shd->sp", slope, (flat[0] - recorded) * root))
            rows = slope.reshape(len(value), -1)
            curvature += rows @ rows.T
            distance.append(away.mean(axis=-1))
        return Slopes(np.concatenate(distance), np.concatenate(gradient), curvature)

    def _reached(self, values: Array) -> Iterator[tuple[Segments, Array, Array]]:
        """Pieces of the segments (s of them) with links (V, s, H, L, 3) and joints (V, s, H, J) under each of V."""
        count = len(values)
        at_once = min(max(1, _ENVS // count), self._segments.num)
        physics = [physics_of(self._nominal, self._parameters, value) for value in values]
        each = [p for p in physics for _ in range(at_once)]
        simulator = MujocoSimulator(self._profile, each, len(each), self._threads)
        for begin in range(0, self._segments.num, at_once):
            index = np.arange(begin, min(begin + at_once, self._segments.num))
            part = self._segments.take(index)
            tiled = self._segments.take(np.tile(np.resize(index, at_once), count))
            links, joints = replay_with_joints(simulator, self._profile, tiled, NoCorrection())
            shape = (count, at_once, part.steps)
            yield (
                part,
                links.reshape(*shape, -1, 3)[:, : len(index)],
                joints.reshape(*shape, -1)[:, : len(index)],
            )
