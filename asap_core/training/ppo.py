"""PPO on the tracking environment: rsl-rl's algorithm and networks in a loop that resumes exactly.

Source of the algorithm: rsl-rl-lib (BSD-3). The loop is ours because a checkpoint here also holds the environment and
all random states, so that an interrupted training ends with the same bits as an undisturbed one.
"""

from __future__ import annotations

import os
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

from asap_core.environments.side_by_side import Observations, SideBySide
from asap_core.environments.tracking import StepResult, TrackingEnv
from asap_core.training.freed_memory import keep_freed_memory
from asap_core.training.lean_ppo import LeanPpo
from asap_core.training.ranks import Ranks
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
    """Set torch's threads on purpose and make results repeatable: bit for bit on a CPU."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it, deterministic CUDA algorithms refuse
    keep_freed_memory()
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
    """Actor and critic, their optimiser and the loop over one environment.

    Args:
        env: the robots of this process.
        settings: of the learner.
        seed: of networks and exploration.
        ranks: the processes that train together. They begin with the same networks and average their gradients; the
            curricula are those of the first.
    """

    def __init__(
        self, env: TrackingEnv | SideBySide, settings: PpoSettings, seed: int, ranks: Ranks | None = None
    ) -> None:
        if isinstance(env, SideBySide) and settings.learner != "lean":
            raise ValueError(f"groups of robots side by side need learner 'lean', found {settings.learner!r}")
        torch.manual_seed(seed)
        self.ranks = ranks or Ranks()
        self.device = self.ranks.device(settings.device)
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
        ).to(self.device)
        with torch.no_grad():
            self.actor.mlp[-1].weight.mul_(0.01)
            self.actor.mlp[-1].bias.zero_()
        normalise = settings.normalise_observations or settings.normalise_critic
        critic = MLPModel(self._obs, groups, "critic", 1, settings.hidden, obs_normalization=normalise).to(self.device)
        self.algorithm = self._make_algorithm(critic)
        self.algorithm.optimizer = _SplitRateAdam(
            self.actor, critic, settings.learning_rate, settings.critic_learning_rate
        )
        self.algorithm.train_mode()
        if self.ranks.world_size > 1:
            self.algorithm.broadcast_parameters()
            torch.manual_seed(seed + self.ranks.rank)

    def _make_algorithm(self, critic: MLPModel) -> PPO:
        s, num_envs = self.settings, self.env.num_envs
        options = {
            "num_learning_epochs": s.epochs,
            "num_mini_batches": s.mini_batches,
            "clip_param": s.clip,
            "gamma": s.gamma,
            "lam": s.lam,
            "value_loss_coef": s.value_loss,
            "entropy_coef": s.entropy,
            "learning_rate": s.learning_rate,
            "max_grad_norm": s.max_grad_norm,
            "use_clipped_value_loss": s.clip_value,
            "desired_kl": s.desired_kl,
        }
        if s.learner == "lean":
            threads = len(self.env.groups) if isinstance(self.env, SideBySide) else torch.get_num_threads()
            return LeanPpo(self.actor, critic, num_envs, s.steps_per_env, threads, **options)
        storage = RolloutStorage("rl", num_envs, s.steps_per_env, self._obs, [self.env.num_actions], self.device)
        return PPO(self.actor, critic, storage, **options, device=self.device, multi_gpu_cfg=self.ranks.multi_gpu)

    def _observe(self) -> TensorDict:
        obs = {name: torch.from_numpy(value) for name, value in self.env.observe().items()}
        return TensorDict(obs, batch_size=[self.env.num_envs], device=self.device)

    def iterate(self) -> IterationStats:
        """Collect one batch and learn from it."""
        if isinstance(self.env, SideBySide):
            rewards = self._collect_side_by_side(self.env)
        else:
            rewards = [self._collect_step(self.env) for _ in range(self.settings.steps_per_env)]
        with torch.inference_mode():
            self.algorithm.compute_returns(self._obs)
        losses = self.algorithm.update()
        self.iteration += 1
        if self.ranks.world_size > 1:
            self.env.load_curricula(self.ranks.share(self.env.curricula()))
        return IterationStats(
            iteration=self.iteration,
            steps=self.iteration * self.settings.steps_per_env * self.env.num_envs * self.ranks.world_size,
            reward=float(np.mean(rewards)),
            share=self.env.curriculum.mean_share,
            distance_limit=self.env.curriculum.distance,
            action_std=float(self.algorithm.actor.distribution.log_std_param.detach().exp().mean()),
            learning_rate=self.algorithm.learning_rate,
            value_loss=float(losses["value"]),
        )

    def _collect_side_by_side(self, env: SideBySide) -> list[float]:
        lean = self.algorithm
        assert isinstance(lean, LeanPpo)
        rewards = np.zeros((self.settings.steps_per_env, len(env.groups)))

        def act(step: int, group: int, seen: Observations) -> NDArray[np.floating]:
            obs = {name: torch.from_numpy(value) for name, value in seen.items()}
            return lean.act_alone(step, group, env.rows[group], obs).numpy()

        def record(step: int, group: int, result: StepResult, seen: Observations) -> None:
            parts = (torch.from_numpy(x) for x in (result.reward, result.done, result.timed_out))
            lean.record(step, env.rows[group], *parts)
            rewards[step, group] = result.reward.mean()

        lean.explore_anew()
        seen = {str(name): self._obs.get(name).numpy() for name in list(self._obs.keys())}
        latest = env.roll(self.settings.steps_per_env, seen, act, record)
        self._obs = TensorDict({name: torch.from_numpy(v) for name, v in latest.items()}, batch_size=[env.num_envs])
        return [float(x) for x in rewards.mean(axis=0)]

    def _collect_step(self, env: TrackingEnv) -> float:
        with torch.inference_mode():
            action = self.algorithm.act(self._obs)
            result = env.step(action.cpu().numpy())
            self._obs = self._observe()
            self.algorithm.process_env_step(
                self._obs,
                torch.from_numpy(result.reward).to(self.device),
                torch.from_numpy(result.done).to(self.device),
                {"time_outs": torch.from_numpy(result.timed_out).to(self.device)},
            )
        return float(result.reward.mean())

    def policy(self) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
        """The deterministic actor as a function of observations (N, W)."""

        def act(observation: NDArray[np.float32]) -> NDArray[np.float32]:
            with torch.inference_mode():
                seen = {"actor": torch.from_numpy(observation)}
                obs = TensorDict(seen, batch_size=[len(observation)], device=self.device)
                return self.actor(obs).cpu().numpy()

        return act

    def state_dict(self) -> dict[str, Any]:
        """Networks, normalisers, optimiser and iteration."""
        return {**self.algorithm.save(), "iteration": self.iteration}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.algorithm.load(state, None, True)
        self.iteration = state["iteration"]

    def process_state(self) -> dict[str, Any]:
        """What is this process's own: its environment, the last observations, the state of torch's random numbers."""
        return {
            "environment": self.env.state_dict(),
            "obs": dict(self._obs.cpu()),
            "torch_rng": torch.get_rng_state(),
        }

    def load_process_state(self, state: dict[str, Any]) -> None:
        """Take back what `process_state` gave."""
        self.env.load_state_dict(state["environment"])
        self._obs = TensorDict(state["obs"], batch_size=[self.env.num_envs]).to(self.device)
        torch.set_rng_state(state["torch_rng"])

    def load_networks(self, state: dict[str, Any], init_std: float) -> None:
        """Start from the networks and normalisers of another training, with fresh optimiser and exploration."""
        self.algorithm.load(state, {"actor": True, "critic": True}, True)
        with torch.no_grad():
            self.actor.distribution.log_std_param.fill_(float(np.log(init_std)))
