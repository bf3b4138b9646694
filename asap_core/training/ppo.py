"""PPO on the tracking environment: rsl-rl's algorithm, storage and networks in a loop that resumes exactly.

Source of the algorithm: rsl-rl-lib (BSD-3). The loop is ours because a checkpoint here also holds the environment and
all random states, so that an interrupted training ends with the same bits as an undisturbed one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from asap_core.environments.tracking import TrackingEnv
from asap_core.training.settings import PpoSettings


@dataclass(frozen=True)
class IterationStats:
    """Figures of one iteration."""

    iteration: int
    steps: int
    """Control steps of all robots since the start."""
    reward: float
    """Mean per control step."""
    share: float
    """Mean share of their way that the episodes ending lately covered."""
    distance_limit: float
    """m, the termination curriculum's present limit."""
    action_std: float
    learning_rate: float
    value_loss: float


def use_threads(threads: int) -> None:
    """Set torch's threads on purpose and make CPU results repeatable."""
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    torch.set_flush_denormal(True)


class _SplitRateAdam(torch.optim.Adam):
    """Adam whose second group keeps its own rate: rsl-rl adapts one rate for actor and critic alike to the KL
    divergence, which starves the critic."""

    def __init__(self, actor: MLPModel, critic: MLPModel, rate: float, critic_rate: float | None) -> None:
        self._critic_rate = critic_rate
        groups = [{"params": list(actor.parameters())}, {"params": list(critic.parameters())}]
        super().__init__(groups, lr=rate, eps=1e-5, fused=True)

    def step(self, closure: Any = None) -> Any:
        """One step, the critic at its own rate if it has one."""
        if self._critic_rate is not None:
            self.param_groups[1]["lr"] = self._critic_rate
        return super().step(closure)


class PpoTrainer:
    """Actor and critic, their optimiser and the loop over one environment."""

    def __init__(self, env: TrackingEnv, settings: PpoSettings, seed: int) -> None:
        torch.manual_seed(seed)
        self.env = env
        self.settings = settings
        self.iteration = 0
        self._obs = self._observe()
        groups = {"actor": ["actor"], "critic": ["critic"]}
        distribution = {
            "class_name": "rsl_rl.modules.distribution:GaussianDistribution",
            "init_std": settings.init_std,
            "std_type": "log",
        }
        self.actor = MLPModel(
            self._obs,
            groups,
            "actor",
            env.num_actions,
            settings.hidden,
            obs_normalization=settings.normalise_observations,
            distribution_cfg=distribution,
        )
        with torch.no_grad():
            self.actor.mlp[-1].weight.mul_(0.01)
            self.actor.mlp[-1].bias.zero_()
        normalise = settings.normalise_observations
        critic = MLPModel(self._obs, groups, "critic", 1, settings.hidden, obs_normalization=normalise)
        storage = RolloutStorage("rl", env.num_envs, settings.steps_per_env, self._obs, [env.num_actions])
        self.algorithm = PPO(
            self.actor,
            critic,
            storage,
            num_learning_epochs=settings.epochs,
            num_mini_batches=settings.mini_batches,
            clip_param=settings.clip,
            gamma=settings.gamma,
            lam=settings.lam,
            value_loss_coef=settings.value_loss,
            entropy_coef=settings.entropy,
            learning_rate=settings.learning_rate,
            max_grad_norm=settings.max_grad_norm,
            use_clipped_value_loss=settings.clip_value,
            desired_kl=settings.desired_kl,
        )
        self.algorithm.optimizer = _SplitRateAdam(
            self.actor, critic, settings.learning_rate, settings.critic_learning_rate
        )
        self.algorithm.train_mode()

    def _observe(self) -> TensorDict:
        obs = {name: torch.from_numpy(value) for name, value in self.env.observe().items()}
        return TensorDict(obs, batch_size=[self.env.num_envs])

    def iterate(self) -> IterationStats:
        """Collect one batch and learn from it."""
        rewards = [self._collect_step() for _ in range(self.settings.steps_per_env)]
        with torch.inference_mode():
            self.algorithm.compute_returns(self._obs)
        losses = self.algorithm.update()
        self.iteration += 1
        return IterationStats(
            iteration=self.iteration,
            steps=self.iteration * self.settings.steps_per_env * self.env.num_envs,
            reward=float(np.mean(rewards)),
            share=self.env.curriculum.mean_share,
            distance_limit=self.env.curriculum.distance,
            action_std=float(self.algorithm.actor.distribution.log_std_param.detach().exp().mean()),
            learning_rate=self.algorithm.learning_rate,
            value_loss=float(losses["value"]),
        )

    def _collect_step(self) -> float:
        with torch.inference_mode():
            action = self.algorithm.act(self._obs)
            result = self.env.step(action.numpy())
            self._obs = self._observe()
            self.algorithm.process_env_step(
                self._obs,
                torch.from_numpy(result.reward),
                torch.from_numpy(result.done),
                {"time_outs": torch.from_numpy(result.timed_out)},
            )
        return float(result.reward.mean())

    def policy(self) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
        """The deterministic actor as a function of observations (N, W)."""

        def act(observation: NDArray[np.float32]) -> NDArray[np.float32]:
            with torch.inference_mode():
                obs = TensorDict({"actor": torch.from_numpy(observation)}, batch_size=[len(observation)])
                return self.actor(obs).numpy()

        return act

    def state_dict(self) -> dict[str, Any]:
        """Networks, normalisers, optimiser and iteration."""
        return {**self.algorithm.save(), "iteration": self.iteration, "obs": dict(self._obs)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.algorithm.load(state, None, True)
        self.iteration = state["iteration"]
        self._obs = TensorDict(state["obs"], batch_size=[self.env.num_envs])

    def load_networks(self, state: dict[str, Any], init_std: float) -> None:
        """Start from the networks and normalisers of another training, with fresh optimiser and exploration."""
        self.algorithm.load(state, {"actor": True, "critic": True}, True)
        with torch.no_grad():
            self.actor.distribution.log_std_param.fill_(float(np.log(init_std)))
