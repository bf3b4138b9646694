"""Which engine simulates, on how many threads, and the nominal physics."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from asap_core.robots.physics import PhysicsSettings
from asap_core.settings import Settings

Backend = Literal["mujoco", "physx"]


class SimulationSettings(Settings):
    """Section `simulation` of `params.yaml`: the simulator that policies are trained in."""

    backend: Backend = "mujoco"
    """`physx` needs the extra of that name."""
    threads: int = Field(default=2, ge=1, le=1024)
    """Of MuJoCo; PhysX runs on one."""
    physics: PhysicsSettings = PhysicsSettings()
