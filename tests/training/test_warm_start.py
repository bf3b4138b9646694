"""Published weights in a trainable actor: it acts as the file does, and a critic is learnt without moving it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from asap_core.environments.tracking import TrackingEnv
from asap_core.errors import ContractError, InputFileError
from asap_core.evaluation.published import load_published, policy_file
from asap_core.robots import get_profile
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.settings import SimulationSettings
from asap_core.training.ppo import PpoTrainer
from asap_core.training.settings import PpoSettings
from asap_core.training.warm_start import learn_critic, load_actor, read_layers, train_last_layer_only
from tasks.closed_loop_bench import recipe_of

PROFILE = get_profile("g1_23dof")
ROOT = Path(__file__).resolve().parents[2]


def trainer_of(shared: Path, **ppo: object) -> PpoTrainer:
    tracking = recipe_of(ROOT, seeds=1, iterations=1).tracking
    reference = load_published(shared, "side_jump_level1", PROFILE)[1]
    env = TrackingEnv(make_simulator(PROFILE, SimulationSettings(threads=1), 4), PROFILE, reference, tracking, 0)
    settings = {"hidden": (512, 256, 128), "normalise_observations": False, "learner": "lean"} | ppo
    return PpoTrainer(env, PpoSettings.model_validate({"num_envs": 4, "steps_per_env": 4, **settings}), 0)


def test_actor_acts_as_the_published_file(shared_dir: Path) -> None:
    trainer = trainer_of(shared_dir)
    file = policy_file(shared_dir, "side_jump_level1")
    load_actor(trainer.actor, file)
    published = load_published(shared_dir, "side_jump_level1", PROFILE)[0]
    seen = trainer.env.observe()["actor"]
    np.testing.assert_allclose(trainer.policy()(seen), published(seen), atol=1e-4)


def test_critic_learns_and_the_actor_stays(shared_dir: Path) -> None:
    trainer = trainer_of(shared_dir)
    load_actor(trainer.actor, policy_file(shared_dir, "side_jump_level1"))
    before = {name: value.clone() for name, value in trainer.actor.mlp.state_dict().items()}
    critic = trainer.algorithm.critic.mlp[0].weight.detach().clone()
    learn_critic(trainer, 2, 0.3, "test")
    for name, value in trainer.actor.mlp.state_dict().items():
        assert torch.equal(value, before[name])
    assert trainer.actor.distribution.log_std_param.exp().detach().numpy() == pytest.approx(0.3)
    assert not torch.equal(trainer.algorithm.critic.mlp[0].weight, critic)


def test_other_widths_and_normalisation_are_refused(shared_dir: Path) -> None:
    file = policy_file(shared_dir, "side_jump_level1")
    with pytest.raises(ContractError, match=r"ppo\.hidden"):
        load_actor(trainer_of(shared_dir, hidden=(64, 32)).actor, file)
    with pytest.raises(ContractError, match="normalise_observations"):
        load_actor(trainer_of(shared_dir, normalise_observations=True).actor, file)


def test_files_of_other_kinds_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="missing"):
        read_layers(tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(InputFileError, match="not a readable ONNX"):
        read_layers(tmp_path / "text.onnx")
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    torch.onnx.export(net, torch.zeros(1, 3), str(tmp_path / "relu.onnx"), dynamo=False)
    with pytest.raises(InputFileError, match="Gemm, Relu, Gemm, expected Gemm with Elu"):
        read_layers(tmp_path / "relu.onnx")


def test_the_last_layer_alone_is_trained(shared_dir: Path) -> None:
    trainer = trainer_of(shared_dir, normalise_critic=True)
    train_last_layer_only(trainer)
    load_actor(trainer.actor, policy_file(shared_dir, "side_jump_level1"))
    before = {name: value.clone() for name, value in trainer.actor.mlp.state_dict().items()}
    trainer.iterate()
    moved = {name for name, value in trainer.actor.mlp.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == {"6.weight", "6.bias"}
    assert isinstance(trainer.actor.obs_normalizer, torch.nn.Identity)
    assert not isinstance(trainer.algorithm.critic.obs_normalizer, torch.nn.Identity)
    kept = trainer.state_dict()
    again = trainer_of(shared_dir, normalise_critic=True)
    train_last_layer_only(again)
    again.load_state_dict(kept)
    assert torch.equal(again.actor.mlp[6].weight, trainer.actor.mlp[6].weight)
