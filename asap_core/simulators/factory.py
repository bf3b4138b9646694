"""One place that turns a backend's name into a simulator; a further engine adds its line here."""

from __future__ import annotations

from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import Simulator
from asap_core.simulators.settings import SimulationSettings


def make_simulator(
    profile: RobotProfile, settings: SimulationSettings, num_envs: int, physics: PhysicsSettings | None = None
) -> Simulator:
    """A simulator of `num_envs` robots under `physics` (default: the nominal physics of `settings`)."""
    from asap_core.simulators.mujoco import MujocoSimulator

    return MujocoSimulator(profile, physics or settings.physics, num_envs, settings.threads)
