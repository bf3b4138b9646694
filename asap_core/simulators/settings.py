"""Which engine simulates, on how many threads, and the nominal physics."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from asap_core.robots.physics import PhysicsSettings
from asap_core.settings import Settings

Backend = Literal["mujoco", "physx", "genesis", "isaaclab", "isaaclab_newton"]


class SimulationSettings(Settings):
    """Section `simulation` of `params.yaml`: the simulator that policies are trained in."""

    backend: Backend = "mujoco"
    """`physx`, `genesis` and `isaaclab` need the extra of that name; `isaaclab_newton` is Isaac Lab on Newton."""
    threads: int = Field(default=2, ge=1, le=1024)
    """Of MuJoCo; the others run on one, or on a GPU."""
    physics: PhysicsSettings = PhysicsSettings()
