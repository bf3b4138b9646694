"""The physical parameters that SysID fits, and how their values become a `PhysicsSettings`.

Joints of both sides and all axes of one place share a value: hip, knee, ankle, waist, shoulder, elbow on a humanoid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.mjcf import per_joint
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile

Array = NDArray[np.floating]
_SIDE_OR_AXIS = re.compile(r"^(left|right)_|_(pitch|roll|yaw)(?=_|$)|_joint$")


@dataclass(frozen=True)
class Parameter:
    """One number of a simulated world."""

    name: str
    """`kind.place`, such as `strength.knee`."""
    unit: str
    nominal: float
    low: float
    high: float
    step: float
    """By which derivatives are taken; also the size at which a change matters."""
    field: str
    """Of `PhysicsSettings`."""
    key: str = ""
    """Joint-name substring or link, where the field is a mapping."""
    axis: int = -1
    """Of a vector."""

    def clipped(self, values: Array) -> Array:
        """Within the bounds."""
        return np.clip(values, self.low, self.high)


def joint_groups(profile: RobotProfile) -> tuple[str, ...]:
    """Places of joints, each a substring of the names of its own joints and of no others.

    Raises:
        ValueError: the joint names do not part that way.
    """
    place = {name: _SIDE_OR_AXIS.sub("", name) for name in profile.joint_names}
    for name, own in place.items():
        strangers = [group for group in place.values() if group in name and group != own]
        if strangers or own not in name:
            raise ValueError(f"joint {name}: its place {own!r} cannot be told from {strangers}")
    return tuple(dict.fromkeys(place.values()))


def sysid_parameters(profile: RobotProfile, nominal: PhysicsSettings) -> tuple[Parameter, ...]:
    """All parameters that can be fitted, with their nominal values and bounds."""
    return (*_of_drives(profile, nominal), *_of_bodies(profile, nominal), *_of_the_world(nominal))


def _of_drives(profile: RobotProfile, nominal: PhysicsSettings) -> Iterator[Parameter]:
    for group in joint_groups(profile):
        at = next(i for i, name in enumerate(profile.joint_names) if group in name)

        def now(kind: str, at: int = at) -> float:
            return float(per_joint(profile, kind, getattr(nominal, kind), getattr(nominal, f"{kind}_of"))[at])

        yield Parameter(f"strength.{group}", "1", nominal.strength.get(group, 1.0), 0.2, 3.0, 0.05, "strength", group)
        yield Parameter(f"armature.{group}", "kg m²", now("armature"), 0.001, 0.5, 0.005, "armature_of", group)
        yield Parameter(f"frictionloss.{group}", "Nm", now("frictionloss"), 0.0, 10.0, 0.1, "frictionloss_of", group)
        yield Parameter(f"damping.{group}", "Nm s/rad", now("damping"), 0.0, 10.0, 0.1, "damping_of", group)


def _of_bodies(profile: RobotProfile, nominal: PhysicsSettings) -> Iterator[Parameter]:
    root, *others = profile.links
    heaviest = max(others, key=lambda link: link.mass)
    for link in (root, heaviest):
        added = nominal.added_mass.get(link.name, 0.0)
        yield Parameter(f"mass.{link.name}", "kg", added, -0.5 * link.mass, 15.0, 0.25, "added_mass", link.name)
    offset = nominal.com_offset.get(heaviest.name, (0.0, 0.0, 0.0))
    for axis, letter in enumerate("xyz"):
        name = f"com_{letter}.{heaviest.name}"
        yield Parameter(name, "m", offset[axis], -0.2, 0.2, 0.01, "com_offset", heaviest.name, axis)


def _of_the_world(nominal: PhysicsSettings) -> Iterator[Parameter]:
    yield Parameter("friction.ground", "1", nominal.friction, 0.05, 3.0, 0.1, "friction")
    yield Parameter("delay", "s", nominal.action_delay_s, 0.0, 0.1, 0.0025, "action_delay_s")


def physics_of(nominal: PhysicsSettings, parameters: tuple[Parameter, ...], values: Array) -> PhysicsSettings:
    """`nominal` with `values` (P,) in place of its own. Parameters at their nominal value change nothing."""
    fields: dict[str, Any] = nominal.model_dump()
    for parameter, value in zip(parameters, values.tolist(), strict=True):
        if value == parameter.nominal:
            continue
        if not parameter.key:
            fields[parameter.field] = value
        elif parameter.axis < 0:
            fields[parameter.field][parameter.key] = value
        else:
            vector = list(fields[parameter.field].get(parameter.key, (0.0, 0.0, 0.0)))
            vector[parameter.axis] = value
            fields[parameter.field][parameter.key] = tuple(vector)
    return PhysicsSettings.model_validate(fields)
