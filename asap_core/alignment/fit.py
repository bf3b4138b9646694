"""Fitting and choosing a delta action model from rollouts alone; nothing here knows what the target's physics are.

Candidates are fitted on the split `fit`, chosen by 1.0 s replay error on `validation`, and reported on `heldout`,
which no fit and no choice has seen. Zero correction is always a candidate.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from asap_core.alignment.delta_model import DeltaActionModel, DeltaCorrection, model_inputs
from asap_core.alignment.features import joint_features
from asap_core.alignment.labels import (
    Labeller,
    inertia_diagonal,
    inertia_weights,
    label_transitions,
    read_array,
    write_array,
)
from asap_core.alignment.linear_fit import fit_linear, fit_residual
from asap_core.alignment.refine import Refiner, SharedWeights
from asap_core.alignment.replay import (
    HORIZONS_S,
    Segments,
    cut_segments,
    horizon_errors,
    horizon_steps,
    replay_distance,
)
from asap_core.alignment.settings import AlignSettings
from asap_core.progress import track
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.rollouts.settings import Split
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.settings import SimulationSettings

Array = NDArray[np.floating]
_MOST_REPLAY_ENVS = 64
_REFINE_SEGMENTS_AT_ONCE = 8


@dataclass(frozen=True)
class Candidate:
    """A model and its validation errors (mm) by horizon in s."""

    name: str
    model: DeltaActionModel
    validation: dict[float, float]


@dataclass(frozen=True)
class DeltaFit:
    """The chosen model and how it came about."""

    chosen: Candidate
    candidates: tuple[Candidate, ...]
    heldout_zero: dict[float, float]
    """mm by horizon in s."""
    heldout: dict[float, float]
    """mm by horizon in s, of the chosen model."""
    mean_abs_delta: Array
    """(J,) rad, of the chosen model over the held-out transitions."""

    @property
    def ratio(self) -> float:
        """Held-out error of the longest horizon, as a share of the uncorrected one."""
        return self.heldout[HORIZONS_S[-1]] / self.heldout_zero[HORIZONS_S[-1]]


class DeltaFitter:
    """Fits candidates and scores them by replay.

    Args:
        profile: the robot.
        simulation: the nominal simulator.
        rollouts: the three splits.
        settings: what is tried.
        seed: of network training.
        cache: finished labels and refinement steps are kept here, so that a killed fit goes on.
    """

    def __init__(
        self,
        profile: RobotProfile,
        simulation: SimulationSettings,
        rollouts: dict[Split, Rollout],
        settings: AlignSettings,
        seed: int,
        cache: Path,
    ) -> None:
        self._profile = profile
        self._simulation = simulation
        self._settings = settings
        self._seed = seed
        self._cache = cache
        self._fit = rollouts["fit"]
        self._heldout = rollouts["heldout"]
        steps = horizon_steps(HORIZONS_S[-1], simulation.physics.control_dt)
        self._validation_segments = cut_segments(rollouts["validation"], profile, steps, steps // 2)
        self._heldout_segments = cut_segments(self._heldout, profile, steps, steps // 2)
        most = max(self._validation_segments.num, self._heldout_segments.num)
        self._simulator = make_simulator(profile, simulation, min(most, _MOST_REPLAY_ENVS))

    def run(self) -> DeltaFit:
        """Fit all candidates, choose one, report it on the held-out split."""
        candidates = list(self._candidates())
        chosen = _best(candidates)
        zero = next(c for c in candidates if c.name == "zero")
        return DeltaFit(
            chosen=chosen,
            candidates=tuple(candidates),
            heldout_zero=self._errors(zero.model, self._heldout_segments),
            heldout=self._errors(chosen.model, self._heldout_segments),
            mean_abs_delta=self._mean_abs_delta(chosen.model),
        )

    def _candidates(self) -> Iterator[Candidate]:
        settings, limit = self._settings, self._settings.delta_limit
        rows = self._fit.transitions()
        zero = self._scored("zero", DeltaActionModel(len(self._profile.joint_names), limit).double())
        yield zero
        labels = self._labels(rows)
        features = transition_features(self._fit, rows)
        linear = [self._scored(f"linear_ridge_{r:g}", fit_linear(features, labels, limit, r)) for r in settings.ridge]
        yield from linear
        fitted = list(linear)
        if settings.residual_epochs:
            network = fit_residual(_best(linear).model, features, labels, settings.residual_epochs, self._seed)
            for share in settings.residual_shares:
                shared = copy.deepcopy(network)
                shared.residual_share.fill_(share)
                fitted.append(self._scored(f"{_best(linear).name}_network_{share:g}", shared))
                yield fitted[-1]
        yield from self._refined(_best([zero, *fitted]), features)

    def _labels(self, rows: NDArray[np.int64]) -> Array:
        settings, profile = self._settings, self._profile
        simulator = make_simulator(profile, self._simulation, settings.label_envs)
        weights = inertia_weights(inertia_diagonal(profile, self._simulation.physics))
        labeller = Labeller(simulator, weights, settings.label_regularisation, settings.delta_limit)
        return label_transitions(labeller, self._fit, rows, self._cache)

    def _refined(self, start: Candidate, features: Array) -> Iterator[Candidate]:
        settings = self._settings.refine
        if not settings.iterations:
            return
        weights = SharedWeights.of(self._profile, features)
        num_envs = _REFINE_SEGMENTS_AT_ONCE * (weights.size + 1)
        simulator = make_simulator(self._profile, self._simulation, num_envs)
        segments = self._refine_segments(horizon_steps(settings.horizon_s, simulator.control_dt))
        refiner = Refiner(simulator, self._profile, segments, weights, start.model, settings.prior)
        done = [self._cache / f"refine_{start.name}_{i}.npy" for i in range(settings.iterations)]
        with track("align: refine", settings.iterations) as tracker:
            for i, file in enumerate(done):
                if file.exists():
                    refiner.value = read_array(file)
                else:
                    refiner.step()
                    write_array(file, refiner.value)
                candidate = self._scored(f"{start.name}_refined_{i + 1}", refiner.model)
                tracker.advance(note=f"validation {candidate.validation[HORIZONS_S[-1]]:.1f} mm")
                yield candidate

    def _refine_segments(self, steps: int) -> Segments:
        segments = cut_segments(self._fit, self._profile, steps)
        count = min(self._settings.refine.segments, segments.num)
        return segments.take(np.unique(np.linspace(0, segments.num - 1, count).astype(np.intp)))

    def _scored(self, name: str, model: DeltaActionModel) -> Candidate:
        return Candidate(name, model, self._errors(model, self._validation_segments))

    def _errors(self, model: DeltaActionModel, segments: Segments) -> dict[float, float]:
        distance = replay_distance(self._simulator, self._profile, segments, DeltaCorrection(model.predict))
        return horizon_errors(distance, self._simulator.control_dt)

    def _mean_abs_delta(self, model: DeltaActionModel) -> Array:
        features = transition_features(self._heldout, self._heldout.transitions())
        with torch.no_grad():
            delta = model.bound(model.unbounded(torch.as_tensor(features)))
        return np.abs(delta.numpy()).mean(axis=0)


def _best(candidates: list[Candidate]) -> Candidate:
    """Least validation error at the longest horizon; the simpler, earlier one where equal."""
    return min(candidates, key=lambda c: c.validation[HORIZONS_S[-1]])


def transition_features(rollout: Rollout, rows: NDArray[np.int64]) -> Array:
    """Features (n, J, F) of recorded transitions; the previous row is the same one at an episode's start."""
    starts = np.append(True, rollout.episode[1:] != rollout.episode[:-1])
    before = np.where(starts[rows], rows, rows - 1)
    raw = model_inputs(
        rollout.state.take(rows),
        rollout.joint_target[rows],
        rollout.state.joint_vel[before],
        rollout.joint_target[before],
    )
    return joint_features(tuple(torch.as_tensor(x) for x in raw)).numpy()
