"""PPO: exact resume, the contract's round trip, the exported network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from asap_core.environments.settings import TrackingSettings
from asap_core.environments.tracking import TrackingEnv
from asap_core.errors import ContractError, InputFileError
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.training.checkpoint import load_checkpoint, save_checkpoint
from asap_core.training.contract import PolicyContract
from asap_core.training.export import export_policy
from asap_core.training.policy import OnnxPolicy
from asap_core.training.ppo import PpoTrainer, use_threads
from asap_core.training.session import TrainingSession
from asap_core.training.settings import PpoSettings
from tests.robot_motions import knee_bend_reference

PROFILE = get_profile("g1_23dof")
TASK = TrackingSettings(rewards={"body_position": 1.0, "joint_position": 0.75, "action_rate": -0.02})
PPO = PpoSettings(num_envs=8, steps_per_env=6, epochs=2, mini_batches=2, hidden=(32, 16))


def make_trainer(seed: int = 0) -> PpoTrainer:
    use_threads(1)
    sim = MujocoSimulator(PROFILE, PhysicsSettings(physics_dt=0.01), 8)
    return PpoTrainer(TrackingEnv(sim, PROFILE, knee_bend_reference(), TASK, seed), PPO, seed)


def contract() -> PolicyContract:
    return PolicyContract.of(PROFILE, knee_bend_reference(), TASK)


def weights(trainer: PpoTrainer) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in trainer.actor.parameters()])


def test_interrupted_training_ends_with_the_same_bits(tmp_path):
    straight = make_trainer()
    TrainingSession(straight, contract(), tmp_path / "a", 2).run(6, "straight")
    first = make_trainer()
    TrainingSession(first, contract(), tmp_path / "b", 2).run(4, "first part")
    second = make_trainer(seed=5)
    session = TrainingSession(second, contract(), tmp_path / "b", 2)
    session.run(6, "resumed")
    assert torch.equal(weights(straight), weights(second))
    assert len(session.history) == 6
    assert (tmp_path / "a" / "policy.onnx").read_bytes() == (tmp_path / "b" / "policy.onnx").read_bytes()


def test_learning_improves_the_reward_of_standing(tmp_path):
    trainer = make_trainer()
    rewards = [trainer.iterate().reward for _ in range(60)]
    assert np.mean(rewards[-10:]) > np.mean(rewards[:10])


def test_exported_policy_equals_torch_on_1000_observations(tmp_path):
    trainer = make_trainer()
    for _ in range(3):
        trainer.iterate()
    export_policy(trainer.actor, contract(), tmp_path / "policy.onnx")
    obs = np.random.default_rng(0).normal(size=(1000, trainer.env.actor.layout.width)).astype(np.float32)
    policy = OnnxPolicy(tmp_path / "policy.onnx")
    trainer.algorithm.eval_mode()
    np.testing.assert_allclose(policy(obs), trainer.policy()(obs), atol=1e-5)
    assert policy.contract == contract()


def test_contract_numbers_survive_exactly():
    third = contract().model_copy(update={"kp": tuple([99.09843, 1 / 3] + [20.0] * 21)})
    assert PolicyContract.from_json(third.to_json(), "x").kp == third.kp


def test_contract_errors_name_the_key():
    broken = contract().model_dump(mode="json")
    del broken["action_scale"]
    import json

    with pytest.raises(ContractError, match=r"here\.onnx.*action_scale"):
        PolicyContract.from_json(json.dumps(broken), "here.onnx")


def test_policy_without_contract_or_unreadable_is_refused(tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"nonsense")
    with pytest.raises(InputFileError, match=r"bad\.onnx"):
        OnnxPolicy(tmp_path / "bad.onnx")
    with pytest.raises(InputFileError, match="missing"):
        OnnxPolicy(tmp_path / "none.onnx")


def test_damaged_checkpoint_is_refused_and_no_pickle_code_runs(tmp_path):
    save_checkpoint(tmp_path / "c.pt", {"a": torch.ones(2)}, [{"environment": {"x": np.arange(3)}}], {})
    assert load_checkpoint(tmp_path / "c.pt")["processes"][0]["environment"]["x"].tolist() == [0, 1, 2]
    data = (tmp_path / "c.pt").read_bytes()
    (tmp_path / "half.pt").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputFileError, match=r"half\.pt"):
        load_checkpoint(tmp_path / "half.pt")

    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "owned"), "w"))

    torch.save({"format_version": 1, "environment": {}, "evil": Evil()}, tmp_path / "evil.pt")
    with pytest.raises(InputFileError, match=r"evil\.pt"):
        load_checkpoint(tmp_path / "evil.pt")
    assert not (tmp_path / "owned").exists()


def test_policy_is_refused_by_field_where_it_does_not_belong(tmp_path):
    reference = knee_bend_reference()
    trainer = make_trainer()
    export_policy(trainer.actor, contract(), tmp_path / "policy.onnx")
    policy = OnnxPolicy(tmp_path / "policy.onnx")
    policy.check(PROFILE, reference)
    for change, message in (
        ({"name": "kick"}, "field motion: policy has 'knee_bend', this run has 'kick'"),
        ({"control_dt": 0.01}, "field control_dt: policy has 0.02"),
    ):
        with pytest.raises(ContractError, match=message):
            policy.check(PROFILE, replace(reference, **change))
    with pytest.raises(ContractError, match="another clip called 'knee_bend'"):
        policy.check(PROFILE, knee_bend_reference(depth=0.3))
    with pytest.raises(ContractError, match="contract field kp differs"):
        policy.check(replace(PROFILE, kp=PROFILE.kp * 2), reference)
    narrow = contract().model_copy(update={"observation": TASK.critic})
    export_policy(trainer.actor, narrow, tmp_path / "narrow.onnx")
    with pytest.raises(ContractError, match=r"narrow\.onnx: obs has shape"):
        OnnxPolicy(tmp_path / "narrow.onnx").check(PROFILE, reference)


def test_damaged_state_of_a_session_says_what_to_delete(tmp_path):
    TrainingSession(make_trainer(), contract(), tmp_path, 1).run(1, "first")
    wider = PPO.model_copy(update={"hidden": (64, 16)})
    sim = MujocoSimulator(PROFILE, PhysicsSettings(physics_dt=0.01), 8)
    other = PpoTrainer(TrackingEnv(sim, PROFILE, knee_bend_reference(), TASK, 0), wider, 0)
    with pytest.raises(InputFileError, match=rf"not of this training.*; delete {tmp_path} to train anew"):
        TrainingSession(other, contract(), tmp_path, 1).run(2, "of another width")
    (tmp_path / "checkpoint.pt").write_bytes(b"half")
    with pytest.raises(InputFileError, match=rf"not a readable checkpoint.*; delete {tmp_path}"):
        TrainingSession(make_trainer(), contract(), tmp_path, 1).run(2, "damaged")
