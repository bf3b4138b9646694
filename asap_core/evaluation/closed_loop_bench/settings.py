"""How the policies of the closed-loop table are fine-tuned and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import Field

from asap_core.environments.disturbances import DisturbanceSettings
from asap_core.environments.randomisation import RandomisationSettings
from asap_core.environments.settings import TrackingSettings
from asap_core.evaluation.settings import EvaluateSettings
from asap_core.settings import Settings
from asap_core.simulators.settings import SimulationSettings
from asap_core.training.settings import FinetuneSettings, PpoSettings


class WarmStartSettings(Settings):
    """What a published policy lacks when it is fine-tuned."""

    critic_iterations: int = Field(default=6, ge=0)
    """In which the critic alone learns, from nothing, in the nominal simulator; every arm goes on from there."""
    score_every: int = Field(default=5, ge=1)
    """Iterations between two looks at the policy, in the simulator that it is trained in; the best one is taken."""
    last_layer_only: bool = True
    """Whether the actor's last layer alone is trained: what so few samples can teach."""
    distance_m: float = Field(default=0.8, gt=0)
    """Limit of the terminations: the published policies' own is not published, and some are 0.5 m off in places."""


@dataclass(frozen=True)
class Recipe:
    """Everything that a result depends on, besides code, motion, seed and arm."""

    simulation: SimulationSettings
    """The nominal simulator."""
    tracking: TrackingSettings
    """The paper's task, with its domain randomisation, which the arm of that name alone keeps."""
    ppo: PpoSettings
    finetune: FinetuneSettings
    """`seeds` trainings of each arm."""
    warm_start: WarmStartSettings
    evaluate: EvaluateSettings

    def task(self, randomised: bool) -> TrackingSettings:
        """The tracking task as at the end of a pre-training: curricula done, the distance limit fixed."""
        tracking = self.tracking
        limits = {
            name: ramp.model_copy(update={"start": ramp.lowest, "degree": 0.0})
            for name, ramp in ((n, getattr(tracking.soft_limits, n)) for n in type(tracking.soft_limits).model_fields)
        }
        penalty = tracking.penalty_scale
        changes: dict[str, Any] = {
            "termination": tracking.termination.fixed_at(self.warm_start.distance_m),
            "penalty_scale": penalty.model_copy(update={"start": penalty.highest, "degree": 0.0}),
            "soft_limits": tracking.soft_limits.model_copy(update=limits),
        }
        if not randomised:
            changes |= {"randomisation": RandomisationSettings(), "disturbances": DisturbanceSettings()}
        return tracking.model_copy(update=changes)

    def training_identity(self) -> list[Any]:
        """As JSON: what a trained policy depends on; the number of seeds and the evaluation are no part of it."""
        parts = (self.simulation.physics, self.tracking, self.ppo, self.warm_start)
        finetune = self.finetune.model_dump(mode="json", exclude={"seeds", "checkpoint_every"})
        return [self.simulation.backend, *(part.model_dump(mode="json") for part in parts), finetune]
