"""Fits rivals on a target's rollouts fold by fold and scores them on the motions held out; every score is kept."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.alignment.corrected import Corrected, Rival, ZeroRival
from asap_core.evaluation.alignment_bench.collect import collect_motion
from asap_core.evaluation.alignment_bench.score import SegmentErrors, closed_share, segment_errors
from asap_core.evaluation.alignment_bench.splits import MOTIONS, NUM_FOLDS, Fold, fold, in_sample
from asap_core.evaluation.alignment_bench.targets import target_physics
from asap_core.files import content_key, read_json, write_json
from asap_core.metrics import Interval
from asap_core.progress import track
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout, concatenate
from asap_core.simulators.settings import SimulationSettings


@dataclass(frozen=True)
class FoldScore:
    """One fit and its errors on the motions that it has not seen."""

    errors: SegmentErrors
    chosen: str
    report: Mapping[str, Any]
    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class RivalScore:
    """A rival on one target, over all folds together."""

    closed: list[Interval]
    """Share of the open-loop error closed, for each of `HORIZONS_S`."""
    error_mm: list[float]
    zero_mm: list[float]
    folds: list[FoldScore]


class Yardstick:
    """One target.

    Args:
        target: its name in `TARGETS`.
        profile: the robot of the published policies.
        settings: the nominal simulator.
        shared: folder that holds data/asap.
        cache: rollouts, unfinished fits and scores are kept under it.
        code: digest of the code that results depend on; another one computes anew.
    """

    def __init__(
        self,
        target: str,
        profile: RobotProfile,
        settings: SimulationSettings,
        shared: Path,
        cache: Path,
        code: str = "",
    ) -> None:
        self.target = target
        self._physics = target_physics(target)
        self._profile = profile
        self._settings = settings
        self._shared = shared
        self._cache = cache
        self._code = code

    @cached_property
    def rollouts(self) -> dict[str, Rollout]:
        """Motion → its episodes on the target."""
        out = {}
        with track(f"{self.target}: rollouts", len(MOTIONS)) as tracker:
            for motion in MOTIONS:
                out[motion.name] = collect_motion(
                    self._shared,
                    motion.name,
                    self._physics,
                    self._profile,
                    self._settings,
                    self._cache / "rollouts",
                    self._code,
                )
                tracker.advance(note=motion.name)
        return out

    def part(self, motions: tuple[str, ...]) -> Rollout:
        """The episodes of some motions."""
        return concatenate([self.rollouts[name] for name in motions])

    def score(self, rival: Rival, seed: int = 0) -> RivalScore:
        """Every motion held out once."""
        return self._score(rival, seed, [fold(index) for index in range(NUM_FOLDS)])

    def in_sample(self, rival: Rival, seed: int = 0) -> RivalScore:
        """Fitted, chosen and scored on all motions: the rival's own oracle, not a result."""
        return self._score(rival, seed, [in_sample()])

    def _score(self, rival: Rival, seed: int, folds: list[Fold]) -> RivalScore:
        zero = SegmentErrors.joined([self.fold_score(ZeroRival(self._settings.physics), 0, f).errors for f in folds])
        scores = [self.fold_score(rival, seed, f) for f in folds]
        errors = SegmentErrors.joined([s.errors for s in scores])
        return RivalScore(
            closed=closed_share(errors, zero),
            error_mm=errors.error_mm.mean(axis=0).tolist(),
            zero_mm=zero.error_mm.mean(axis=0).tolist(),
            folds=scores,
        )

    def fold_score(self, rival: Rival, seed: int, parts: Fold) -> FoldScore:
        """Fit and score one fold, or read what an earlier run kept."""
        key = self.key(rival, seed, parts)
        path = self._cache / "scores" / self.target / f"{rival.name}_{key}.json"
        if path.exists():
            return _from_json(read_json(path))
        wall, cpu = time.perf_counter(), time.process_time()
        corrected = self.fitted(rival, seed, parts, key)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        errors = segment_errors(corrected, self.part(parts.heldout), self._profile, self._settings)
        score = FoldScore(errors, corrected.name, corrected.report, wall, cpu)
        write_json(path, _as_json(score))
        return score

    def key(self, rival: Rival, seed: int, parts: Fold) -> str:
        """Of everything that a fit depends on."""
        data = [self._physics.model_dump(mode="json"), parts.__dict__, self._settings.physics.model_dump(mode="json")]
        return content_key(data, dict(rival.identity), seed, self._code)

    def fitted(self, rival: Rival, seed: int, parts: Fold, key: str) -> Corrected:
        """The rival's fit on the fold; a killed one goes on."""
        return rival.fit(self.part(parts.fit), self.part(parts.validation), seed, self._cache / "fits" / key)


def _as_json(score: FoldScore) -> dict[str, Any]:
    errors = {"error_mm": score.errors.error_mm.tolist(), "episode": list(score.errors.episode)}
    rest = {name: getattr(score, name) for name in ("chosen", "wall_s", "cpu_s")}
    return {**errors, **rest, "report": dict(score.report)}


def _from_json(content: dict[str, Any]) -> FoldScore:
    errors = SegmentErrors(np.array(content["error_mm"]), tuple(content["episode"]))
    return FoldScore(errors, content["chosen"], content["report"], content["wall_s"], content["cpu_s"])
