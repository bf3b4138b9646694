"""The learner written out for a CPU against rsl-rl's own, and its gradients against autograd."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from asap_core.environments.settings import TrackingSettings
from asap_core.environments.tracking import TrackingEnv
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.training.contract import PolicyContract
from asap_core.training.lean_ppo import LeanPpo
from asap_core.training.ppo import PpoTrainer, use_threads
from asap_core.training.session import TrainingSession
from asap_core.training.settings import PpoSettings
from asap_core.training.written_mlp import WrittenMlp
from tests.robot_motions import knee_bend_reference

PROFILE = get_profile("g1_23dof")
TASK = TrackingSettings(rewards={"body_position": 1.0, "joint_position": 0.75, "action_rate": -0.02})
SMALL = {"num_envs": 8, "steps_per_env": 6, "epochs": 2, "mini_batches": 2, "hidden": (32, 16)}


Learner = Literal["rsl_rl", "lean"]
LEARNERS: tuple[Learner, ...] = ("rsl_rl", "lean")


def make_trainer(learner: Learner, threads: int = 2, **changes: Any) -> PpoTrainer:
    use_threads(threads)
    settings = PpoSettings.model_validate({**SMALL, "learner": learner, **changes})
    sim = MujocoSimulator(PROFILE, PhysicsSettings(physics_dt=0.01), settings.num_envs)
    return PpoTrainer(TrackingEnv(sim, PROFILE, knee_bend_reference(), TASK, 0), settings, 0)


def weights(trainer: PpoTrainer) -> torch.Tensor:
    models = (trainer.algorithm.actor, trainer.algorithm.critic)
    return torch.cat([value.detach().flatten().float() for m in models for value in m.state_dict().values()])


def iterate_together(trainers: tuple[PpoTrainer, ...], count: int) -> list[tuple[Any, ...]]:
    rows = []
    for k in range(count):
        stats = []
        for trainer in trainers:
            torch.manual_seed(k)
            stats.append(trainer.iterate())
        rows.append(tuple(stats))
    return rows


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"clip": 0.02, "clip_value": True, "entropy": 0.01, "critic_learning_rate": None, "value_loss": 0.5},
        {"normalise_observations": False, "desired_kl": 0.001, "max_grad_norm": 0.05},
        {"mini_batches": 5},
    ],
)
def test_updates_are_those_of_rsl_rl(changes: dict[str, Any]) -> None:
    """Six iterations with the same random numbers: weights, normalisers, rate and losses agree to rounding."""
    ours, theirs = make_trainer("lean", **changes), make_trainer("rsl_rl", **changes)
    before = weights(ours)
    for mine, other in iterate_together((ours, theirs), 6):
        assert mine.learning_rate == other.learning_rate
        assert mine.value_loss == pytest.approx(other.value_loss, rel=1e-4)
        assert mine.reward == pytest.approx(other.reward, abs=1e-7)
    np.testing.assert_allclose(weights(ours), weights(theirs), atol=1e-5, rtol=1e-5)
    assert (weights(ours) - before).abs().max() > 1e-3, "they moved"


def test_one_thread_and_two_learn_the_same() -> None:
    one, two = make_trainer("lean", threads=1), make_trainer("lean", threads=2)
    iterate_together((one, two), 3)
    np.testing.assert_allclose(weights(one), weights(two), atol=1e-6, rtol=1e-5)


def test_it_repeats_to_the_bit() -> None:
    first, again = make_trainer("lean"), make_trainer("lean")
    iterate_together((first, again), 3)
    assert torch.equal(weights(first), weights(again))


def test_each_learner_goes_on_from_the_checkpoint_of_the_other(tmp_path: Path) -> None:
    """Three iterations of rsl-rl's, then three of either with the same random numbers: the same end."""
    contract = PolicyContract.of(PROFILE, knee_bend_reference(), TASK)
    TrainingSession(make_trainer("rsl_rl"), contract, tmp_path / "rsl_rl", 3).run(3, "start")
    shutil.copytree(tmp_path / "rsl_rl", tmp_path / "lean")
    ends = []
    for name in LEARNERS:
        trainer = make_trainer(name)
        TrainingSession(trainer, contract, tmp_path / name, 3).run(3, "resumes and is done")
        iterate_together((trainer,), 3)
        ends.append(weights(trainer))
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-5, rtol=1e-5)


def test_written_backward_pass_is_autograds() -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(7, 5), nn.Linear(5, 4), nn.Linear(4, 3)]
    net = nn.Sequential(layers[0], nn.ELU(), layers[1], nn.ELU(), layers[2])
    places = [(torch.empty_like(x.weight), torch.empty_like(x.bias)) for x in layers]
    written = WrittenMlp(layers, places, rows=20)
    x, toward = torch.randn(11, 7), torch.randn(11, 3)
    out = net(x)
    (out * toward).sum().backward()
    with torch.no_grad():
        torch.testing.assert_close(written.forward(x), out)
        written.backward(x, toward.clone())
    for layer, (weight, bias) in zip(layers, places, strict=True):
        torch.testing.assert_close(weight, layer.weight.grad)
        torch.testing.assert_close(bias, layer.bias.grad)


def test_networks_of_other_layers_are_refused() -> None:
    trainer = make_trainer("rsl_rl")
    trainer.actor.mlp[1] = nn.Tanh()
    with pytest.raises(ValueError, match="ELUs between them"):
        LeanPpo(trainer.actor, trainer.algorithm.critic, 8, 6, 1)


def test_it_is_for_one_process_on_a_cpu() -> None:
    with pytest.raises(ValidationError, match="learner is 'lean' with device 'cuda'"):
        PpoSettings(learner="lean", device="cuda")
