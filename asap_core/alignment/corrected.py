"""What an alignment gives: a simulator whose physics, actions or states are corrected towards a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from asap_core.alignment.delta_model import DeltaActionModel, DeltaCorrection
from asap_core.alignment.state_residual import ResidualSimulator, StateResidual
from asap_core.environments.correction import ActionCorrection
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.protocol import Simulator
from asap_core.simulators.settings import SimulationSettings


@dataclass(frozen=True)
class Corrected:
    """A corrected simulator: its physics, what is added to actions, and what is added to states after a step."""

    name: str
    """What was chosen, e.g. `zero` or `sysid`."""
    physics: PhysicsSettings
    delta: DeltaActionModel | None = None
    residual: StateResidual | None = None
    report: Mapping[str, Any] = field(default_factory=dict)
    """What the fit found, as JSON."""

    @property
    def correction(self) -> ActionCorrection | None:
        """The delta with a memory of its own."""
        return None if self.delta is None else DeltaCorrection(self.delta.predict, self.physics.control_dt)

    def simulator(self, profile: RobotProfile, settings: SimulationSettings, num_envs: int) -> Simulator:
        """A simulator of `num_envs` robots with this physics and residual; `correction` is the caller's to apply."""
        simulator = make_simulator(profile, settings, num_envs, self.physics)
        if self.residual is None:
            return simulator
        return ResidualSimulator(simulator, self.residual)


class Rival(Protocol):
    """A way of aligning the nominal simulator, fitted on rollouts alone."""

    @property
    def name(self) -> str:
        """In tables."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything besides the data, the seed and the code that its result depends on, as JSON."""

    def fit(self, fit: Rollout, validation: Rollout, seed: int, cache: Path) -> Corrected:
        """Fit on one split, choose on the other. What is finished is kept under `cache`, so that a killed fit goes on.

        Zero is always a candidate of the choice.
        """


@dataclass(frozen=True)
class ZeroRival:
    """Changes nothing: plain open loop. Random action noise too leaves open loop as it is, its mean being zero."""

    physics: PhysicsSettings
    name: str = "zero"

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Rival`."""
        return {"rival": self.name}

    def fit(self, fit: Rollout, validation: Rollout, seed: int, cache: Path) -> Corrected:
        """See `Rival`."""
        return Corrected("zero", self.physics)
