"""Groups side by side act as they would alone, and a training with them resumes exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from asap_core.environments.settings import TrackingSettings
from asap_core.environments.side_by_side import SideBySide
from asap_core.environments.tracking import TrackingEnv
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.training.contract import PolicyContract
from asap_core.training.ppo import PpoTrainer, use_threads
from asap_core.training.session import TrainingSession
from asap_core.training.settings import PpoSettings
from tests.robot_motions import knee_bend_reference

PROFILE = get_profile("g1_23dof")
TASK = TrackingSettings(rewards={"body_position": 1.0, "joint_position": 0.75, "action_rate": -0.02})
PPO = PpoSettings(learner="lean", num_envs=8, steps_per_env=6, epochs=2, mini_batches=2, hidden=(32, 16))


def make_groups() -> list[TrackingEnv]:
    physics = PhysicsSettings(physics_dt=0.01)
    return [
        TrackingEnv(MujocoSimulator(PROFILE, physics, n, 2), PROFILE, knee_bend_reference(), TASK, seed)
        for seed, n in enumerate((5, 3))
    ]


def make_trainer(seed: int = 0) -> PpoTrainer:
    use_threads(2)
    return PpoTrainer(SideBySide(make_groups()), PPO, seed)


def test_groups_act_as_they_would_alone() -> None:
    rng = np.random.default_rng(0)
    actions = rng.normal(0.0, 0.3, (40, 8, 23)).astype(np.float32)
    alone, groups = make_groups(), SideBySide(make_groups())
    rows = groups.rows
    seen: list[tuple[int, int, np.ndarray, np.ndarray]] = []
    after = groups.roll(
        40,
        groups.observe(),
        lambda step, group, _: actions[step][rows[group]],
        lambda step, group, result, obs: seen.append((step, group, result.reward, obs["critic"])),
    )
    seen.sort(key=lambda row: row[:2])
    assert [(step, group) for step, group, _, _ in seen] == [(k, g) for k in range(40) for g in (0, 1)]
    for group, env in enumerate(alone):
        env.observe()
        for step in range(40):
            reward = env.step(actions[step][rows[group]]).reward
            critic = env.observe()["critic"]
            np.testing.assert_array_equal(seen[2 * step + group][2], reward)
            np.testing.assert_array_equal(seen[2 * step + group][3], critic)
        np.testing.assert_array_equal(after["critic"][rows[group]], critic)


def test_training_side_by_side_resumes_with_the_same_bits(tmp_path: Path) -> None:
    contract = PolicyContract.of(PROFILE, knee_bend_reference(), TASK)
    straight = make_trainer()
    TrainingSession(straight, contract, tmp_path / "a", 2).run(6, "straight")
    TrainingSession(make_trainer(), contract, tmp_path / "b", 2).run(4, "first part")
    second = make_trainer(seed=5)
    TrainingSession(second, contract, tmp_path / "b", 2).run(6, "resumed")
    for mine, other in zip(straight.actor.parameters(), second.actor.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_they_need_the_lean_learner() -> None:
    with pytest.raises(ValueError, match="need learner 'lean', found 'rsl_rl'"):
        PpoTrainer(SideBySide(make_groups()), PPO.model_copy(update={"learner": "rsl_rl"}), 0)
