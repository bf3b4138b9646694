"""Links together with the bodies welded to them, as engines need them that know no welds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asap_core.robots.mjcf import link_centres, link_masses
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import Quat, RobotProfile
from asap_core.rotations import Array, quat_mul, quat_to_matrix, rotate


@dataclass(frozen=True)
class Carrier:
    """Where a body is fixed: `link` bears it at `pos` (3,) m and `quat` (4,) wxyz in its frame. A link bears itself."""

    link: str
    pos: Array
    quat: Array


@dataclass(frozen=True)
class Inertial:
    """Mass in kg, centre of mass (3,) m and inertia (3, 3) kg m² about it, both in the link's frame."""

    mass: float
    com: Array
    inertia: Array


def carriers(profile: RobotProfile) -> dict[str, Carrier]:
    """Of every body, links and welded bodies."""
    found = {link.name: Carrier(link.name, np.zeros(3), np.array([1.0, 0, 0, 0])) for link in profile.links}
    for body in profile.fixed_links:
        parent = found[body.parent or profile.links[0].name]
        pos = parent.pos + rotate(parent.quat, np.array(body.pos, float))
        found[body.name] = Carrier(parent.link, pos, quat_mul(parent.quat, _unit(body.quat)))
    return found


def compound_inertials(profile: RobotProfile, physics: PhysicsSettings) -> dict[str, Inertial]:
    """Of every link with what is welded to it, after `added_mass` and `com_offset`.

    Raises:
        UnknownNameError, ConfigError: as `link_masses` and `link_centres`.
    """
    masses, centres, carried = link_masses(profile, physics), link_centres(profile, physics), carriers(profile)
    parts: dict[str, list[Inertial]] = {link.name: [] for link in profile.links}
    for body in (*profile.links, *profile.fixed_links):
        at = carried[body.name]
        axes = quat_to_matrix(quat_mul(at.quat, _unit(body.inertia_quat)))
        com = at.pos + rotate(at.quat, np.array(centres.get(body.name, body.com), float))
        inertia = axes @ np.diag(body.inertia) @ axes.T
        parts[at.link].append(Inertial(masses.get(body.name, body.mass), com, inertia))
    return {name: _joined(bodies) for name, bodies in parts.items()}


def _unit(quat: Quat) -> Array:
    """Tables give quaternions with six digits."""
    return np.array(quat, float) / np.linalg.norm(quat)


def _joined(parts: list[Inertial]) -> Inertial:
    mass = sum(part.mass for part in parts)
    com = np.sum([part.mass * part.com for part in parts], axis=0) / mass
    inertia = np.zeros((3, 3))
    for part in parts:
        arm = part.com - com
        inertia += part.inertia + part.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return Inertial(mass, com, inertia)
