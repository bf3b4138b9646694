"""SysID: physical parameters from rollouts, by Gauss-Newton on the multi-step replay error.

All perturbed worlds of an iteration are replayed side by side in one batch of robots, each with a model of its own.
The fit reads rollouts and nominal physics, never the target's. Beside each value stands its uncertainty, and whether
the data determine it at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.alignment.choice import choose
from asap_core.alignment.corrected import Corrected
from asap_core.alignment.physics_fit import PhysicsFitter, SysIdSettings
from asap_core.alignment.physics_replay import PhysicsReplay, RolloutReplay
from asap_core.alignment.replay import Segments, cut_segments, horizon_steps
from asap_core.alignment.sysid_parameters import physics_of, sysid_parameters
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.simulators.settings import SimulationSettings


@dataclass(frozen=True)
class SysIdRival:
    """SysID as one way of alignment."""

    profile: RobotProfile
    simulation: SimulationSettings
    settings: SysIdSettings
    name: str = "sysid"

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Rival`."""
        return {"rival": self.name, "settings": self.settings.model_dump(mode="json")}

    def fit(self, fit: Rollout, validation: Rollout, seed: int, cache: Path) -> Corrected:
        """See `Rival`. Deterministic; `seed` changes nothing."""
        nominal = self.simulation.physics
        fitter = self.fitter(fit, cache)
        ends = fitter.run()
        report = {e.parameter.name: e.as_json() for e in fitter.estimates(ends[-1])}
        candidates = [Corrected("zero", nominal)]
        for stage, (horizon, value) in enumerate(zip(self.settings.horizons_s, ends, strict=True)):
            physics = physics_of(nominal, fitter.parameters, value)
            candidates.append(Corrected(f"sysid_{stage + 1}_{horizon:g}s", physics, report={"parameters": report}))
        return choose(candidates, validation, self.profile, self.simulation)

    def fitter(self, rollout: Rollout, cache: Path) -> PhysicsFitter:
        """What fits all parameters to `rollout`."""
        profile, nominal, threads = self.profile, self.simulation.physics, self.simulation.threads
        parameters = sysid_parameters(profile, nominal)

        def replay(horizon_s: float, shrink: float) -> PhysicsReplay:
            steps = horizon_steps(horizon_s, nominal.control_dt)
            count = max(1, round(self.settings.seconds / horizon_s))
            segments = spread_segments(rollout, profile, steps, count)
            return RolloutReplay(profile, nominal, parameters, segments, threads, shrink)

        return PhysicsFitter(parameters, replay, self.settings, cache)


def spread_segments(rollout: Rollout, profile: RobotProfile, steps: int, count: int) -> Segments:
    """At most `count` segments of `steps` control steps, evenly chosen from all."""
    segments = cut_segments(rollout, profile, steps)
    return segments.take(np.linspace(0, segments.num - 1, min(count, segments.num)).astype(np.intp))
