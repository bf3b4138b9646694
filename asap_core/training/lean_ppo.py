"""rsl-rl's PPO with its update written out for a CPU: the same losses, schedule, minibatches and checkpoints.

What differs is how it is computed. Each thread takes a share of the rows of every pass, with networks whose backward
pass is written out (`written_mlp.py`) and one thread of torch's; observations are normalised and shuffled once per
iteration; values are computed for the whole batch at once. Results equal those of `rsl_rl.algorithms.PPO` to rounding,
and repeat to the bit for one number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel
from torch import Tensor

from asap_core.training.written_mlp import WrittenMlp, linear_layers

_MIN_RATE, _MAX_RATE, _RATE_FACTOR = 1e-5, 1e-2, 1.5
"""Of rsl-rl's schedule."""
_GROUPS = ("actor", "critic")


def _one_thread_each() -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


class _Rollout:
    """One batch of T steps of N robots; rows of the flat arrays are t · N + n."""

    def __init__(self, steps: int, num_envs: int, widths: Mapping[str, int], num_actions: int) -> None:
        rows = steps * num_envs
        self.inputs = {name: torch.empty(rows, width) for name, width in widths.items()}
        """Normalised observations."""
        self.action = torch.empty(rows, num_actions)
        self.mean = torch.empty(rows, num_actions)
        self.log_prob = torch.empty(rows)
        self.value = torch.empty(rows)
        self.returns = torch.empty(rows)
        self.advantage = torch.empty(rows)

    def arrays(self) -> list[Tensor]:
        """All arrays, in an order that is always the same."""
        own = (self.action, self.mean, self.log_prob, self.value, self.returns, self.advantage)
        return [*self.inputs.values(), *own]


class _Worker:
    """What one thread needs: networks' passes and the gradients they write."""

    def __init__(self, models: Mapping[str, MLPModel], rows: int) -> None:
        self.flat = {name: torch.zeros(sum(p.numel() for p in m.parameters())) for name, m in models.items()}
        self.net: dict[str, WrittenMlp] = {}
        for name, model in models.items():
            place = gradient_places(model, self.flat[name])
            layers = linear_layers(model)
            self.net[name] = WrittenMlp(layers, [(place[x.weight], place[x.bias]) for x in layers], rows)
        self.log_std = gradient_places(models["actor"], self.flat["actor"])[models["actor"].distribution.log_std_param]


def gradient_places(model: MLPModel, flat: Tensor) -> dict[Tensor, Tensor]:
    """Each parameter of `model` with its part of `flat`, in its shape."""
    parameters = list(model.parameters())
    parts = torch.split(flat, [p.numel() for p in parameters])
    return {p: part.view(p.shape) for p, part in zip(parameters, parts, strict=True)}


@dataclass(frozen=True)
class _Losses:
    """Sums over the rows of one thread's share of a minibatch."""

    value: float
    surrogate: float
    divergence: float


