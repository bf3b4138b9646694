"""The tracking bench: what counts as solved, what is kept, the peer, and ratios taken in turn."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from asap_core.errors import ConfigError, UnknownNameError
from asap_core.evaluation.tracking_bench import bench as bench_module
from asap_core.evaluation.tracking_bench.bench import Places, bench
from asap_core.evaluation.tracking_bench.clips import load_clip
from asap_core.evaluation.tracking_bench.learning import Recipe, Row, at_time, solved_at
from asap_core.evaluation.tracking_bench.peer import PlainEnv, plain_runner
from asap_core.evaluation.tracking_bench.speed import RawPhysics, in_turn
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.physics import PhysicsSettings
from asap_core.training.settings import PpoSettings
from tasks.bench import run_bench
from tasks.tracking_bench import recipe_of
from tests.asap_env import asap_params_in, make_asap_env
from tests.robot_motions import knee_bend_reference

PROFILE = get_profile("g1_23dof")


def curve(*success: float) -> list[Row]:
    return [
        {
            "steps": 1e5 * k,
            "wall_s": 10.0 * k,
            "evaluation_s": 1.0 * k,
            "success": s,
            "completion": s,
            "E_g_mpjpe": 80.0,
        }
        for k, s in enumerate(success, 1)
    ]


def test_solved_is_the_third_success_in_a_row() -> None:
    assert solved_at(curve(0.0, 0.9, 1.0, 0.8, 0.95, 0.9, 0.91, 0.0)) == curve(*[0.0] * 6, 0.91)[6]
    assert solved_at(curve(1.0, 1.0, 0.89, 1.0, 1.0)) is None


def test_the_error_is_read_at_the_last_evaluation_before_a_time() -> None:
    rows = curve(0.1, 0.2, 0.3)
    assert at_time(rows, 29.9) == rows[1]
    assert at_time(rows, 30.0) == rows[2]
    assert at_time(rows, 1.0) == rows[0]


def test_ratios_are_medians_of_rounds_after_the_first() -> None:
    """A run that takes twice as long as the first one has half of its speed; the first round does not count."""
    calls: list[str] = []

    def run(name: str, seconds: float) -> None:
        calls.append(name)
        time.sleep(5 * seconds if calls.count(name) == 1 else seconds)

    runs = {name: ((lambda n=name, s=s: run(n, s)), 100) for name, s in (("raw", 0.05), ("slow", 0.1))}
    figures = in_turn(runs, 3, lambda: calls.append("before"))
    assert calls == ["before", "raw", "slow"] * 4
    assert figures["raw/of_raw_physics"] == 1.0
    assert figures["slow/of_raw_physics"] == pytest.approx(0.5, rel=0.2)
    assert figures["slow/steps_per_s"] == pytest.approx(1000, rel=0.2)


def test_raw_physics_steps_what_the_environment_met(repo_root: Path, tmp_path: Path) -> None:
    """Ends of the raw control steps are the starts of the environment's next ones."""
    params = asap_params_in(tmp_path, repo_root)
    env = make_asap_env(params, disturbances=type(params.tracking.disturbances)())
    raw = RawPhysics(PROFILE, params.simulation.physics, 4, 1)
    raw.meet(env, [np.zeros((4, 23), np.float32)] * 3)
    met = raw.met
    for k in range(2):
        raw.met = met[k : k + 1]
        raw()
        same = [np.allclose(raw.qpos[n], met[k + 1][0][n], atol=1e-12) for n in range(4)]
        assert sum(same) >= 3, "robots that were reset apart"


def test_the_peer_is_as_wide_and_learns(tmp_path: Path) -> None:
    ppo = PpoSettings(num_envs=8, steps_per_env=6, epochs=2, mini_batches=2, hidden=(16,))
    env = PlainEnv(PROFILE, knee_bend_reference(), PhysicsSettings(), 8, 1)
    obs = env.get_observations()
    assert (obs["actor"].shape, obs["critic"].shape) == ((8, 380), (8, 557))
    runner = plain_runner(env, ppo)
    before = runner.alg.actor.mlp[0].weight.clone()
    runner.learn(2)
    assert (runner.alg.actor.mlp[0].weight - before).abs().max() > 1e-4


def test_trained_clips_stand_on_the_ground_and_start_as_published(shared_dir: Path) -> None:
    kinematics = Kinematics(PROFILE)

    def lowest(reference) -> np.ndarray:  # type: ignore[no-untyped-def]
        s = reference.state
        return kinematics.sole_heights(kinematics.forward(s.root_pos, s.root_quat, s.joint_pos)).min(axis=(1, 2))

    squat = load_clip(shared_dir, "squat_level1", "always", PROFILE, 0.02, "smoothed")
    assert lowest(squat.published).max() == pytest.approx(0.086, abs=0.001), "the published clip floats"
    assert np.abs(lowest(squat.trained)[1:]).max() < 0.01
    assert lowest(squat.trained)[0] == lowest(squat.published)[0]
    jump = load_clip(shared_dir, "jump_forward_level1", "at_start", PROFILE, 0.02, "smoothed")
    np.testing.assert_allclose((jump.published.links.pos - jump.trained.links.pos)[..., 2], 0.058, atol=0.001)


def test_finished_trainings_are_kept_and_written(
    repo_root: Path, shared_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of(repo_root, "fast")
    asked: list[int] = []

    def learn(clip: object, recipe: Recipe, profile: object, minutes: float, seed: int) -> list[Row]:
        asked.append(seed)
        return curve(0.0, 1.0, 1.0, 1.0) if seed else curve(0.0)

    monkeypatch.setattr(bench_module, "learn", learn)
    places = Places(shared_dir, tmp_path / "cache", tmp_path / "out", "code")
    first = bench(PROFILE, recipe, recipe, places, ("squat",), seeds=2)
    again = bench(PROFILE, recipe, recipe, places, ("squat",), seeds=3)
    assert asked == [0, 1, 2], "only the third seed was new"
    assert first["squat seed 1/solved_wall_s"] == 40.0
    assert first["squat seed 0/solved_wall_s"] == first["squat median/solved_wall_s"] == "never"
    assert again["squat median/solved_wall_s"] == 40.0
    written = json.loads((tmp_path / "out" / "squat.json").read_text())
    assert written["figures"] == again
    assert (written["clip"], written["threads"], len(written["curves"])) == ("squat_level1", 2, 9)
    assert (tmp_path / "out" / "squat.png").stat().st_size > 10_000
    assert len((tmp_path / "out" / "squat.csv").read_text().splitlines()) == 10


def test_options_and_parts_are_checked(repo_root: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"part of the bench 'sqat'.*squat"):
        run_bench("tracking", repo_root, only="speed,sqat")
    with pytest.raises(ConfigError, match="--seeds 0"):
        run_bench("tracking", repo_root, seeds=0)
    with pytest.raises(ConfigError, match="--threads 0"):
        run_bench("tracking", repo_root, threads=0)
    with pytest.raises(ConfigError, match="bench startup: found --seeds; it has none"):
        run_bench("startup", repo_root, seeds=2)


def test_the_fast_preset_has_an_actor_without_privileges_and_the_papers_has_380_inputs(repo_root: Path) -> None:
    fast = yaml.safe_load((repo_root / "presets" / "fast.yaml").read_text())
    assert set(fast) == set(yaml.safe_load((repo_root / "presets" / "asap.yaml").read_text()))
    assert recipe_of(repo_root, "fast").ppo.learner == "lean"
    assert "base_lin_vel" not in recipe_of(repo_root, "fast").tracking.actor.terms
