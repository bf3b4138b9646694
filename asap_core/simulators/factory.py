"""One place that turns a backend's name into a simulator; a further engine adds its line here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec

from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import Simulator
from asap_core.simulators.settings import Backend, SimulationSettings

Physics = PhysicsSettings | Sequence[PhysicsSettings]
"""One for all robots, or one for each."""


def _mujoco(profile: RobotProfile, physics: Physics, num_envs: int, threads: int) -> Simulator:
    from asap_core.simulators.mujoco import MujocoSimulator

    return MujocoSimulator(profile, physics, num_envs, threads)


def _physx(profile: RobotProfile, physics: Physics, num_envs: int, threads: int) -> Simulator:
    from asap_core.simulators.physx import PhysxSimulator

    return PhysxSimulator(profile, physics, num_envs)


def _genesis(profile: RobotProfile, physics: Physics, num_envs: int, threads: int) -> Simulator:
    from asap_core.simulators.genesis import GenesisSimulator

    return GenesisSimulator(profile, physics, num_envs)


def _isaaclab(profile: RobotProfile, physics: Physics, num_envs: int, threads: int) -> Simulator:
    from asap_core.simulators.isaaclab.simulator import IsaacLabSimulator

    return IsaacLabSimulator(profile, physics, num_envs)


def _isaaclab_newton(profile: RobotProfile, physics: Physics, num_envs: int, threads: int) -> Simulator:
    from asap_core.simulators.isaaclab.simulator import IsaacLabSimulator

    return IsaacLabSimulator(profile, physics, num_envs, engine="newton")


_BACKENDS: dict[str, Callable[[RobotProfile, Physics, int, int], Simulator]] = {
    "mujoco": _mujoco,
    "physx": _physx,
    "genesis": _genesis,
    "isaaclab": _isaaclab,
    "isaaclab_newton": _isaaclab_newton,
}
"""By the names that `SimulationSettings.backend` allows."""
LIBRARIES: dict[Backend, str] = {
    "mujoco": "mujoco",
    "physx": "ovphysx",
    "genesis": "genesis",
    "isaaclab": "isaaclab",
    "isaaclab_newton": "isaaclab",
}
"""Backend → the package that it needs."""


def installed_backends() -> tuple[Backend, ...]:
    """Those whose package is here."""
    return tuple(backend for backend, library in LIBRARIES.items() if find_spec(library) is not None)


def make_simulator(
    profile: RobotProfile, settings: SimulationSettings, num_envs: int, physics: Physics | None = None
) -> Simulator:
    """A simulator of `num_envs` robots under `physics` (default: the nominal physics of `settings`)."""
    return _BACKENDS[settings.backend](profile, physics or settings.physics, num_envs, settings.threads)
