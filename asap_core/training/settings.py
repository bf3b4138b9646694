"""Settings of PPO and of the two training stages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from asap_core.settings import Settings


class PpoSettings(Settings):
    """Section `ppo` of `params.yaml`: the learner, shared by pre-training and fine-tuning (rsl-rl's PPO)."""

    learner: Literal["rsl_rl", "lean"] = "rsl_rl"
    """`lean` computes the same updates faster on a CPU (`lean_ppo.py`)."""
    num_envs: int = Field(default=256, ge=1)
    steps_per_env: int = Field(default=16, ge=2)
    epochs: int = Field(default=4, ge=1)
    mini_batches: int = Field(default=4, ge=1)
    learning_rate: float = Field(default=3e-4, gt=0)
    """Of the actor, at first; adapted to `desired_kl`."""
    critic_learning_rate: Annotated[float, Field(gt=0)] | None = 7e-4
    """None: the critic's follows the actor's, as in the paper's code."""
    desired_kl: float = Field(default=0.012, gt=0)
    """KL divergence per update that the adaptive learning rate aims at."""
    gamma: float = Field(default=0.97, gt=0, lt=1)
    lam: float = Field(default=0.95, gt=0, le=1)
    clip: float = Field(default=0.2, gt=0)
    entropy: float = Field(default=0.0, ge=0)
    value_loss: float = Field(default=1.0, gt=0)
    max_grad_norm: float = Field(default=1.0, gt=0)
    clip_value: bool = False
    """Clip the value loss as the ratio is."""
    normalise_observations: bool = True
    """Running mean and variance of the observations, in actor and critic."""
    normalise_critic: bool = False
    """Where `normalise_observations` is false: in the critic all the same."""
    init_std: float = Field(default=0.4, gt=0)
    """Standard deviation of the raw action at first."""
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(256, 128, 64), min_length=1)
    """Widths of the hidden layers of actor and critic."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where the networks learn."""
    gpus: int = Field(default=1, ge=1, le=64)
    """Processes that train together through torchrun, each with `num_envs` robots of its own: one for each GPU."""

    @model_validator(mode="after")
    def _batches_have_rows(self) -> PpoSettings:
        rows = self.num_envs * self.steps_per_env
        if rows < self.mini_batches:
            raise ValueError(f"mini_batches is {self.mini_batches}, expected at most num_envs · steps_per_env = {rows}")
        if self.learner == "lean" and (self.device, self.gpus) != ("cpu", 1):
            raise ValueError(
                f"learner is 'lean' with device {self.device!r} and gpus {self.gpus}, expected 'cpu' and 1, or rsl_rl"
            )
        return self


class PretrainSettings(Settings):
    """Section `pretrain`."""

    motions: tuple[str, ...] = ()
    """The motions that one policy is trained on; none: `motions.train`. Several need an actor that sees the reference
    ahead (`ref_dof_pos_future`)."""
    iterations: int = Field(default=200, ge=1)
    physics_dt: float = Field(default=0.01, gt=0)
    """s; coarser than the nominal step, for throughput. Evaluations always run at the nominal step."""
    evaluate_every: int = Field(default=16, ge=1)
    """Iterations between evaluations and checkpoints."""
    snapshots: tuple[Annotated[float, Field(gt=0, le=1)], ...] = Field(
        default=(0.5, 0.6, 0.7, 0.8, 0.9, 1.0), min_length=1
    )
    """Shares of the iterations after which a snapshot of the policy is kept for collection."""

    def snapshot_iterations(self) -> list[int]:
        """Iterations at which snapshots are kept: the evaluation at or after each share, at the latest the last."""
        every = self.evaluate_every
        wanted = (round(share * self.iterations) for share in self.snapshots)
        return sorted({min(max(1, -(-iteration // every)) * every, self.iterations) for iteration in wanted})


class FinetuneSettings(Settings):
    """Section `finetune`."""

    iterations: int = Field(default=30, ge=1)
    seeds: int = Field(default=3, ge=1)
    physics_dt: float = Field(default=0.005, gt=0)
    learning_rate: float = Field(default=3e-4, gt=0)
    init_std: float = Field(default=0.2, gt=0)
    checkpoint_every: int = Field(default=10, ge=1)
    allow_rejected_delta: bool = False
    """Fine-tune with a delta model that failed its acceptance, all the same."""
    without_delta: float = Field(default=0.0, ge=0, lt=1)
    """Share of the robots of arm `asap` that do without the delta."""
    delta_scale: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]] = (1.0, 1.0)
    """Bounds of the factor on the delta of each robot and joint, drawn uniformly."""

    @model_validator(mode="after")
    def _scale_is_in_order(self) -> FinetuneSettings:
        if self.delta_scale[0] > self.delta_scale[1]:
            raise ValueError(f"delta_scale is {list(self.delta_scale)}, expected the smaller first")
        return self
