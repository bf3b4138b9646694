"""A small training as a process of its own, for a test that kills it: `python -m tests.training.killable FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

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

ITERATIONS, CHECKPOINT_EVERY = 12, 3


def train(folder: Path) -> None:
    """Train to the end, from a checkpoint in `folder` if there is one."""
    use_threads(2)
    profile, reference = get_profile("g1_23dof"), knee_bend_reference()
    task = TrackingSettings(rewards={"body_position": 1.0, "joint_position": 0.75, "action_rate": -0.02})
    groups = [
        TrackingEnv(MujocoSimulator(profile, PhysicsSettings(physics_dt=0.01), 4, 2), profile, reference, task, seed)
        for seed in range(2)
    ]
    ppo = PpoSettings(learner="lean", num_envs=8, steps_per_env=6, epochs=2, mini_batches=2, hidden=(32, 16))
    contract = PolicyContract.of(profile, reference, task)
    TrainingSession(PpoTrainer(SideBySide(groups), ppo, 0), contract, folder, CHECKPOINT_EVERY).run(ITERATIONS, "train")


if __name__ == "__main__":
    train(Path(sys.argv[1]))
