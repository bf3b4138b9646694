"""One published policy, fine-tuned in one world with one seed; finished policies are kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from asap_core.alignment.action_noise import ActionNoise
from asap_core.alignment.corrected import Corrected
from asap_core.alignment.mixture import mixed
from asap_core.environments.correction import ActionCorrection
from asap_core.environments.randomisation import randomised
from asap_core.environments.reference import ReferenceMotion
from asap_core.environments.tracking import TrackingEnv
from asap_core.evaluation.closed_loop_bench.arms import Arm
from asap_core.evaluation.closed_loop_bench.settings import Recipe
from asap_core.evaluation.published import load_published, policy_file
from asap_core.files import atomic_file, content_key, sha256_file, write_tensors
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.factory import make_simulator
from asap_core.training.evaluate import QuickScore, quick_score
from asap_core.training.export import export_policy
from asap_core.training.ppo import PpoTrainer
from asap_core.training.published import published_contract
from asap_core.training.session import TrainingSession
from asap_core.training.warm_start import learn_critic, load_actor, train_last_layer_only

_SEED_STEP = 1000
"""Between the seeds of two trainings, as in stage `finetune`."""
_SCORE_SEED = 104729
"""Of the starts by which the best policy of a training is chosen; others than those of the evaluation."""
Act = Callable[[NDArray[np.float32]], NDArray[np.floating]]


@dataclass(frozen=True)
class World:
    """A simulator to fine-tune in, and everything that it depends on, as JSON."""

    corrected: Corrected
    identity: Any


class Finetuner:
    """Fine-tunes published policies; of a training the policy is taken that is best where it was trained.

    The published one stays if none is better there.

    Args:
        profile: their robot.
        recipe: see `Recipe`.
        shared: folder that holds data/asap.
        cache: finished policies and unfinished trainings are kept under it.
        code: digest of the code that policies depend on.
    """

    def __init__(self, profile: RobotProfile, recipe: Recipe, shared: Path, cache: Path, code: str) -> None:
        self._profile = profile
        self._recipe = recipe
        self._shared = shared
        self._cache = cache
        self._code = code

    def policy(self, motion: str, seed: int, arm: Arm, world: World, label: str) -> Path:
        """The fine-tuned policy as ONNX with its contract; trained now unless an earlier run has.

        Args:
            seed: 0 for the first; networks, exploration and starts depend on it.
            label: for people.
        """
        how = [arm.randomised, arm.noise_rad]
        key = content_key(self._identity(motion, seed), world.identity, how)
        finished = self._cache / "policies" / f"{motion}_{key}.onnx"
        if not finished.exists():
            running = self._cache / "running" / key
            self._train(motion, seed, arm, world, running, label)
            with atomic_file(finished) as partial:
                shutil.copy(running / "policy.onnx", partial)
            shutil.rmtree(running)
        return finished

    def _identity(self, motion: str, seed: int) -> list[Any]:
        policy = sha256_file(policy_file(self._shared, motion))
        return [motion, policy, seed, self._recipe.training_identity(), self._code]

    def _train(self, motion: str, seed: int, arm: Arm, world: World, running: Path, label: str) -> None:
        recipe = self._recipe
        reference = load_published(self._shared, motion, self._profile)[1]
        env = self._env(reference, arm, world.corrected, seed)
        ppo = recipe.ppo.model_copy(update={"learning_rate": recipe.finetune.learning_rate})
        trainer = PpoTrainer(env, ppo, _SEED_STEP * (seed + 1))
        if recipe.warm_start.last_layer_only:
            train_last_layer_only(trainer)
        start = self._start(motion, seed, reference)
        trainer.load_networks(start, recipe.finetune.init_std)
        contract, score = published_contract(self._profile, reference), self._score(reference, world.corrected)
        first = score(trainer.policy())
        session = TrainingSession(
            trainer, contract, running, recipe.warm_start.score_every, lambda: score(trainer.policy())
        )
        session.run(recipe.finetune.iterations, label)
        if session.best is None or not session.best.better_than(first):
            trainer.load_networks(start, recipe.finetune.init_std)
            export_policy(trainer.actor, contract, running / "policy.onnx")

    def _score(self, reference: ReferenceMotion, corrected: Corrected) -> Callable[[Act], QuickScore]:
        """Judges a policy where it is trained; the target is seen by the arm that is trained there alone."""
        profile, settings = self._profile, self._recipe.simulation
        simulator = corrected.simulator(profile, settings, self._recipe.evaluate.starts)
        rule = published_contract(profile, reference).rule
        return lambda policy: quick_score(
            policy, rule, reference, profile, simulator, _SCORE_SEED, corrected.correction
        )

    def _env(self, reference: ReferenceMotion, arm: Arm, corrected: Corrected, seed: int) -> TrackingEnv:
        recipe, profile, num_envs = self._recipe, self._profile, self._recipe.ppo.num_envs
        task, own_seed = recipe.task(arm.randomised), _SEED_STEP * (seed + 1)
        simulator = corrected.simulator(profile, recipe.simulation, num_envs)
        if arm.randomised:
            physics = randomised(corrected.physics, task.randomisation, profile, num_envs, own_seed)
            simulator = make_simulator(profile, recipe.simulation, num_envs, physics)
        correction: ActionCorrection | None = corrected.correction
        if correction is not None:
            correction = mixed(correction, recipe.finetune, num_envs, profile.num_joints, own_seed)
        elif arm.noise_rad:
            correction = ActionNoise(arm.noise_rad, own_seed)
        return TrackingEnv(simulator, profile, reference, task, own_seed, correction)

    def _start(self, motion: str, seed: int, reference: ReferenceMotion) -> dict[str, Any]:
        """The published actor with a critic that knows it, the same for all arms."""
        path = self._cache / "starts" / f"{motion}_{content_key(self._identity(motion, seed))}.pt"
        if not path.exists():
            recipe = self._recipe
            env = self._env(reference, Arm(), Corrected("nominal", recipe.simulation.physics), seed)
            trainer = PpoTrainer(env, recipe.ppo, _SEED_STEP * (seed + 1))
            load_actor(trainer.actor, policy_file(self._shared, motion))
            warm, std = recipe.warm_start, recipe.finetune.init_std
            learn_critic(trainer, warm.critic_iterations, std, f"critic {motion} seed {seed}")
            write_tensors(path, {"learner": trainer.state_dict()})
        learner: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)["learner"]
        return learner
