"""Fitting and choosing a delta action model from rollouts alone; nothing here knows what the target's physics are.

Candidates are fitted on the split `fit`, chosen by 1.0 s replay error on `validation`, and reported on `heldout`,
which no fit and no choice has seen. Zero correction is always a candidate.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from asap_core.alignment.acceptance import Acceptance, Check, beats_zero, bounded, in_range, work_bounded
from asap_core.alignment.delta_model import DeltaActionModel, DeltaCorrection, model_inputs
from asap_core.alignment.labels import (
    Labeller,
    inertia_diagonal,
    inertia_weights,
    label_transitions,
    read_array,
    write_array,
)
from asap_core.alignment.linear_fit import fit_linear, fit_residual
from asap_core.alignment.refine import Refiner, SharedWeights, joints_of_group
from asap_core.alignment.replay import (
    HORIZONS_S,
    Segments,
    cut_segments,
    horizon_errors,
    horizon_steps,
    replay_distance,
)
from asap_core.alignment.settings import AlignSettings
from asap_core.metrics import bootstrap_interval
from asap_core.progress import track
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.rollouts.settings import Split
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.settings import SimulationSettings

Array = NDArray[np.floating]
_MOST_REPLAY_ENVS = 64
_REFINE_SEGMENTS_AT_ONCE = 8
_MEMBERS = 8
"""Of an ensemble."""


@dataclass(frozen=True)
class Candidate:
    """A model and what it reached on the validation split."""

    name: str
    model: DeltaActionModel
    validation: dict[float, float]
    """Mean replay error, mm by horizon in s."""
    segment_mm: Array
    """(S,) of each validation segment, over the longest horizon."""
    members: tuple[DeltaActionModel, ...] = ()
    """An ensemble around the model: how the weights scatter with the episodes that were recorded."""


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
    uncertainty: Array | None
    """(J,) rad, standard deviation of the ensemble's corrections there; None where the chosen model has none."""
    acceptance: Acceptance

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
        chosen = self._chosen(candidates)
        zero_mm, zero_each = self._errors(candidates[0].model, self._heldout_segments)
        mm, each = self._errors(chosen.model, self._heldout_segments)
        features = transition_features(chosen.model, self._heldout, self._heldout.transitions())
        delta, checks = self._checked(chosen.model, features)
        return DeltaFit(
            chosen=chosen,
            candidates=tuple(candidates),
            heldout_zero=zero_mm,
            heldout=mm,
            mean_abs_delta=np.abs(delta).mean(axis=0),
            uncertainty=_scatter(chosen.members, features),
            acceptance=Acceptance((beats_zero(zero_each, each, self._heldout_segments.episode.tolist()), *checks)),
        )

    def _candidates(self) -> Iterator[Candidate]:
        settings = self._settings
        rows = self._fit.transitions()
        zero = self._scored("zero", self._new_model())
        yield zero
        features = transition_features(zero.model, self._fit, rows)
        fitted = [zero]
        for candidate in self._refined(zero.model, features):
            fitted.append(candidate)
            yield candidate
        if settings.ridge or settings.residual_epochs:
            labels = np.where(joints_of_group(self._profile, settings.joints), self._labels(rows), 0.0)
            for ridge in settings.ridge:
                linear = fit_linear(self._new_model(), features, labels, ridge)
                fitted.append(self._scored(f"linear_ridge_{ridge:g}", linear))
                yield fitted[-1]
            yield from self._with_network(_best(fitted), features, labels)

    def _with_network(self, start: Candidate, features: Array, labels: Array) -> Iterator[Candidate]:
        settings = self._settings
        if settings.residual_epochs:
            network = fit_residual(start.model, features, labels, settings.residual_epochs, self._seed)
            for share in settings.residual_shares:
                shared = copy.deepcopy(network)
                shared.residual_share.fill_(share)
                yield self._scored(f"{start.name}_network_{share:g}", shared)

    def _chosen(self, candidates: list[Candidate]) -> Candidate:
        """The best on the validation split, if it surely beats zero, which is the first."""
        best, zero = _best(candidates), candidates[0]
        episodes = [int(e) for e in self._validation_segments.episode]
        return best if bootstrap_interval(zero.segment_mm - best.segment_mm, episodes).low > 0 else zero

    def _new_model(self) -> DeltaActionModel:
        return DeltaActionModel(self._profile, self._settings.delta_limit)

    def _labels(self, rows: NDArray[np.int64]) -> Array:
        settings, profile = self._settings, self._profile
        simulator = make_simulator(profile, self._simulation, settings.label_envs)
        weights = inertia_weights(inertia_diagonal(profile, self._simulation.physics))
        labeller = Labeller(simulator, weights, settings.label_regularisation, settings.delta_limit)
        return label_transitions(labeller, self._fit, rows, self._cache)

    def _refined(self, start: DeltaActionModel, features: Array) -> Iterator[Candidate]:
        settings = self._settings.refine
        if not settings.iterations:
            return
        weights = SharedWeights.of(self._profile, features, self._settings.joints)
        simulator = make_simulator(self._profile, self._simulation, _REFINE_SEGMENTS_AT_ONCE * (weights.size + 1))
        refiner = Refiner(simulator, self._profile, weights, start, settings.prior)
        rounds = [(stage, i) for stage in range(len(settings.horizons_s)) for i in range(settings.iterations)]
        with track("align: refine", len(rounds)) as tracker:
            for stage, i in rounds:
                name = f"refined_{stage + 1}_{settings.horizons_s[stage]:g}s_{i + 1}"
                file = self._cache / f"{name}.npy"
                if file.exists():
                    refiner.memory = read_array(file)
                else:
                    segments = self._refine_segments(settings.horizons_s[stage], stage * settings.iterations + i)
                    if stage == i == 0:
                        refiner.start_with_delay(segments)
                    refiner.step(segments, settings.step_shrink**stage)
                    write_array(file, refiner.memory)
                members = refiner.ensemble(_MEMBERS, self._seed)
                candidate = replace(self._scored(name, refiner.model), members=members)
                tracker.advance(note=f"validation {candidate.validation[HORIZONS_S[-1]]:.1f} mm")
                yield candidate

    def _refine_segments(self, horizon_s: float, turn: int) -> Segments:
        """Segments of the fit split, spread over all of it, others each turn."""
        segments = cut_segments(self._fit, self._profile, horizon_steps(horizon_s, self._simulator.control_dt))
        stride = max(1, round(segments.num * horizon_s / self._settings.refine.seconds))
        return segments.take(np.arange(turn % stride, segments.num, stride))

    def _scored(self, name: str, model: DeltaActionModel) -> Candidate:
        return Candidate(name, model, *self._errors(model, self._validation_segments))

    def _errors(self, model: DeltaActionModel, segments: Segments) -> tuple[dict[float, float], Array]:
        correction = DeltaCorrection(model.predict, self._simulator.control_dt)
        distance = replay_distance(self._simulator, self._profile, segments, correction)
        return horizon_errors(distance, self._simulator.control_dt), 1000.0 * distance.mean(axis=1)

    def _checked(self, model: DeltaActionModel, features: Array) -> tuple[Array, list[Check]]:
        """Corrections (n, J) rad of the held-out transitions, and what acceptance asks of them."""
        rows = self._heldout.transitions()
        fitted = transition_features(model, self._fit, self._fit.transitions())
        delta = _corrections(model, features)
        limits, profile = self._settings.acceptance, self._profile
        pos, vel = self._heldout.state.joint_pos[rows], self._heldout.state.joint_vel[rows]
        torque = profile.kp * (self._heldout.joint_target[rows] - pos) - profile.kd * vel
        torque = np.clip(torque, -profile.joint_torque_limit, profile.joint_torque_limit)
        return delta, [
            bounded(delta, float(model.limit), limits.max_at_bound),
            in_range(fitted, features, limits.min_in_range),
            work_bounded(delta, torque, vel, profile.kp, limits.max_work_share),
        ]


