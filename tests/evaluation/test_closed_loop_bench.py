"""The closed-loop table: levels, arms, intervals and differences on made cells, and a whole run at the least size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from asap_core.alignment.corrected import Corrected, ZeroRival
from asap_core.alignment.delta_model import DeltaActionModel
from asap_core.alignment.features import OWN_FEATURES
from asap_core.environments.disturbances import DisturbanceSettings
from asap_core.environments.randomisation import RandomisationSettings
from asap_core.errors import ConfigError, UnknownNameError
from asap_core.evaluation.alignment_bench.splits import fold
from asap_core.evaluation.closed_loop_bench import finetuning
from asap_core.evaluation.closed_loop_bench.arms import ARMS, DEFAULT_ARMS
from asap_core.evaluation.closed_loop_bench.bench import bench
from asap_core.evaluation.closed_loop_bench.cells import Cells, Places
from asap_core.evaluation.closed_loop_bench.motions import DEFAULT_MOTIONS, LEVEL_OF, LEVELS, fold_without
from asap_core.evaluation.closed_loop_bench.paper import FIGURES, TABLE_IV
from asap_core.evaluation.closed_loop_bench.settings import Recipe
from asap_core.evaluation.closed_loop_bench.tables import difference_table, level_table, shown
from asap_core.evaluation.published import POLICY_NAMES, load_published
from asap_core.metrics import METRIC_NAMES
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.rollouts import Rollout
from asap_core.training.evaluate import QuickScore
from asap_core.training.policy import OnnxPolicy
from tasks.bench import run_bench
from tasks.closed_loop_bench import bench_closed_loop, recipe_of

ROOT = Path(__file__).resolve().parents[2]
PROFILE = get_profile("g1_23dof")


def test_two_motions_of_each_level_each_with_a_fit_that_has_not_seen_it() -> None:
    assert set(LEVEL_OF) == set(POLICY_NAMES)
    assert [sum(LEVEL_OF[m] == level for m in DEFAULT_MOTIONS) for level in LEVELS] == [2, 2, 2]
    for motion in LEVEL_OF:
        parts = fold_without(motion)
        assert motion in parts.heldout
        assert motion not in parts.fit + parts.validation
    assert fold_without("CR7_level1") == fold(0)


def test_papers_table_is_whole() -> None:
    methods = {arm.paper for arm in ARMS.values() if arm.paper}
    for levels in TABLE_IV.values():
        assert set(levels) == set(LEVELS)
        for rows in levels.values():
            assert set(rows) == methods
            assert {len(row) for row in rows.values()} == {len(FIGURES)}
    assert TABLE_IV["IsaacSim"]["hard"]["ASAP"] == (100.0, 129.0, 56.5, 3.72, 6.52)
    assert TABLE_IV["Genesis"]["medium"]["Vanilla"][0] == 94.3


def test_the_task_is_that_of_the_end_of_a_pretraining() -> None:
    recipe = recipe_of(ROOT, seeds=3, iterations=7)
    task = recipe.task(randomised=False)
    assert (task.termination.distance_start, task.termination.distance_end) == (0.8, 0.8)
    assert (task.penalty_scale.start, task.penalty_scale.degree) == (1.0, 0.0)
    assert (task.soft_limits.torque.start, task.soft_limits.dof_pos.start) == (0.85, 0.95)
    assert (task.randomisation, task.disturbances) == (RandomisationSettings(), DisturbanceSettings())
    varied = recipe.task(randomised=True)
    assert varied.randomisation.kp == (0.925, 1.05)
    assert varied.disturbances.delay_steps == (1, 2)
    assert recipe.ppo.hidden == (512, 256, 128)
    assert recipe.finetune.iterations == 7


def made_cells(errors: Mapping[tuple[str, int], float], success: float = 1.0) -> pd.DataFrame:
    """Two motions of level `hard` with 4 starts; error = that of (arm, seed) + 10 for the second motion + start."""
    rows = [
        {
            "target": "altered",
            "level": "hard",
            "motion": motion,
            "arm": arm,
            "seed": seed,
            "start": start,
            "corrected_by": "zero",
            "wall_s": 2.0,
            "cpu_s": 3.0,
            **dict.fromkeys(METRIC_NAMES, 1.0),
            "success": success if arm == "asap" else 1.0,
            "E_g_mpjpe": value + 10.0 * (motion == "CR7_level1") + start,
        }
        for (arm, seed), value in errors.items()
        for motion in ("CR7_level1", "jump_forward_level3")
        for start in range(4)
    ]
    return pd.DataFrame(rows)


ERRORS = {("vanilla", 0): 100.0, **{("finetune_only", k): 90.0 + k for k in range(3)}}
ERRORS |= {("asap", k): 80.0 + 2.0 * k for k in range(3)}


def test_intervals_are_over_seeds_where_there_are_any_and_over_starts_else() -> None:
    table = level_table(made_cells(ERRORS)).set_index("arm")
    assert list(table.index) == ["vanilla", "finetune_only", "asap"]
    asap, vanilla = table.loc["asap"], table.loc["vanilla"]
    assert asap["E_g_mpjpe"] == pytest.approx(80 + 2 + 5 + 1.5)
    half = 4.302653 * 2.0 / np.sqrt(3)
    assert asap["E_g_mpjpe_high"] - asap["E_g_mpjpe"] == pytest.approx(half, rel=1e-5)
    assert (asap["interval_over"], vanilla["interval_over"]) == ("seed", "start")
    assert vanilla["E_g_mpjpe_high"] - vanilla["E_g_mpjpe"] == pytest.approx(
        3.182446 * np.std([0, 1, 2, 3], ddof=1) / 2
    )
    assert asap["paper_IsaacSim_E_g_mpjpe"] == 129.0
    assert np.isnan(table.loc["finetune_only"]["paper_Genesis_success"])
    assert asap["cell_cpu_s"] == 3.0
    text = shown(table.reset_index())
    assert text["altered hard asap/E_g_mpjpe"] == f"88.5 [{88.5 - half:.1f}, {88.5 + half:.1f}]"
    assert text["altered hard asap/paper: IsaacSim"] == "100 · 129 · 56.5 · 3.72 · 6.52"
    assert text["altered hard finetune_only/paper: IsaacSim"] == "–"


def test_differences_are_run_by_run_and_judged() -> None:
    table = difference_table(made_cells(ERRORS)).set_index(["level", "arm", "control"])
    assert set(table.index.get_level_values("level")) == {"all", "hard"}
    row = table.loc[("all", "asap", "finetune_only")]
    assert row["E_g_mpjpe_difference"] == pytest.approx(-9.0)
    assert row["high"] == pytest.approx(-9.0 + 4.302653 * 1.0 / np.sqrt(3), rel=1e-5)
    assert row["runs"] == 24
    assert row["not_worse"]
    assert table.loc[("hard", "asap", "vanilla")]["E_g_mpjpe_difference"] == pytest.approx(-18.0)
    assert table.loc[("all", "finetune_only", "vanilla")]["not_worse"]


def test_a_worse_arm_and_one_of_lower_success_are_worse() -> None:
    worse = made_cells(ERRORS | {("asap", k): 110.0 for k in range(3)})
    table = difference_table(worse).set_index(["level", "arm", "control"])
    assert not table.loc[("all", "asap", "vanilla")]["not_worse"]
    failing = difference_table(made_cells(ERRORS, success=0.5)).set_index(["level", "arm", "control"])
    assert not failing.loc[("all", "asap", "finetune_only")]["not_worse"]


class Knows(ZeroRival):
    """A fit of nothing, with a delta of a little weaker drives."""

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"rival": self.name}

    def fit(self, fit: Rollout, validation: Rollout, seed: int, cache: Path) -> Corrected:
        assert "side_jump_level1" not in {*fit.motion, *validation.motion}
        model = DeltaActionModel(PROFILE, 1.0)
        with torch.no_grad():
            model.linear[:, OWN_FEATURES.index("torque")] = -0.1
        return Corrected("made", self.physics, model)


def least_recipe() -> Recipe:
    recipe = recipe_of(ROOT, seeds=1, iterations=1)
    ppo = recipe.ppo.model_copy(update={"num_envs": 4, "steps_per_env": 4})
    warm = recipe.warm_start.model_copy(update={"critic_iterations": 1})
    evaluate = recipe.evaluate.model_copy(update={"starts": 2})
    simulation = recipe.simulation.model_copy(update={"threads": 1})
    return Recipe(simulation, recipe.tracking, ppo, recipe.finetune, warm, evaluate)


@pytest.mark.slow
def test_every_arm_runs_and_is_kept(shared_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rivals = {n: Knows(PhysicsSettings(), n) for n in ("delta", "sysid", "two_stage", "delta_dynamics")}
    places = Places(shared_dir, tmp_path / "cache", tmp_path / "alignment", "code", "code")
    given = (["altered"], ["side_jump_level1"], DEFAULT_ARMS, PROFILE, least_recipe(), rivals, places, tmp_path / "out")
    first = bench(*given)
    assert list(first["arm"]) == list(DEFAULT_ARMS)
    by_arm = first.set_index("arm")
    assert by_arm.loc["vanilla"]["success"] == 1.0
    errors = by_arm["E_g_mpjpe"]
    assert errors["vanilla"] != errors["fixed_point"]
    assert len(list((tmp_path / "cache" / "policies").iterdir())) == sum(ARMS[a].has_seeds for a in DEFAULT_ARMS)
    assert not list((tmp_path / "cache" / "running").iterdir())
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"cells.csv", "table.csv", "differences.csv", "table.png"}
    monkeypatch.setattr(Cells, "_run", lambda *args: pytest.fail("computed again"))
    pd.testing.assert_frame_equal(bench(*given), first)


@pytest.mark.parametrize(("later", "kept"), [(80.0, False), (120.0, True)])
def test_the_published_policy_stays_unless_training_helped_where_it_was_trained(
    shared_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: float, kept: bool
) -> None:
    scores = iter([100.0, later])
    monkeypatch.setattr(finetuning, "quick_score", lambda *given: QuickScore(1.0, 1.0, next(scores)))
    recipe = least_recipe()
    finetuner = finetuning.Finetuner(PROFILE, recipe, shared_dir, tmp_path, "code")
    world = finetuning.World(Corrected("zero", recipe.simulation.physics), "nominal")
    path = finetuner.policy("side_jump_level1", 0, ARMS["finetune_only"], world, "test")
    published, reference = load_published(shared_dir, "side_jump_level1", PROFILE)
    policy = OnnxPolicy(path)
    policy.check(PROFILE, reference)
    seen = np.random.default_rng(0).normal(size=(5, 380)).astype(np.float32)
    assert np.allclose(policy(seen), published(seen), atol=1e-4) == kept
    assert finetuner.policy("side_jump_level1", 0, ARMS["finetune_only"], world, "test") == path


def test_unknown_names_and_numbers_are_refused() -> None:
    for changed, message in (({"arms": "asap,vanila"}, "vanilla"), ({"motions": "walk"}, "CR7_level1")):
        with pytest.raises(UnknownNameError, match=message):
            bench_closed_loop(ROOT, **changed)
    with pytest.raises(UnknownNameError, match="altered_delay"):
        bench_closed_loop(ROOT, targets="robot")
    with pytest.raises(ConfigError, match="--iterations 0"):
        bench_closed_loop(ROOT, iterations=0)
    with pytest.raises(ConfigError, match=r"--minutes; it has --targets, --motions"):
        run_bench("closed-loop", ROOT, minutes=1.0)
    with pytest.raises(ConfigError, match=r"bench doctor: found --seeds; it has none"):
        run_bench("doctor", ROOT, seeds=1)
