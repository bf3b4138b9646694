"""SysID first, a delta action model on what is left: the form that no paper ships."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from asap_core.alignment.choice import choose
from asap_core.alignment.corrected import Corrected, Rival
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.simulators.settings import SimulationSettings


@dataclass(frozen=True)
class TwoStageRival:
    """`first` alters the physics; `second`, built for the altered simulator, corrects the actions in it.

    The second stage acts on targets when they take effect, after the delay that the first stage found.
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
        rival = self.second(self.simulation.model_copy(update={"physics": one.physics}))
        two = rival.fit(fit, validation, seed, cache / "second")
        two = replace(two, name=f"{one.name}+{two.name}")
        chosen = choose([one, two], validation, self.profile, self.simulation)
        return replace(chosen, report={**chosen.report, "first": dict(one.report), "second": dict(two.report)})
