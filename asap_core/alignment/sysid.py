"""SysID: physical parameters from rollouts, by Gauss-Newton on the multi-step replay error.

All perturbed worlds of an iteration are replayed side by side in one batch of robots, each with a model of its own.
The fit reads rollouts and nominal physics, never the target's. Beside each value stands its uncertainty, and whether
the data determine it at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from asap_core.alignment.choice import choose
from asap_core.alignment.corrected import Corrected
from asap_core.alignment.labels import read_array, write_array
from asap_core.alignment.physics_replay import PhysicsReplay, Slopes
from asap_core.alignment.replay import Segments, cut_segments, horizon_steps
from asap_core.alignment.sysid_parameters import Parameter, physics_of, sysid_parameters
from asap_core.progress import track
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.settings import Settings
from asap_core.simulators.settings import SimulationSettings

Array = NDArray[np.floating]
_DAMPINGS = (1e-6, 1e-4, 1e-2, 0.3)
"""Levenberg-Marquardt dampings that are tried side by side, relative to each parameter's curvature."""
_DELAYS_S = np.arange(0.0, 0.0601, 0.005)
"""Where the search for the delay begins: the error is not convex in it."""
_NOISE_M = 0.001
"""What a position measurement is trusted to; uncertainties are never smaller than it would make them."""
_ENOUGH = 0.003
"""Relative gain below which a horizon's iterations end."""


class SysIdSettings(Settings):
    """What SysID fits on."""

    horizons_s: tuple[float, ...] = Field(default=(0.1, 0.3), min_length=1)
    """Lengths of the replayed segments, one after another; short ones are smooth, long ones are what counts."""
    iterations: int = Field(default=6, ge=1)
    """At most, for each horizon."""
    segments: int = Field(default=128, ge=4)
    """Recorded segments that each iteration replays, spread over all episodes."""
    step_shrink: float = Field(default=0.3, gt=0, le=1)
    """Factor on the finite-difference steps from one horizon to the next."""


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


class SysIdFitter:
    """Fits the parameters of one set of rollouts.

    Args:
        profile: the robot.
        nominal: where the fit starts.
        rollout: of the target.
        settings: horizons and sizes.
        threads: of the simulator.
        cache: values are kept after each iteration.
    """

    def __init__(
        self,
        profile: RobotProfile,
        nominal: PhysicsSettings,
        rollout: Rollout,
        settings: SysIdSettings,
        threads: int,
        cache: Path,
    ) -> None:
        self._profile = profile
        self._nominal = nominal
        self._rollout = rollout
        self._settings = settings
        self._threads = threads
        self._cache = cache
        self.parameters = sysid_parameters(profile, nominal)
        self._slopes: tuple[PhysicsReplay, Slopes] | None = None
        self._episode: NDArray[np.int64] = np.zeros(0, np.int64)

    def run(self) -> list[Array]:
        """The values (P,) that each horizon ends with, the last one best by that horizon's error."""
        value = np.array([p.nominal for p in self.parameters])
        ends = []
        total = len(self._settings.horizons_s) * self._settings.iterations
        with track("sysid", total) as tracker:
            for stage, horizon in enumerate(self._settings.horizons_s):
                replay = self._replay(horizon, self._settings.step_shrink**stage)
                if stage == 0:
                    value = self._with_delay(replay, value)
                for i in range(self._settings.iterations):
                    value, error, gain = self._kept(replay, value, f"{stage}_{i}")
                    tracker.advance(note=f"{horizon:g} s: {1000 * error:.2f} mm")
                    if gain < _ENOUGH:
                        break
                ends.append(value)
        return ends

    def _replay(self, horizon_s: float, shrink: float) -> PhysicsReplay:
        segments = spread_segments(self._rollout, self._profile, self._nominal, horizon_s, self._settings.segments)
        self._episode = segments.episode
        return PhysicsReplay(self._profile, self._nominal, self.parameters, segments, self._threads, shrink)

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
            write_array(path, np.array([*self._step(replay, value)]))
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

    def estimates(self, value: Array) -> list[Estimate]:
        """The values with their uncertainty at the last horizon."""
        settings = self._settings
        replay = self._replay(settings.horizons_s[-1], settings.step_shrink ** (len(settings.horizons_s) - 1))
        std = _standard_deviation(replay, replay.slopes(value), self._episode)
        return [Estimate(p, float(v), float(s)) for p, v, s in zip(self.parameters, value, std, strict=True)]


def spread_segments(
    rollout: Rollout, profile: RobotProfile, physics: PhysicsSettings, horizon_s: float, count: int
) -> Segments:
    """At most `count` segments of `horizon_s`, evenly chosen from all."""
    segments = cut_segments(rollout, profile, horizon_steps(horizon_s, physics.control_dt))
    chosen = np.linspace(0, segments.num - 1, min(count, segments.num)).astype(np.intp)
    return segments.take(chosen)


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


def _standard_deviation(replay: PhysicsReplay, slopes: Slopes, episode: NDArray[np.int64]) -> Array:
    """(P,) by the sandwich over episodes, plus that of one measurement of `_NOISE_M` for each segment."""
    curvature = slopes.curvature
    inverse = np.linalg.inv(curvature + 1e-9 * np.diag(curvature).max() * np.eye(len(curvature)))
    by_episode = np.stack([slopes.gradient[episode == e].sum(axis=0) for e in np.unique(episode)])
    scatter = by_episode.T @ by_episode
    covariance = inverse @ scatter @ inverse + replay.noise_weight(_NOISE_M) * inverse
    return np.sqrt(np.diag(covariance)) * replay.steps


@dataclass(frozen=True)
class SysIdRival:
    """SysID as one way of alignment."""

    profile: RobotProfile
    simulation: SimulationSettings
    settings: SysIdSettings
    name: str = "sysid"

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Rival`."""
        return {"rival": self.name, "settings": self.settings.model_dump(mode="json")}

    def fit(self, fit: Rollout, validation: Rollout, seed: int, cache: Path) -> Corrected:
        """See `Rival`. Deterministic; `seed` changes nothing."""
        nominal, profile = self.simulation.physics, self.profile
        fitter = SysIdFitter(profile, nominal, fit, self.settings, self.simulation.threads, cache)
        ends = fitter.run()
        report = {e.parameter.name: e.as_json() for e in fitter.estimates(ends[-1])}
        candidates = [Corrected("zero", nominal)]
        for horizon, value in zip(self.settings.horizons_s, ends, strict=True):
            physics = physics_of(nominal, fitter.parameters, value)
            candidates.append(Corrected(f"sysid_{horizon:g}s", physics, report={"parameters": report}))
        return choose(candidates, validation, profile, self.simulation)
