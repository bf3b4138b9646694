"""The delta action model as one way of alignment among others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asap_core.alignment.corrected import Corrected
from asap_core.alignment.fit import DeltaFitter
from asap_core.alignment.settings import AlignSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.rollouts.settings import Split
from asap_core.simulators.settings import SimulationSettings


@dataclass(frozen=True)
class DeltaRival:
    """`DeltaFitter` for the simulator of `simulation`, whose physics may be fitted ones."""

    profile: RobotProfile
    simulation: SimulationSettings
    settings: AlignSettings
    name: str = "delta"

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Rival`."""
        return {"rival": self.name, "settings": self.settings.model_dump(mode="json")}

    def fit(self, fit: Rollout, validation: Rollout, seed: int, cache: Path) -> Corrected:
        """See `Rival`."""
        splits: dict[Split, Rollout] = {"fit": fit, "validation": validation, "heldout": validation}
        found = DeltaFitter(self.profile, self.simulation, splits, self.settings, seed, cache).run()
        table = {c.name: {f"{h}s": v for h, v in c.validation.items()} for c in found.candidates}
        report = {"candidates_mm": table}
        return Corrected(found.chosen.name, self.simulation.physics, found.chosen.model, report=report)