def _best(candidates: list[Candidate]) -> Candidate:
    """Least validation error at the longest horizon; the simpler, earlier one where equal."""
    return min(candidates, key=lambda c: c.validation[HORIZONS_S[-1]])


def _corrections(model: DeltaActionModel, features: Array) -> Array:
    """(n, J) rad."""
    with torch.no_grad():
        delta: Array = model.bound(model.unbounded(torch.as_tensor(features))).numpy()
    return delta


def _scatter(members: tuple[DeltaActionModel, ...], features: Array) -> Array | None:
    """(J,) rad, root mean square over transitions of the members' standard deviation."""
    if not members:
        return None
    variance: Array = np.stack([_corrections(m, features) for m in members]).var(axis=0, ddof=1)
    return np.sqrt(variance.mean(axis=0))


def transition_features(model: DeltaActionModel, rollout: Rollout, rows: NDArray[np.int64]) -> Array:
    """Features (n, J, F) at the first physics step of recorded transitions.

    Episodes start as `DeltaCorrection` does after a reset. Accelerations are means over the control step before.
    """
    starts = np.append(True, rollout.episode[1:] != rollout.episode[:-1])
    pos, target = rollout.state.joint_pos, rollout.joint_target
    last = np.where(starts[:, None], pos, np.roll(target, 1, axis=0))
    earlier = np.where(starts[:, None], pos, np.roll(last, 1, axis=0))
    before = np.where(starts[rows], rows, rows - 1)
    acc = (rollout.state.joint_vel[rows] - rollout.state.joint_vel[before]) / rollout.control_dt
    raw = model_inputs(rollout.state.take(rows), acc, target[rows], last[rows], earlier[rows])
    with torch.no_grad():
        return model.features(tuple(torch.as_tensor(x) for x in raw)).numpy()
