"""One training from nothing with a time limit, looked at every so many steps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from asap_core.environments.settings import TrackingSettings
from asap_core.environments.side_by_side import SideBySide
from asap_core.environments.tracking import TrackingEnv
from asap_core.evaluation.tracking_bench.clips import Clip, Ground
from asap_core.progress import track
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.settings import SimulationSettings
from asap_core.training.contract import PolicyContract
from asap_core.training.evaluate import quick_score
from asap_core.training.ppo import PpoTrainer, use_threads
from asap_core.training.settings import PpoSettings

STARTS = 32
LOOK_EVERY = 100_000
"""Control steps between two evaluations, at least."""
SOLVED = 0.9
"""Success that `IN_A_ROW` evaluations must have."""
IN_A_ROW = 3
_EVALUATION_SEED = 12345


@dataclass(frozen=True)
class Task:
    """A clip to learn."""

    clip: str
    ground: Ground
    minutes: float
    scored_at_s: float
    """Wall time at which the error is read off the curve."""


TASKS = {
    "squat": Task("squat_level1", "always", 3.2, 180.0),
    "walk": Task("walk_level1", "always", 20.0, 1200.0),
    "jump": Task("jump_forward_level1", "at_start", 20.0, 1200.0),
}
Row = dict[str, float]


@dataclass(frozen=True)
class Recipe:
    """Sections of `params.yaml`."""

    simulation: SimulationSettings
    tracking: TrackingSettings
    ppo: PpoSettings
    physics_dt: float
    """s, of training; evaluations run at the nominal step."""


def learn(clip: Clip, recipe: Recipe, profile: RobotProfile, minutes: float, seed: int) -> list[Row]:
    """The learning curve: a row for each evaluation, 32 disturbed starts at the published first frame.

    The robots are side by side in a group for each thread.
    `wall_s` counts everything since the first iteration, `evaluation_s` is the part of it that evaluations took.
    """
    use_threads(1)
    threads = recipe.simulation.threads
    physics = recipe.simulation.physics.at_step(recipe.physics_dt)
    one_thread = recipe.simulation.model_copy(update={"threads": 1})
    groups = [
        TrackingEnv(
            make_simulator(profile, one_thread, recipe.ppo.num_envs // threads, physics),
            profile,
            clip.trained,
            recipe.tracking,
            threads * seed + k,
        )
        for k in range(threads)
    ]
    trainer = PpoTrainer(SideBySide(groups), recipe.ppo, seed)
    rule = PolicyContract.of(profile, clip.published, recipe.tracking).rule
    nominal = make_simulator(profile, recipe.simulation, STARTS)
    rows: list[Row] = []
    begin, looking, looked_at = time.perf_counter(), 0.0, 0
    with track(f"{clip.published.name} seed {seed}", max(1, round(60 * minutes))) as bar:
        told = 0
        while True:
            stats = trainer.iterate()
            over = time.perf_counter() - begin >= 60 * minutes
            if stats.steps - looked_at >= LOOK_EVERY or over:
                before, looked_at = time.perf_counter(), stats.steps
                score = quick_score(trainer.policy(), rule, clip.published, profile, nominal, _EVALUATION_SEED)
                looking += time.perf_counter() - before
                rows.append(
                    {
                        "steps": stats.steps,
                        "wall_s": time.perf_counter() - begin,
                        "evaluation_s": looking,
                        "success": score.success,
                        "completion": score.coverage,
                        "E_g_mpjpe": score.E_g_mpjpe,
                        "reward": stats.reward,
                        "distance_limit": stats.distance_limit,
                    }
                )
                passed = min(round(rows[-1]["wall_s"]), round(60 * minutes))
                bar.advance(passed - told, f"success {score.success:.2f} covered {score.coverage:.2f}")
                told = passed
            if over:
                return rows


def solved_at(rows: Sequence[Row]) -> Row | None:
    """The last of the first `IN_A_ROW` evaluations in a row with success of at least `SOLVED`."""
    passed = 0
    for row in rows:
        passed = passed + 1 if row["success"] >= SOLVED else 0
        if passed == IN_A_ROW:
            return row
    return None


def at_time(rows: Sequence[Row], wall_s: float) -> Row:
    """The last evaluation that was done by `wall_s`, or the first one."""
    return [row for row in rows if row["wall_s"] <= wall_s][-1] if rows[0]["wall_s"] <= wall_s else rows[0]
