"""The whole bench: speed by preset, and trainings by clip and seed, of which finished ones are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from asap_core.environments.randomisation import RandomisationSettings
from asap_core.evaluation.tracking_bench.clips import load_clip
from asap_core.evaluation.tracking_bench.curves import draw_curves
from asap_core.evaluation.tracking_bench.learning import TASKS, Recipe, Row, at_time, learn, solved_at
from asap_core.evaluation.tracking_bench.speed import speed
from asap_core.files import atomic_file, content_key, file_name, read_json, write_json
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.training.settings import PpoSettings

PARTS = ("speed", *TASKS)
PAPERS_OBSERVATIONS = "380 and 557 inputs"
SPEED_PPO = PpoSettings(num_envs=256, steps_per_env=16, epochs=4, mini_batches=4, hidden=(256, 128, 64))
"""Batch, epochs and networks of the loops whose speed is measured."""
NEVER = "never"
Figures = dict[str, float | str]
Curves = Mapping[int, list[Row]]
"""Seed → learning curve."""


@dataclass(frozen=True)
class Places:
    """Where the bench reads and writes.

    Attributes:
        shared: holds data/asap/g1.
        cache: finished trainings are kept under it.
        out: each part's figures as JSON, and the learning curves of a clip as CSV and picture beside.
        code: digest of the code that the results depend on.
    """

    shared: Path
    cache: Path
    out: Path
    code: str


def bench(
    profile: RobotProfile,
    asap: Recipe,
    fast: Recipe,
    places: Places,
    parts: tuple[str, ...] = PARTS,
    seeds: int = 3,
    minutes: float | None = None,
) -> Figures:
    """Run `parts` and return their figures as `row/figure`.

    Args:
        profile: the robot.
        asap: the paper's terms, for speed.
        fast: what the trainings use.
        places: files.
        parts: of `PARTS`.
        seeds: trainings of each clip.
        minutes: limit of each training in place of the task's own.
    """
    figures: Figures = {}
    if "speed" in parts:
        found = _speeds(profile, asap, fast, places)
        write_json(places.out / "speed.json", found)
        figures |= found
    for part in (p for p in parts if p in TASKS):
        curves = {seed: _curve(part, seed, profile, fast, places, minutes) for seed in range(seeds)}
        found = _learnt(part, curves)
        _write(part, curves, found, fast.simulation.threads, places.out)
        figures |= found
    return figures


def _speeds(profile: RobotProfile, asap: Recipe, fast: Recipe, places: Places) -> Figures:
    recipes: dict[str, tuple[Recipe, PhysicsSettings]] = {
        f"{PAPERS_OBSERVATIONS}, 200 Hz": (asap, fast.simulation.physics),
        f"{PAPERS_OBSERVATIONS}, 200 Hz, self collision": (asap, asap.simulation.physics),
        "preset fast, 200 Hz": (fast, fast.simulation.physics),
        "preset fast, 100 Hz": (fast, fast.simulation.physics.at_step(fast.physics_dt)),
    }
    figures: Figures = {}
    for name, (recipe, physics) in recipes.items():
        velocity = recipe.tracking.reference_joint_vel
        clip = load_clip(places.shared, "squat_level1", "always", profile, physics.control_dt, velocity)
        tracking = recipe.tracking.model_copy(update={"randomisation": RandomisationSettings()})
        found = speed(profile, clip.trained, physics, tracking, SPEED_PPO, recipe.simulation.threads)
        figures |= {f"{name}: {row}": value for row, value in found.items()}
    return figures


def _curve(
    part: str, seed: int, profile: RobotProfile, recipe: Recipe, places: Places, minutes: float | None
) -> list[Row]:
    task = TASKS[part]
    limit = minutes or task.minutes
    sections = [s.model_dump(mode="json") for s in (recipe.simulation, recipe.tracking, recipe.ppo)]
    key = content_key(places.code, profile.name, task.clip, seed, limit, recipe.physics_dt, sections)
    kept = places.cache / file_name(f"{part}_{seed}_{key[:20]}.json")
    if not kept.exists():
        velocity = recipe.tracking.reference_joint_vel
        control_dt = recipe.simulation.physics.control_dt
        clip = load_clip(places.shared, task.clip, task.ground, profile, control_dt, velocity)
        write_json(kept, learn(clip, recipe, profile, limit, seed))
    rows: list[Row] = read_json(kept)
    return rows


def _learnt(part: str, curves: Curves) -> Figures:
    """Figures of each seed and the median over them; one that never solved the clip counts as endless."""
    table: dict[str, Row] = {}
    for seed, rows in curves.items():
        solved, then = solved_at(rows), at_time(rows, TASKS[part].scored_at_s)
        table[f"{part} seed {seed}"] = {
            "solved_wall_s": solved["wall_s"] if solved else np.inf,
            "of_it_evaluation_s": solved["evaluation_s"] if solved else np.inf,
            "solved_steps": solved["steps"] if solved else np.inf,
            "success": then["success"],
            "completion": then["completion"],
            "E_g_mpjpe": then["E_g_mpjpe"],
            "at_s": then["wall_s"],
            "best_success": max(row["success"] for row in rows),
            "best_completion": max(row["completion"] for row in rows),
        }
    names = list(next(iter(table.values())))
    table[f"{part} median"] = {name: float(np.median([row[name] for row in table.values()])) for name in names}
    return {
        f"{row}/{name}": value if np.isfinite(value) else NEVER
        for row, values in table.items()
        for name, value in values.items()
    }


def _write(part: str, curves: Curves, figures: Figures, threads: int, out: Path) -> None:
    rows = [{"seed": seed, **row} for seed, history in curves.items() for row in history]
    write_json(out / f"{part}.json", {"clip": TASKS[part].clip, "threads": threads, "figures": figures, "curves": rows})
    with atomic_file(out / f"{part}.csv") as partial:
        pd.DataFrame(rows).to_csv(partial, index=False)
    draw: Callable[..., object] = draw_curves(f"{TASKS[part].clip}, threads: {threads}", curves).savefig
    with atomic_file(out / f"{part}.png") as partial:
        draw(partial, format="png", dpi=110)
