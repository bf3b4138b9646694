"""`asap bench closed-loop`: task of preset asap, sizes of a CPU, results in evaluation/closed_loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from asap_core.config import Params
from asap_core.errors import ConfigError
from asap_core.evaluation.alignment_bench.bench import rivals
from asap_core.evaluation.closed_loop_bench.arms import DEFAULT_ARMS
from asap_core.evaluation.closed_loop_bench.bench import bench
from asap_core.evaluation.closed_loop_bench.cells import Places
from asap_core.evaluation.closed_loop_bench.motions import DEFAULT_MOTIONS
from asap_core.evaluation.closed_loop_bench.settings import Recipe, WarmStartSettings
from asap_core.evaluation.closed_loop_bench.tables import shown
from asap_core.robots import get_profile
from asap_core.training.ppo import use_threads
from tasks.bench_places import ALIGNMENT_CODE, shared_folder
from tasks.item_store import code_version
from tasks.stages import Figures, read_params

TARGETS = ("altered", "altered_delay")
_PPO: dict[str, Any] = {
    "learner": "lean",
    "num_envs": 256,
    "steps_per_env": 16,
    "critic_learning_rate": 7.0e-4,
    "gamma": 0.97,
    "normalise_critic": True,
}
"""Over the `ppo` of preset asap: as on a CPU, and a critic from nothing needs inputs of one scale."""
_INIT_STD = 0.3
"""Exploration, raw action; the published files do not say what theirs was at the end."""
_CODE = (*ALIGNMENT_CODE, "asap_core/evaluation/closed_loop_bench", "asap_core/evaluation/closed_loop.py")


def bench_closed_loop(
    root: Path,
    targets: str | None = None,
    motions: str | None = None,
    arms: str | None = None,
    seeds: int = 3,
    iterations: int = 40,
    out: Path | None = None,
) -> Figures:
    """Run the table or a part of it; cells that were finished before with the same code are not computed again.

    Args:
        targets, motions, arms: names with commas between them; all targets of `TARGETS`, two motions of each level and
            all arms if not given.
        seeds: trainings of each arm on each motion.
        iterations: of each fine-tuning.
        out: folder of the tables, evaluation/closed_loop if not given.

    Raises:
        UnknownNameError: no such target, motion or arm.
        ConfigError: a number that is not above 0.
        InputFileError: the shared policies or motions are missing.
    """
    if seeds < 1 or iterations < 1:
        raise ConfigError(f"--seeds {seeds}, --iterations {iterations}: expected numbers above 0")
    recipe = recipe_of(root, seeds, iterations)
    use_threads(recipe.simulation.threads)
    profile = get_profile("g1_23dof")
    align = read_params(root).align
    places = Places(
        shared=shared_folder(root),
        cache=root / ".asap" / "closed_loop_bench",
        alignment_cache=root / ".asap" / "alignment_bench",
        code=code_version(*_CODE),
        alignment_code=code_version(*ALIGNMENT_CODE),
    )
    table = bench(
        _names(targets, TARGETS),
        _names(motions, DEFAULT_MOTIONS),
        _names(arms, DEFAULT_ARMS),
        profile,
        recipe,
        {rival.name: rival for rival in rivals(profile, recipe.simulation, align)},
        places,
        out or root / "evaluation" / "closed_loop",
    )
    return dict(shown(table))


def recipe_of(root: Path, seeds: int, iterations: int) -> Recipe:
    """What the published policies see and do, by preset asap; the rest is a CPU's and of params.yaml.

    The paper's penalties, under exploration, drown what is learnt of tracking in batches this small.
    """
    given, preset = (
        yaml.safe_load(path.read_text()) for path in (root / "params.yaml", root / "presets" / "asap.yaml")
    )
    small_batch = {name: given["tracking"][name] for name in ("rewards", "termination_penalty")}
    sections = {"tracking": preset["tracking"] | small_batch, "ppo": preset["ppo"] | _PPO}
    params = Params.model_validate(given | sections)
    finetune = params.finetune.model_copy(update={"seeds": seeds, "iterations": iterations, "init_std": _INIT_STD})
    return Recipe(params.simulation, params.tracking, params.ppo, finetune, WarmStartSettings(), params.evaluate)


def _names(text: str | None, default: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.split(","))) if text else default
