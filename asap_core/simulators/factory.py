"""One place that turns a backend's name into a simulator; a further engine adds its line here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import Simulator
from asap_core.simulators.settings import SimulationSettings

Physics = PhysicsSettings | Sequence[PhysicsSettings]
"""One for all robots, or one for each."""


def _mujoco(profile: RobotProfile, physics: Physics, num_envs: int, threads: int) -> Simulator:
    from asap_core.simulators.mujoco import MujocoSimulator

    return MujocoSimulator(profile, physics, num_envs, threads)


def _physx(profile: RobotProfile, physics: Physics, num_envs: int, threads: int) -> Simulator:
    from asap_core.simulators.physx import PhysxSimulator

    return PhysxSimulator(profile, physics, num_envs)


_BACKENDS: dict[str, Callable[[RobotProfile, Physics, int, int], Simulator]] = {"mujoco": _mujoco, "physx": _physx}
"""By the names that `SimulationSettings.backend` allows."""


def make_simulator(
    profile: RobotProfile, settings: SimulationSettings, num_envs: int, physics: Physics | None = None
) -> Simulator:
    """A simulator of `num_envs` robots under `physics` (default: the nominal physics of `settings`)."""
    return _BACKENDS[settings.backend](profile, physics or settings.physics, num_envs, settings.threads)
