"""Gauss-Newton over physical parameters, from short horizons to longer ones, with uncertainties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from asap_core.alignment.labels import read_array, write_array
from asap_core.alignment.physics_replay import PhysicsReplay, Slopes
from asap_core.alignment.sysid_parameters import Parameter
from asap_core.progress import track
from asap_core.settings import Settings

Array = NDArray[np.floating]
_DAMPINGS = (1e-6, 1e-4, 1e-2, 0.3)
"""Levenberg-Marquardt dampings that are tried side by side, relative to each parameter's curvature."""
_DELAYS_S = np.arange(0.0, 0.0601, 0.005)
"""Where the search for the delay begins: the error is not convex in it."""


class SysIdSettings(Settings):
    """What SysID fits on."""

    horizons_s: tuple[float, ...] = Field(default=(0.1, 0.1, 0.2), min_length=1)
    """Lengths of the replayed segments, one after another; short ones are smooth, long ones are what counts."""
    iterations: int = Field(default=8, ge=1)
    """At most, for each horizon."""
    seconds: float = Field(default=10.0, gt=0)
    """Recorded time that each iteration replays, spread over all episodes."""
    step_shrink: float = Field(default=0.2, gt=0, le=1)
    """Factor on the finite-difference steps from one horizon to the next."""
    enough: float = Field(default=0.03, gt=0, lt=1)
    """Relative gain below which a horizon's iterations end."""


@dataclass(frozen=True)
class Estimate:
    """A fitted parameter."""

    parameter: Parameter
    value: float
    std: float
    """From the curvature and the scatter between episodes, the other parameters free."""

    @property
    def determined(self) -> bool:
        """Whether its 95 % interval is narrower, to either side, than 5 % of it or the step at which it matters."""
        return 1.96 * self.std <= max(0.05 * abs(self.value), self.parameter.step)

    def as_json(self) -> dict[str, Any]:
        """For reports."""
        p = self.parameter
        fields = {"value": self.value, "std": self.std, "nominal": p.nominal, "unit": p.unit}
        return {**fields, "determined": self.determined, "at_bound": self.value in (p.low, p.high)}


class PhysicsFitter:
    """Fits `parameters` to recordings.

    Args:
        parameters: with their nominal values, from which the fit starts.
        make_replay: horizon in s and shrink of the steps → the segments to replay.
        settings: horizons and sizes.
        cache: values are kept after each iteration.
    """

    def __init__(
        self,
        parameters: tuple[Parameter, ...],
        make_replay: Callable[[float, float], PhysicsReplay],
        settings: SysIdSettings,
        cache: Path,
    ) -> None:
        self.parameters = parameters
        self._make_replay = make_replay
        self._settings = settings
        self._cache = cache

    def run(self) -> list[Array]:
        """The values (P,) that each horizon ends with."""
        settings = self._settings
        value = np.array([p.nominal for p in self.parameters])
        ends = []
        with track("sysid", len(settings.horizons_s) * settings.iterations) as tracker:
            for stage, horizon in enumerate(settings.horizons_s):
                replay = self._replay(stage)
                if stage == 0:
                    value = self._with_delay(replay, value)
                for i in range(settings.iterations):
                    value, error, gain = self._kept(replay, value, f"{stage}_{i}")
                    tracker.advance(note=f"{horizon:g} s: {1000 * error:.2f} mm")
                    if gain < settings.enough:
                        break
                ends.append(value)
        return ends

    def estimates(self, value: Array) -> list[Estimate]:
        """The values with their uncertainty at the last horizon."""
        replay = self._replay(len(self._settings.horizons_s) - 1)
        std = standard_deviation(replay, replay.slopes(value, replay.noise_m))
        return [Estimate(p, float(v), float(s)) for p, v, s in zip(self.parameters, value, std, strict=True)]

    def _replay(self, stage: int) -> PhysicsReplay:
        settings = self._settings
        return self._make_replay(settings.horizons_s[stage], settings.step_shrink**stage)

    def _with_delay(self, replay: PhysicsReplay, value: Array) -> Array:
        at = next(i for i, p in enumerate(self.parameters) if p.field == "action_delay_s")
        tried = np.tile(value, (len(_DELAYS_S), 1))
        tried[:, at] += _DELAYS_S
        best: Array = tried[replay.distances(tried).mean(axis=1).argmin()]
        return best

    def _kept(self, replay: PhysicsReplay, value: Array, name: str) -> tuple[Array, float, float]:
        """One iteration, or what an earlier run kept of it: values, mean error in m and relative gain."""
        path = self._cache / f"sysid_{name}.npy"
        if not path.exists():
            write_array(path, self._step(replay, value))
        kept = read_array(path)
        return kept[:-2], float(kept[-2]), float(kept[-1])

    def _step(self, replay: PhysicsReplay, value: Array) -> Array:
        slopes = replay.slopes(value)
        before = float(slopes.distance_m.mean())
        trials = np.stack([_damped(self.parameters, replay.steps, value, slopes, d) for d in _DAMPINGS])
        errors = replay.distances(trials).mean(axis=1)
        best = int(errors.argmin())
        if errors[best] >= before:
            return np.array([*value, before, 0.0])
        return np.array([*trials[best], errors[best], 1.0 - errors[best] / before])


def _damped(parameters: tuple[Parameter, ...], steps: Array, value: Array, slopes: Slopes, damping: float) -> Array:
    """A damped Gauss-Newton step within the bounds; what is at a bound and pushes outwards stays there."""
    gradient = slopes.gradient.sum(axis=0)
    low, high = (np.array([getattr(p, side) for p in parameters]) for side in ("low", "high"))
    free = ~((value <= low) & (gradient > 0)) & ~((value >= high) & (gradient < 0))
    curvature = slopes.curvature[np.ix_(free, free)]
    diagonal = np.diag(curvature)
    matrix = curvature + np.diag(damping * diagonal + 1e-9 * diagonal.max())
    moved = value.copy()
    moved[free] -= np.linalg.solve(matrix, gradient[free]) * steps[free]
    return np.clip(moved, low, high)


def standard_deviation(replay: PhysicsReplay, slopes: Slopes) -> Array:
    """(P,) by the sandwich over episodes, plus that of a measurement noise which all points of a time step share."""
    curvature, episode = slopes.curvature, replay.episode
    inverse = np.linalg.inv(curvature + 1e-9 * np.diag(curvature).max() * np.eye(len(curvature)))
    by_episode = np.stack([slopes.gradient[episode == e].sum(axis=0) for e in np.unique(episode)])
    covariance = inverse @ (by_episode.T @ by_episode) @ inverse + replay.noise_weight * inverse
    return np.sqrt(np.diag(covariance)) * replay.steps
