"""Fits rivals on a target's rollouts fold by fold and scores them on the motions held out; every score is kept."""

from __future__ import annotations

import time
from functools import cached_property
from pathlib import Path

from asap_core.alignment.corrected import Corrected, Rival
from asap_core.evaluation.alignment_bench.cells import Cell
from asap_core.evaluation.alignment_bench.collect import collect_motion
from asap_core.evaluation.alignment_bench.score import SegmentErrors, segment_errors
from asap_core.evaluation.alignment_bench.splits import MOTIONS, Fold, fold_of
from asap_core.evaluation.alignment_bench.targets import target_engine, target_physics
from asap_core.files import content_key
from asap_core.progress import track
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout, concatenate
from asap_core.simulators.settings import SimulationSettings


class Yardstick:
    """One target.

    Args:
        target: its name in `ALL_TARGETS`.
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
        self._world = settings.model_copy(update={"backend": target_engine(target)})
        self._profile = profile
        self._settings = settings
        self._shared = shared
        self._cache = cache
        self._code = code
        self._zeros: dict[str, SegmentErrors] = {}

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
                    self._world,
                    self._cache / "rollouts",
                    self._code,
                )
                tracker.advance(note=motion.name)
        return out

    def part(self, motions: tuple[str, ...]) -> Rollout:
        """The episodes of some motions."""
        return concatenate([self.rollouts[name] for name in motions])

    def cell(self, rival: Rival, fold: str, seed: int = 0) -> Cell:
        """Fit and score one fold of `splits.PARTS`, or read what an earlier run kept."""
        parts = fold_of(fold)
        key = self.key(rival, seed, parts)
        path = self._cache / "scores" / self.target / f"{rival.name}_{fold}_{key}.json"
        if path.exists():
            return Cell.load(path)
        wall, cpu = time.perf_counter(), time.process_time()
        corrected = self.fitted(rival, seed, parts, key)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        made = Cell(
            target=self.target,
            rival=rival.name,
            fold=fold,
            seed=seed,
            code=self._code,
            errors=self._errors(corrected, fold),
            zero=self._zero(fold),
            chosen=corrected.name,
            report=dict(corrected.report),
            wall_s=wall,
            cpu_s=cpu,
        )
        made.save(path)
        return made

    def _errors(self, corrected: Corrected, fold: str) -> SegmentErrors:
        return segment_errors(corrected, self.part(fold_of(fold).heldout), self._profile, self._settings)

    def _zero(self, fold: str) -> SegmentErrors:
        if fold not in self._zeros:
            self._zeros[fold] = self._errors(Corrected("zero", self._settings.physics), fold)
        return self._zeros[fold]

    def key(self, rival: Rival, seed: int, parts: Fold) -> str:
        """Of everything that a fit depends on."""
        data = [self._physics.model_dump(mode="json"), self._world.backend, parts.__dict__]
        data.append(self._settings.physics.model_dump(mode="json"))
        return content_key(data, dict(rival.identity), seed, self._code)

    def fitted(self, rival: Rival, seed: int, parts: Fold, key: str) -> Corrected:
        """The rival's fit on the fold; a killed one goes on."""
        return rival.fit(self.part(parts.fit), self.part(parts.validation), seed, self._cache / "fits" / key)
