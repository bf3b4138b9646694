"""SysID first, a delta action model on what is left: the form that no paper ships."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from asap_core.alignment.choice import choose
from asap_core.alignment.corrected import Corrected, Rival
from asap_core.alignment.delayed_target import DelayedTarget, with_targets_in_force
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.simulators.settings import SimulationSettings

_LEAST_DELAY_S = 5e-4
"""Shorter delays stay in the simulator."""


@dataclass(frozen=True)
class TwoStageRival:
    """`first` alters the physics; `second`, built for the altered simulator, corrects the actions in it.

    The second stage sees targets when they take effect: a delay that the first stage found moves from the simulator
    into the correction, and the rollouts' targets with it.
    """

    profile: RobotProfile
    simulation: SimulationSettings
    first: Rival
    second: Callable[[SimulationSettings], Rival]
    name: str = "two_stage"

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Rival`."""
        stages = (dict(self.first.identity), dict(self.second(self.simulation).identity))
        return {"rival": self.name, "stages": stages}

    def fit(self, fit: Rollout, validation: Rollout, seed: int, cache: Path) -> Corrected:
        """See `Rival`; the first stage alone stays unless the second one proves to help on `validation`."""
        one = self.first.fit(fit, validation, seed, cache / "first")
        two = self._second(one, fit, validation, seed, cache / "second")
        chosen = choose([one, two], validation, self.profile, self.simulation)
        return replace(chosen, report={**chosen.report, "first": dict(one.report), "second": dict(two.report)})

    def _second(self, one: Corrected, fit: Rollout, validation: Rollout, seed: int, cache: Path) -> Corrected:
        delay_s = one.physics.delay_s if one.physics.delay_s > _LEAST_DELAY_S else 0.0
        prompt = one.physics
        if delay_s:
            prompt = one.physics.model_copy(update={"action_delay": 0, "action_delay_s": 0.0})
        steps = round(delay_s / prompt.control_dt, 2)
        rival = self.second(self.simulation.model_copy(update={"physics": prompt}))
        found = rival.fit(with_targets_in_force(fit, steps), with_targets_in_force(validation, steps), seed, cache)
        correction = DelayedTarget(steps, found.correction) if steps else found.correction
        return replace(found, name=f"{one.name}+{found.name}", correction=correction)
