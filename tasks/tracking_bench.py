"""`asap bench tracking`: the recipes come from the presets, results lie in evaluation/tracking."""

from __future__ import annotations

from pathlib import Path

import yaml

from asap_core.config import Params
from asap_core.errors import ConfigError, check_names
from asap_core.evaluation.tracking_bench.bench import PARTS, Places, bench
from asap_core.evaluation.tracking_bench.learning import Recipe
from asap_core.robots import get_profile
from tasks.bench_places import shared_folder
from tasks.item_store import code_version
from tasks.stages import Figures

_CODE = (
    "asap_core/rotations.py",
    *(f"asap_core/{room}" for room in ("robots", "simulators", "environments", "training")),
)


def bench_tracking(
    root: Path,
    only: str | None = None,
    seeds: int = 3,
    minutes: float | None = None,
    threads: int | None = None,
) -> Figures:
    """Run the bench or parts of it; trainings that were finished before with the same code are not run again.

    Args:
        only: one or several of `PARTS`, with commas between them.
        seeds: trainings of each clip.
        minutes: limit of each training in place of its own.
        threads: of each training in place of the preset's, so that several can run at once.

    Raises:
        UnknownNameError: no such part.
        ConfigError: a number that is not above 0.
        InputFileError: the shared clips are missing.
    """
    parts = tuple(only.split(",")) if only else PARTS
    check_names("part of the bench", parts, PARTS)
    if seeds < 1 or (minutes is not None and minutes <= 0) or (threads is not None and threads < 1):
        raise ConfigError(f"--seeds {seeds}, --minutes {minutes}, --threads {threads}: expected numbers above 0")
    shared = shared_folder(root)
    cache, out = root / ".asap" / "tracking_bench", root / "evaluation" / "tracking"
    places = Places(shared, cache, out, code_version(*_CODE))
    profile = get_profile("g1_23dof")
    asap, fast = recipe_of(root, "asap", threads), recipe_of(root, "fast", threads)
    return dict(bench(profile, asap, fast, places, parts, seeds, minutes))


def recipe_of(root: Path, preset: str, threads: int | None = None) -> Recipe:
    """The sections of preset `preset` over those of params.yaml, with other threads where they are given."""
    sections = [
        yaml.safe_load(path.read_text()) for path in (root / "params.yaml", root / "presets" / f"{preset}.yaml")
    ]
    params = Params.model_validate({**sections[0], **sections[1]})
    simulation = params.simulation if threads is None else params.simulation.model_copy(update={"threads": threads})
    return Recipe(simulation, params.tracking, params.ppo, params.pretrain.physics_dt)
