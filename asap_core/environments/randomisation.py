"""Robots of different physics side by side (domain randomisation), drawn once for each robot.

Source: ASAP's Table VI and released configuration. There, gains are drawn anew for each episode; here every robot keeps
its own for the whole training, and the number of robots makes the variety. Delays and pushes: `disturbances.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from asap_core.errors import unknown_name
from asap_core.robots.mjcf import link_masses, per_joint
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.settings import Settings


def _in_order(value: tuple[float, float]) -> tuple[float, float]:
    if not 0 < value[0] <= value[1]:
        raise ValueError(f"expected two numbers above 0, the smaller first; found {list(value)}")
    return value


Range = Annotated[tuple[float, float], AfterValidator(_in_order)]


class RandomisationSettings(Settings):
    """Ranges of uniform draws; a term without a range is off."""

    friction: Range | None = None
    """Friction coefficient of every contact of a robot."""
    kp: Range | None = None
    """Factor on each joint's P gain."""
    kd: Range | None = None
    """Factor on each joint's D gain."""
    armature: Range | None = None
    """Factor on each joint's armature."""
    link_mass: Range | None = None
    """Factor on the mass of each of `mass_links`."""
    mass_links: tuple[str, ...] = ("pelvis", "hip", "knee")
    """Parts of the names of the links whose mass varies."""
    com_offset: float = Field(default=0.0, ge=0)
    """m; each component of the torso's centre of mass is displaced uniformly within ±."""


Draw = Callable[[np.random.Generator, RandomisationSettings, RobotProfile, PhysicsSettings], dict[str, object]]


def _friction(
    rng: np.random.Generator, s: RandomisationSettings, profile: RobotProfile, physics: PhysicsSettings
) -> dict[str, object]:
    return {} if s.friction is None else {"friction": float(rng.uniform(*s.friction))}


def _per_joint(rng: np.random.Generator, bounds: Range, profile: RobotProfile) -> dict[str, float]:
    drawn = rng.uniform(*bounds, profile.num_joints)
    return dict(zip(profile.joint_names, drawn.tolist(), strict=True))


def _kp(
    rng: np.random.Generator, s: RandomisationSettings, profile: RobotProfile, physics: PhysicsSettings
) -> dict[str, object]:
    return {} if s.kp is None else {"kp_factor": _per_joint(rng, s.kp, profile)}


def _kd(
    rng: np.random.Generator, s: RandomisationSettings, profile: RobotProfile, physics: PhysicsSettings
) -> dict[str, object]:
    return {} if s.kd is None else {"kd_factor": _per_joint(rng, s.kd, profile)}


def _armature(
    rng: np.random.Generator, s: RandomisationSettings, profile: RobotProfile, physics: PhysicsSettings
) -> dict[str, object]:
    if s.armature is None:
        return {}
    nominal = per_joint(profile, "armature_of", physics.armature, physics.armature_of)
    drawn = nominal * rng.uniform(*s.armature, profile.num_joints)
    return {"armature_of": dict(zip(profile.joint_names, drawn.tolist(), strict=True))}


def _link_mass(
    rng: np.random.Generator, s: RandomisationSettings, profile: RobotProfile, physics: PhysicsSettings
) -> dict[str, object]:
    if s.link_mass is None:
        return {}
    masses = link_masses(profile, physics)
    chosen = [name for name in masses if any(part in name for part in s.mass_links)]
    if not chosen:
        raise unknown_name("part of a link's name in mass_links", ", ".join(s.mass_links), masses)
    factors = rng.uniform(*s.link_mass, len(chosen))
    added = {name: float(masses[name] * (f - 1.0)) for name, f in zip(chosen, factors, strict=True)}
    return {"added_mass": {**physics.added_mass, **{n: m + physics.added_mass.get(n, 0.0) for n, m in added.items()}}}


def _com_offset(
    rng: np.random.Generator, s: RandomisationSettings, profile: RobotProfile, physics: PhysicsSettings
) -> dict[str, object]:
    if not s.com_offset:
        return {}
    drawn = rng.uniform(-s.com_offset, s.com_offset, 3) + physics.com_offset.get(profile.torso_link, (0.0, 0.0, 0.0))
    return {"com_offset": {**physics.com_offset, profile.torso_link: tuple(drawn.tolist())}}


TERMS: dict[str, Draw] = {
    "friction": _friction,
    "kp": _kp,
    "kd": _kd,
    "armature": _armature,
    "link_mass": _link_mass,
    "com_offset": _com_offset,
}
"""Every term by the name of its setting: what it draws, as fields of `PhysicsSettings`."""


def randomised(
    physics: PhysicsSettings, settings: RandomisationSettings, profile: RobotProfile, num_envs: int, seed: int
) -> PhysicsSettings | list[PhysicsSettings]:
    """The physics of each of N robots; `physics` itself where every term is off.

    Raises:
        UnknownNameError: `mass_links` match no link.
    """
    rng = np.random.default_rng(seed)
    robots = []
    for _ in range(num_envs):
        changes: dict[str, object] = {}
        for draw in TERMS.values():
            changes |= draw(rng, settings, profile, physics)
        if not changes:
            return physics
        robots.append(physics.model_copy(update=changes))
    return robots
