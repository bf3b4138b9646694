"""One policy over several motions, from parameters to a file that runs on a motion it never saw."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from asap_core.config import MotionsSettings, Params, load_params
from asap_core.environments.motion_set import MotionSet
from asap_core.environments.side_by_side import SideBySide
from asap_core.environments.tracking import TrackingEnv
from asap_core.errors import ConfigError, ContractError
from asap_core.presets import apply_preset
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.training.contract import PolicyContract
from asap_core.training.evaluate import QuickScore, mean_score
from asap_core.training.export import export_policy
from asap_core.training.policy import OnnxPolicy
from asap_core.training.ppo import PpoTrainer, use_threads
from asap_core.training.ranks import Ranks
from asap_core.training.session import TrainingSession
from tasks import pretrain
from tasks._training import make_groups
from tasks.finetune import continued_trainer
from tasks.policy import evaluate_policy
from tests.robot_motions import knee_bend, knee_bend_reference

PROFILE = get_profile("g1_23dof")
BOTH = MotionSet(
    (
        replace(knee_bend_reference(seconds=0.4), name="squat"),
        replace(knee_bend_reference(seconds=0.8, depth=0.3), name="kick"),
    )
)


@pytest.fixture
def params(repo_root: Path, tmp_path: Path) -> Params:
    """Preset `many` on two short motions, with a small network and few robots."""
    shutil.copy(repo_root / "params.yaml", tmp_path / "params.yaml")
    apply_preset(tmp_path / "params.yaml", "many", repo_root / "presets")
    loaded = load_params(tmp_path / "params.yaml")
    small = {"num_envs": 8, "steps_per_env": 6, "epochs": 1, "mini_batches": 1, "hidden": (32, 16)}
    changes = {"motions": ("squat", "kick"), "iterations": 4, "evaluate_every": 2, "snapshots": (0.5, 1.0)}
    return loaded.model_copy(
        update={
            "motions": MotionsSettings(names=("squat", "kick"), train="squat"),
            "ppo": loaded.ppo.model_copy(update=small),
            "pretrain": loaded.pretrain.model_copy(update=changes),
            "simulation": loaded.simulation.model_copy(update={"threads": 1}),
        }
    )


def trainer_of(params: Params, seed: int = 0) -> PpoTrainer:
    use_threads(1)
    sim = MujocoSimulator(PROFILE, PhysicsSettings(physics_dt=0.01), params.ppo.num_envs)
    return PpoTrainer(TrackingEnv(sim, PROFILE, BOTH, params.tracking, seed), params.ppo, seed)


def contract_of(params: Params) -> PolicyContract:
    return PolicyContract.of(PROFILE, BOTH, params.tracking)


def test_interrupted_training_on_two_motions_ends_with_the_same_bits(params, tmp_path):
    straight = trainer_of(params)
    TrainingSession(straight, contract_of(params), tmp_path / "a", 2).run(6, "straight")
    TrainingSession(trainer_of(params), contract_of(params), tmp_path / "b", 2).run(4, "first part")
    resumed = trainer_of(params, seed=5)
    TrainingSession(resumed, contract_of(params), tmp_path / "b", 2).run(6, "resumed")
    for one, two in zip(straight.actor.parameters(), resumed.actor.parameters(), strict=True):
        assert torch.equal(one, two)
    assert (tmp_path / "a" / "policy.onnx").read_bytes() == (tmp_path / "b" / "policy.onnx").read_bytes()


def test_a_policy_over_two_motions_runs_on_a_third_and_no_other_robot_or_rate(params, tmp_path):
    trainer = trainer_of(params)
    export_policy(trainer.actor, contract_of(params), tmp_path / "policy.onnx")
    policy = OnnxPolicy(tmp_path / "policy.onnx")
    assert policy.contract.motion == "squat, kick"
    assert policy.contract.follows_any_motion
    assert policy.contract.clip_length_s is None
    assert policy.contract.ref_joint_pos == ()
    third = knee_bend_reference(seconds=1.0, depth=0.1)
    policy.check(PROFILE, third)
    with pytest.raises(ContractError, match=r"field control_dt: policy has 0\.02, this run has 0\.01"):
        policy.check(PROFILE, replace(third, control_dt=0.01))
    knee_bend().save(tmp_path / "third.parquet")
    figures = evaluate_policy(params, tmp_path / "policy.onnx", tmp_path / "third.parquet", None, None)
    assert figures["motion"] == "knee_bend"
    assert 0 < float(figures["E_g_mpjpe"]) < 500


def test_without_the_reference_ahead_a_policy_stays_with_its_motion(params):
    other = params.tracking.actor.model_copy(update={"terms": ("dof_pos", "ref_root_turn")})
    contract = PolicyContract.of(PROFILE, BOTH.motions[0], params.tracking.model_copy(update={"actor": other}))
    with pytest.raises(ContractError, match="contract field motion: policy has 'squat', this run has 'kick'"):
        contract.check(PROFILE, BOTH.motions[1], "here")


def test_stage_pretrain_scores_each_motion(params, tmp_path):
    folder = tmp_path / "data/retargeted"
    folder.mkdir(parents=True)
    for name, seconds in (("squat", 0.4), ("kick", 0.8)):
        replace(knee_bend(seconds=seconds), name=name).save(folder / f"{name}.parquet")
    figures = pretrain.run(params, tmp_path)
    with open(tmp_path / "models/pretrained/motions.csv", newline="") as stream:
        rows = {row["motion"]: row for row in csv.DictReader(stream)}
    assert list(rows) == ["squat", "kick"]
    assert {name: float(row["success"]) for name, row in rows.items()} == {
        name: figures[f"success_{name}"] for name in rows
    }
    contract = OnnxPolicy(tmp_path / "models/pretrained/policy.onnx").contract
    assert contract.motion == "squat, kick"


def test_scores_of_motions_count_alike():
    scores = [QuickScore(1.0, 1.0, 20.0), QuickScore(0.0, 0.5, 60.0)]
    assert mean_score(scores) == QuickScore(0.5, 0.75, 40.0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[squat, side_step, kick]   # one", "[squat, jump]   # one", "motions is squat, jump, expected names"),
        ("[squat, side_step, kick]   # one", "[squat, squat]   # one", "each once"),
        ("ref_dof_pos_future, ref_root_future,\n            ref_root_turn]\n    hist", "ref_root_turn]\n    hist",
         "which the actor cannot tell apart; add ref_dof_pos_future"),
        ("  action_base: ref", "  phase: clip\n  action_base: ref", "tracking.phase is 'clip', expected 'frames'"),
    ],
)  # fmt: skip
def test_motions_that_one_policy_cannot_learn_are_refused(repo_root, tmp_path, old, new, message):
    shutil.copy(repo_root / "params.yaml", tmp_path / "params.yaml")
    apply_preset(tmp_path / "params.yaml", "many", repo_root / "presets")
    text = (tmp_path / "params.yaml").read_text()
    assert text.count(old) == 1
    (tmp_path / "params.yaml").write_text(text.replace(old, new))
    with pytest.raises(ConfigError, match=message):
        load_params(tmp_path / "params.yaml")


def test_fine_tuning_keeps_the_distance_at_which_pretraining_ended(params, tmp_path):
    """Its own curriculum would shrink it by 0.1 % at each end of a long episode, and widen it at each short one."""
    trainer = trainer_of(params)
    trainer.env.curriculum.distance = 0.47
    trainer.env.penalty_scale.value = 0.9
    TrainingSession(trainer, contract_of(params), tmp_path / "state", 1).run(1, "pretraining")
    ended = trainer.env.curriculum.distance
    env = continued_trainer(params, BOTH.motions[1], tmp_path / "state" / "checkpoint.pt", 7, None, Ranks()).env
    assert env.curriculum.distance == ended
    assert env.penalty_scale.value == 0.9
    for share in (1.0, 0.0):
        env.curriculum.mean_share = share
        assert env.curriculum.update(np.full(8, share)) == (1 if share else -1)
        assert env.curriculum.distance == ended


def test_lean_pretraining_uses_a_group_for_each_thread_and_fine_tuning_goes_on_from_it(params, tmp_path):
    lean = params.model_copy(
        update={
            "ppo": params.ppo.model_copy(update={"learner": "lean", "num_envs": 7}),
            "simulation": params.simulation.model_copy(update={"threads": 2}),
        }
    )
    env = make_groups(lean, BOTH, 0.01, 7, 3)
    assert isinstance(env, SideBySide)
    assert [group.num_envs for group in env.groups] == [4, 3]
    assert isinstance(make_groups(params, BOTH, 0.01, 7, 3), TrackingEnv)
    for group in env.groups:
        group.curriculum.distance = 0.47
    TrainingSession(PpoTrainer(env, lean.ppo, 0), contract_of(lean), tmp_path / "state", 1).run(1, "pretraining")
    start = tmp_path / "state" / "checkpoint.pt"
    tuned = continued_trainer(lean, BOTH.motions[1], start, 7, None, Ranks()).env
    assert tuned.curriculum.distance == env.groups[0].curriculum.distance
