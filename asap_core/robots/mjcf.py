"""The robot as a MuJoCo model, written as MJCF text (which every MuJoCo 3 and 4 reads alike)."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import ConfigError, UnknownNameError, unknown_name
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import Link, RobotProfile, Shape

if TYPE_CHECKING:
    import mujoco

FLOOR = "floor"
_INTEGRATORS = {"implicit": "implicitfast", "explicit": "Euler"}
"""MuJoCo's Euler holds actuator forces over a step; only passive joint damping is implicit in it."""


HANG_HEIGHT_M = 2.0
"""Of the root of a robot that hangs."""


def build_model(profile: RobotProfile, physics: PhysicsSettings, hang: bool = False) -> mujoco.MjModel:
    """Compile the robot on a floor; qpos = [root pos, root quat wxyz, joints in profile order], ctrl = joint targets.

    A robot that hangs has its root fixed, upright above the floor; its qpos holds the joints alone.

    Raises:
        UnknownNameError: a joint-name substring of `physics` matches no joint, or a link that it names is none.
        ConfigError: `physics.added_mass` leaves a link without mass.
    """
    import mujoco

    return mujoco.MjModel.from_xml_string(mjcf_xml(profile, physics, hang))


def mjcf_xml(profile: RobotProfile, physics: PhysicsSettings, hang: bool = False) -> str:
    """The MJCF text of `build_model`; same errors."""
    root = ET.Element("mujoco", model=profile.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true")
    option = ET.SubElement(root, "option", timestep=_text(physics.physics_dt), integrator=_INTEGRATORS[physics.drive])
    ET.SubElement(option, "flag", autoreset="disable")  # a state that explodes is seen, not replaced in silence
    _add_defaults(root, physics)
    world = ET.SubElement(root, "worldbody")
    ET.SubElement(world, "light", pos="0 0 4", dir="0 0 -1", directional="true")
    ET.SubElement(world, "geom", name=FLOOR, type="plane", size="0 0 0.05", contype="1", conaffinity="1")
    _add_bodies(world, profile, physics, hang)
    contact = ET.SubElement(root, "contact")
    for first, second in profile.collision_excludes:
        ET.SubElement(contact, "exclude", body1=first, body2=second)
    _add_actuators(root, profile, physics)
    return ET.tostring(root, encoding="unicode")


def scaled_gains(
    profile: RobotProfile, physics: PhysicsSettings
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """kp, kd and torque limit (J,) after `strength`, `kp_factor` and `kd_factor`; several matching substrings multiply.

    Raises:
        UnknownNameError: a substring matches no joint.
    """
    strength, kp, kd = (_factors(profile, physics, name) for name in ("strength", "kp_factor", "kd_factor"))
    return profile.kp * strength * kp, profile.kd * strength * kd, profile.joint_torque_limit * strength


def _factors(profile: RobotProfile, physics: PhysicsSettings, field: str) -> NDArray[np.float64]:
    factor = np.ones(profile.num_joints)
    for pattern, value in getattr(physics, field).items():
        factor[matching_joints(profile, field, pattern)] *= value
    return factor


def matching_joints(profile: RobotProfile, field: str, pattern: str) -> NDArray[np.bool_]:
    """(J,) which joints' names contain `pattern`.

    Raises:
        UnknownNameError: none; `field` says where the pattern stands.
    """
    matches = np.array([pattern in name for name in profile.joint_names])
    if not matches.any():
        valid = ", ".join(profile.joint_names)
        raise UnknownNameError(f"{field}: {pattern!r} matches no joint of {profile.name}; joints: {valid}")
    return matches


def per_joint(profile: RobotProfile, field: str, everywhere: float, of: dict[str, float]) -> NDArray[np.float64]:
    """(J,) a value for every joint: `everywhere`, or that of the last substring in `of` which its name contains.

    Raises:
        UnknownNameError: a substring matches no joint.
    """
    values = np.full(profile.num_joints, everywhere)
    for pattern, value in of.items():
        values[matching_joints(profile, field, pattern)] = value
    return values


def link_masses(profile: RobotProfile, physics: PhysicsSettings) -> dict[str, float]:
    """Mass in kg of every body link, without its welded bodies, after `physics.added_mass`.

    Raises:
        UnknownNameError: a name is not a link with mass.
        ConfigError: a link is left without mass.
    """
    masses = {link.name: link.mass for link in profile.links}
    for name, added in physics.added_mass.items():
        if name not in masses:
            raise unknown_name("link with mass in added_mass", name, masses)
        if masses[name] + added <= 0:
            raise ConfigError(
                f"added_mass[{name!r}] is {added} kg; the link has {masses[name]} kg, expected more to stay"
            )
        masses[name] += added
    return masses


def _add_defaults(root: ET.Element, physics: PhysicsSettings) -> None:
    default = ET.SubElement(root, "default")
    ET.SubElement(
        default,
        "joint",
        armature=_text(physics.armature),
        damping=_text(physics.damping),
        frictionloss=_text(physics.frictionloss),
    )
    contype = "1" if physics.self_collision else "0"
    ET.SubElement(
        default,
        "geom",
        contype=contype,
        conaffinity="1",
        condim="3",
        friction=f"{_text(physics.friction)} 0.005 0.0001",
    )


def _add_bodies(world: ET.Element, profile: RobotProfile, physics: PhysicsSettings, hang: bool) -> None:
    masses, centres = link_masses(profile, physics), link_centres(profile, physics)
    attributes = _joint_attributes(profile, physics)
    limits = dict(zip(profile.joint_names, zip(profile.joint_lower, profile.joint_upper, strict=True), strict=True))
    bodies = {FLOOR: world}
    for link in profile.links:
        body = _add_body(bodies[link.parent or FLOOR], link, masses[link.name], centres[link.name])
        if link.joint is None and hang:
            body.set("pos", _text(0.0, 0.0, HANG_HEIGHT_M))
        elif link.joint is None:
            ET.SubElement(body, "freejoint", name="root")
        else:
            axis, limit = _text(*(link.axis or ())), _text(*limits[link.joint])
            joint = ET.SubElement(body, "joint", name=link.joint, axis=axis, range=limit)
            for name, value in attributes[link.joint].items():
                joint.set(name, value)
        bodies[link.name] = body
    for link in profile.fixed_links:
        bodies[link.name] = _add_body(bodies[link.parent or FLOOR], link, link.mass, link.com)
    for point in profile.virtual_links:
        ET.SubElement(bodies[point.parent], "site", name=point.name, pos=_text(*point.offset))
    for shape in profile.shapes:
        _add_geom(bodies[shape.link], shape)


def link_centres(profile: RobotProfile, physics: PhysicsSettings) -> dict[str, tuple[float, float, float]]:
    """Centre of mass of every body link, m in its frame, without its welded bodies, after `physics.com_offset`.

    Raises:
        UnknownNameError: a name is not a link with mass.
    """
    centres = {link.name: link.com for link in profile.links}
    for name, (x, y, z) in physics.com_offset.items():
        if name not in centres:
            raise unknown_name("link in com_offset", name, centres)
        at = centres[name]
        centres[name] = (at[0] + x, at[1] + y, at[2] + z)
    return centres


def _joint_attributes(profile: RobotProfile, physics: PhysicsSettings) -> dict[str, dict[str, str]]:
    """Joint -> MJCF attributes that are its own, where `physics` gives any."""
    attributes: dict[str, dict[str, str]] = {name: {} for name in profile.joint_names}
    for field in ("armature", "damping", "frictionloss"):
        own: dict[str, float] = getattr(physics, f"{field}_of")
        if own:
            values = per_joint(profile, f"{field}_of", getattr(physics, field), own)
            for name, value in zip(profile.joint_names, values, strict=True):
                attributes[name][field] = _text(value)
    return attributes


def _add_body(parent: ET.Element, link: Link, mass: float, com: tuple[float, float, float]) -> ET.Element:
    body = ET.SubElement(parent, "body", name=link.name, pos=_text(*link.pos), quat=_text(*link.quat))
    ET.SubElement(
        body,
        "inertial",
        mass=_text(mass),
        pos=_text(*com),
        quat=_text(*link.inertia_quat),
        diaginertia=_text(*link.inertia),
    )
    return body


def _add_geom(body: ET.Element, shape: Shape) -> None:
    geom = ET.SubElement(body, "geom", type=shape.kind, size=_text(*shape.size))
    if shape.end is None:
        geom.set("pos", _text(*shape.pos))
    else:
        geom.set("fromto", _text(*shape.pos, *shape.end))


def _add_actuators(root: ET.Element, profile: RobotProfile, physics: PhysicsSettings) -> None:
    """Position drives: torque = clip(kp (target - pos) - kd vel, ± torque limit)."""
    actuator = ET.SubElement(root, "actuator")
    for name, kp, kd, torque in zip(profile.joint_names, *scaled_gains(profile, physics), strict=True):
        ET.SubElement(
            actuator,
            "position",
            name=name,
            joint=name,
            kp=_text(kp),
            kv=_text(kd),
            forcerange=_text(-torque, torque),
        )


def _text(*values: float) -> str:
    """Numbers as MJCF writes them, without loss."""
    return " ".join(repr(float(value)) for value in values)
