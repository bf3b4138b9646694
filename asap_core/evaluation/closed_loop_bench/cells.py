"""One cell of the closed-loop table: an arm with one seed on one motion, run in the target from paired starts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from asap_core.alignment.corrected import Corrected, Rival
from asap_core.alignment.corrected_file import load_corrected, save_corrected
from asap_core.alignment.inverse import InvertedSimulator
from asap_core.evaluation.alignment_bench.targets import target_physics
from asap_core.evaluation.alignment_bench.yardstick import Yardstick
from asap_core.evaluation.closed_loop import Contestant, closed_loop
from asap_core.evaluation.closed_loop_bench.arms import ARMS, Arm
from asap_core.evaluation.closed_loop_bench.finetuning import Finetuner, World
from asap_core.evaluation.closed_loop_bench.motions import LEVEL_OF, fold_without
from asap_core.evaluation.closed_loop_bench.settings import Recipe
from asap_core.evaluation.published import load_published
from asap_core.files import content_key, read_json, write_json
from asap_core.metrics import METRIC_NAMES
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.protocol import Simulator
from asap_core.training.policy import OnnxPolicy

_START_SEED = 7919
"""Of the evaluation's starts: none that rollouts were collected from."""
_FIT_SEED = 0
Row = dict[str, Any]


@dataclass(frozen=True)
class Places:
    """Files of the bench."""

    shared: Path
    """Holds data/asap."""
    cache: Path
    """Policies and cells."""
    alignment_cache: Path
    """Rollouts and fits, those of `asap bench alignment`."""
    code: str
    """Digest of the code that cells depend on."""
    alignment_code: str
    """The same of rollouts and fits."""


class Cells:
    """All cells of one target.

    Args:
        target: its name among those of the alignment bench.
        profile: the robot of the published policies.
        recipe: see `Recipe`.
        rivals: ways of alignment by name.
        places: files.
    """

    def __init__(
        self, target: str, profile: RobotProfile, recipe: Recipe, rivals: Mapping[str, Rival], places: Places
    ) -> None:
        self.target = target
        self._physics = target_physics(target)
        self._profile = profile
        self._recipe = recipe
        self._rivals = rivals
        self._places = places
        self._finetuner = Finetuner(profile, recipe, places.shared, places.cache, places.code)
        self._fits: dict[str, World] = {}

    @cached_property
    def _yardstick(self) -> Yardstick:
        p = self._places
        settings = self._recipe.simulation
        return Yardstick(self.target, self._profile, settings, p.shared, p.alignment_cache, p.alignment_code)

    def rows(self, motion: str, arm: str, seed: int) -> list[Row]:
        """The errors of each start; trained, fitted and run now unless an earlier run has."""
        how = ARMS[arm]
        world = self._world(how, motion)
        parts = [self._physics.model_dump(mode="json"), motion, arm, seed if how.has_seeds else 0, world.identity]
        recipe = self._recipe
        rest = [recipe.training_identity(), recipe.evaluate.model_dump(mode="json"), self._places.code]
        path = self._places.cache / "cells" / self.target / f"{motion}_{arm}_{seed}_{content_key(parts, rest)}.json"
        if not path.exists():
            write_json(path, self._run(motion, arm, seed, world))
        rows: list[Row] = read_json(path)
        return rows

    def _world(self, arm: Arm, motion: str) -> World:
        """Where `arm` is trained, or whose delta it uses; of fits, those that have not seen the motion."""
        if arm.alignment is not None:
            return self._aligned(arm.alignment, motion)
        physics = self._physics if arm.trained_in == "target" else self._recipe.simulation.physics
        return World(Corrected("zero", physics), physics.model_dump(mode="json"))

    def _aligned(self, name: str, motion: str) -> World:
        rival, parts = self._rivals[name], fold_without(motion)
        key = self._yardstick.key(rival, _FIT_SEED, parts)
        if key not in self._fits:
            self._fits[key] = World(self._fitted(rival, motion, key), key)
        return self._fits[key]

    def _fitted(self, rival: Rival, motion: str, key: str) -> Corrected:
        path = self._places.cache / "fitted" / f"{rival.name}_{key}.pt"
        if path.exists():
            return load_corrected(path, self._profile)
        corrected = self._yardstick.fitted(rival, _FIT_SEED, fold_without(motion), key)
        if corrected.residual is None:
            save_corrected(corrected, path)
        return corrected

    def _run(self, motion: str, arm: str, seed: int, world: World) -> list[Row]:
        how, began = ARMS[arm], (time.perf_counter(), time.process_time())
        policy, reference = load_published(self._places.shared, motion, self._profile)
        if how.has_seeds:
            label = f"{arm} {motion} seed {seed}"
            policy = OnnxPolicy(self._finetuner.policy(motion, seed, how, world, label))
            policy.check(self._profile, reference)
        who = Contestant(arm, seed, policy, policy.contract.rule)
        worlds = {"target": self._deployed(how, world.corrected)}
        settings = self._recipe.evaluate
        found = closed_loop([who], worlds, reference, self._profile, settings, _START_SEED, lambda note: None)
        spent = {"wall_s": time.perf_counter() - began[0], "cpu_s": time.process_time() - began[1]}
        about = {"target": self.target, "level": LEVEL_OF[motion], "motion": motion, "arm": arm, "seed": seed}
        about |= {"corrected_by": world.corrected.name, **spent}
        return [{**about, "start": r.start, **{m: r.errors.as_dict()[m] for m in METRIC_NAMES}} for r in found.rows]

    def _deployed(self, arm: Arm, corrected: Corrected) -> Simulator:
        """The target, with the delta's inverse before it where the arm acts through one."""
        starts = self._recipe.evaluate.starts
        simulator = make_simulator(self._profile, self._recipe.simulation, starts, self._physics)
        if arm.solve is None or corrected.delta is None:
            return simulator
        return InvertedSimulator(simulator, corrected.delta, arm.solve)