class LeanPpo(PPO):
    """See the module.

    Args:
        actor, critic: networks of linear layers and ELUs; the actor's Gaussian has a log deviation.
        num_envs, steps: N and T of a batch.
        threads: that share each pass.
        options: of `rsl_rl.algorithms.PPO`.
    """

    learning_rate: float

    def __init__(
        self, actor: MLPModel, critic: MLPModel, num_envs: int, steps: int, threads: int, **options: Any
    ) -> None:
        super().__init__(actor, critic, None, **options)
        self._models = {"actor": actor, "critic": critic}
        num_actions = actor.distribution.output_dim
        widths = {name: model.obs_dim for name, model in self._models.items()}
        self._num_envs, self._steps, self._at = num_envs, steps, 0
        self._rollout = _Rollout(steps, num_envs, widths, num_actions)
        self._shuffled = _Rollout(steps, num_envs, widths, num_actions)
        self._noise = torch.empty(steps, num_envs, num_actions)
        self._last = torch.empty(num_envs, widths["critic"])
        self._last_value = torch.empty(num_envs)
        self._reward = torch.empty(steps, num_envs)
        self._done = torch.empty(steps, num_envs)
        self._timed_out = torch.empty(steps, num_envs)
        self._batch = steps * num_envs // self.num_mini_batches
        rows = max(-(-self._batch // threads), num_envs)
        self._workers = [_Worker(self._models, rows) for _ in range(threads)]
        self._pool = ThreadPoolExecutor(threads, "ppo", _one_thread_each)
        for name, model in self._models.items():
            for parameter, part in gradient_places(model, self._workers[0].flat[name]).items():
                parameter.grad = part

    def _share(self, count: int, work: Callable[[_Worker, slice], Any]) -> list[Any]:
        """Results of `work` on each thread's share of `count` rows, in their order."""
        step = -(-count // len(self._workers))
        parts = [slice(a, min(a + step, count)) for a in range(0, count, step)]

        def quietly(worker: _Worker, part: slice) -> Any:
            with torch.no_grad():
                return work(worker, part)

        return list(self._pool.map(quietly, self._workers, parts))

    def act(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Sampled actions (N, J) for observations (N, W) of each group."""
        if self._at == 0:
            self.explore_anew()
        step = self._at
        self._share(
            self._num_envs,
            lambda worker, robots: self._act(worker, step, robots, {n: obs[n][robots] for n in _GROUPS}),
        )
        return self._rollout.action[step * self._num_envs : (step + 1) * self._num_envs]

    def explore_anew(self) -> None:
        """Draw the exploration of a whole batch."""
        for noise in self._noise:
            torch.randn(noise.shape, out=noise)

    def act_alone(self, step: int, thread: int, robots: slice, obs: Mapping[str, Tensor]) -> Tensor:
        """Sampled actions (M, J) in a step of the batch for `robots`, who see `obs`, worked out by the caller's thread.

        Args:
            thread: a number of its own for each thread that calls at the same time, below `threads`.
        """
        _one_thread_each()
        with torch.no_grad():
            return self._act(self._workers[thread], step, robots, obs)

    def _act(self, worker: _Worker, step: int, robots: slice, obs: Mapping[str, Tensor]) -> Tensor:
        log_std, noise, b = self.actor.distribution.log_std_param.detach(), self._noise[step, robots], self._rollout
        rows = slice(step * self._num_envs + robots.start, step * self._num_envs + robots.stop)
        for name in _GROUPS:
            self._normalise(name, obs[name], b.inputs[name][rows])
        mean = b.mean[rows].copy_(worker.net["actor"].forward(b.inputs["actor"][rows]))
        torch.addcmul(mean, noise, log_std.exp(), out=b.action[rows])
        b.log_prob[rows] = -0.5 * noise.square().sum(1) - log_std.sum() - _half_log_tau(len(log_std))
        return b.action[rows]

    def _normalise(self, name: str, obs: Tensor, out: Tensor) -> None:
        model = self._models[name]
        out.copy_(model.obs_normalizer(obs) if model.obs_normalization else obs)

    def process_env_step(self, obs: Any, rewards: Tensor, dones: Tensor, extras: dict[str, Tensor]) -> None:
        """Record what the actions of `act` brought."""
        self.record(self._at, slice(0, self._num_envs), rewards, dones, extras["time_outs"])
        self._at += 1

    def record(self, step: int, robots: slice, rewards: Tensor, dones: Tensor, timed_out: Tensor) -> None:
        """Record what the actions of `robots` brought in a step of the batch."""
        self._reward[step, robots], self._done[step, robots] = rewards, dones
        self._timed_out[step, robots] = timed_out

    def compute_returns(self, obs: Mapping[str, Tensor]) -> None:
        """Values, advantages and returns of the batch; `obs` are those after its last step."""
        b, shape = self._rollout, (self._steps, self._num_envs)

        def work(worker: _Worker, part: slice) -> None:
            self._normalise("critic", obs["critic"][part], self._last[part])
            self._last_value[part] = worker.net["critic"].forward(self._last[part])[:, 0]
            for step in range(self._steps):
                rows = slice(step * self._num_envs + part.start, step * self._num_envs + part.stop)
                b.value[rows] = worker.net["critic"].forward(b.inputs["critic"][rows])[:, 0]

        self._share(self._num_envs, work)
        value, returns = b.value.view(shape), b.returns.view(shape)
        reward = self._reward + self.gamma * value * self._timed_out
        goes_on = (1.0 - self._done) * self.gamma
        advantage, after = torch.zeros(self._num_envs), self._last_value
        for step in reversed(range(self._steps)):
            advantage = reward[step] + goes_on[step] * (after + self.lam * advantage) - value[step]
            torch.add(advantage, value[step], out=returns[step])
            after = value[step]
        torch.sub(b.returns, b.value, out=b.advantage)
        b.advantage.sub_(b.advantage.mean()).div_(b.advantage.std() + 1e-8)

    def update(self) -> dict[str, float]:
        """All epochs over the batch; mean losses by name."""
        order = torch.randperm(self._batch * self.num_mini_batches)
        old_log_std = self.actor.distribution.log_std_param.detach().clone()

        def shuffle(worker: _Worker, part: slice) -> None:
            for source, target in zip(self._rollout.arrays(), self._shuffled.arrays(), strict=True):
                torch.index_select(source, 0, order[part], out=target[part])

        self._share(len(order), shuffle)
        losses = []
        for _ in range(self.num_learning_epochs):
            losses += [self._descend(k * self._batch, old_log_std) for k in range(self.num_mini_batches)]
        self._learn_normalisation()
        self._at = 0
        count = len(losses)
        log_std = self.actor.distribution.log_std_param.detach()
        return {
            "value": sum(x.value for x in losses) / count,
            "surrogate": sum(x.surrogate for x in losses) / count,
            "entropy": float(log_std.sum()) + 0.5 * len(log_std) + _half_log_tau(len(log_std)),
        }

    def _descend(self, begin: int, old_log_std: Tensor) -> _Losses:
        """One step of the optimiser on the minibatch whose rows start at `begin`."""

        def work(worker: _Worker, part: slice) -> _Losses:
            rows = slice(begin + part.start, begin + part.stop)
            surrogate, divergence = self._actor_gradient(worker, rows, old_log_std)
            return _Losses(self._critic_gradient(worker, rows), surrogate, divergence)

        parts = self._share(self._batch, work)
        total = _Losses(*(sum(getattr(p, n) for p in parts) / self._batch for n in _Losses.__dataclass_fields__))
        self._adapt_rate(total.divergence)
        for name in _GROUPS:
            gradient = self._workers[0].flat[name]
            for worker in self._workers[1 : len(parts)]:
                gradient.add_(worker.flat[name])
            gradient.mul_(torch.clamp(self.max_grad_norm / (gradient.norm() + 1e-6), max=1.0))
        self.optimizer.step()
        return total

    def _actor_gradient(self, worker: _Worker, rows: slice, old_log_std: Tensor) -> tuple[float, float]:
        """Write the gradient; sums of surrogate loss and of the divergence from the old policy over the rows."""
        b = self._shuffled
        log_std = self.actor.distribution.log_std_param.detach()
        net, x = worker.net["actor"], b.inputs["actor"][rows]
        inverse = torch.exp(-log_std)
        mean = net.forward(x)
        away = (b.action[rows] - mean).mul_(inverse)
        square = away.square()
        log_prob = -0.5 * square.sum(1) - log_std.sum() - _half_log_tau(len(log_std))
        ratio = torch.exp(log_prob - b.log_prob[rows])
        plain = -b.advantage[rows] * ratio
        clipped = -b.advantage[rows] * ratio.clamp(1.0 - self.clip_param, 1.0 + self.clip_param)
        slope = torch.where(plain >= clipped, plain, 0.0).div_(self._batch)
        net.backward(x, away.mul_(inverse).mul_(slope[:, None]))
        torch.mv((square - 1.0).T, slope, out=worker.log_std)
        worker.log_std.sub_(self.entropy_coef * len(x) / self._batch)
        moved = (b.mean[rows] - mean).mul_(inverse).square_().sum()
        wider = 2.0 * (old_log_std - log_std)
        divergence = 0.5 * (moved + len(x) * (wider.exp() - wider - 1.0).sum())
        return float(torch.maximum(plain, clipped).sum()), float(divergence)

    def _critic_gradient(self, worker: _Worker, rows: slice) -> float:
        """Write the gradient; the sum of the squared errors over the rows."""
        b = self._shuffled
        net, x = worker.net["critic"], b.inputs["critic"][rows]
        value = net.forward(x)[:, 0]
        error = value - b.returns[rows]
        loss, slope = error.square(), error
        if self.use_clipped_value_loss:
            change = value - b.value[rows]
            held = b.value[rows] + change.clamp(-self.clip_param, self.clip_param) - b.returns[rows]
            inside = change.abs() <= self.clip_param
            slope = torch.where(loss >= held.square(), error, held * inside)
            loss = torch.maximum(loss, held.square())
        net.backward(x, (slope * (2.0 * self.value_loss_coef / self._batch))[:, None])
        return float(loss.sum())

    def _adapt_rate(self, divergence: float) -> None:
        if self.desired_kl is None or self.schedule != "adaptive":
            return
        if divergence > 2.0 * self.desired_kl:
            self.learning_rate = max(_MIN_RATE, self.learning_rate / _RATE_FACTOR)
        elif 0.0 < divergence < 0.5 * self.desired_kl:
            self.learning_rate = min(_MAX_RATE, self.learning_rate * _RATE_FACTOR)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate

    def _learn_normalisation(self) -> None:
        def learn(name: str) -> None:
            model = self._models[name]
            if model.obs_normalization:
                with torch.no_grad():
                    model.obs_normalizer.update(model.obs_normalizer.inverse(self._rollout.inputs[name]))

        list(self._pool.map(learn, _GROUPS))


def _half_log_tau(count: int) -> float:
    return 0.5 * count * math.log(2.0 * math.pi)
