"""What follows from a robot motion's root and joints: joint velocities, and poses and velocities of all links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asap_core.errors import InputFileError
from asap_core.motions.robot import RobotMotion
from asap_core.robots.kinematics import Kinematics, LinkStates
from asap_core.robots.profile import Link, RobotProfile
from asap_core.rotations import Array, quat_conj, quat_mul, quat_to_rotvec, rotate


@dataclass(frozen=True)
class DerivedMotion:
    """T frames; joints in the order of the profile, links in that of `link_names`."""

    joint_pos: Array
    """(T, J) rad."""
    joint_vel: Array
    """(T, J) rad/s, central differences."""
    links: LinkStates
    """(T, L, …) world, velocities at the link origins."""
    com_lin_vel: Array
    """(T, L, 3) m/s, world, at the centres of mass; welded bodies belong to the link that carries them."""


def derive_motion(motion: RobotMotion, profile: RobotProfile) -> DerivedMotion:
    """Velocities by central differences (one-sided at the ends) and all links by forward kinematics.

    Raises:
        InputFileError: the motion lacks joints of the profile or has others.
    """
    joint_pos = joints_in_order(motion, profile.joint_names)
    joint_vel = np.gradient(joint_pos, 1 / motion.fps, axis=0)
    root_vel = np.gradient(motion.root_pos, 1 / motion.fps, axis=0)
    spin = angular_velocity(motion.root_quat, motion.fps)
    root = (motion.root_pos, motion.root_quat, joint_pos)
    links = Kinematics(profile).forward_with_velocities(*root, root_vel, spin, joint_vel)
    com = rotate(links.quat, centres_of_mass(profile))
    return DerivedMotion(joint_pos, joint_vel, links, links.lin_vel + np.cross(links.ang_vel, com))


def joints_in_order(motion: RobotMotion, names: tuple[str, ...]) -> Array:
    """(T, J) the motion's columns in another order of the same joints.

    Raises:
        InputFileError: naming the joints that are missing or left over.
    """
    missing = [name for name in names if name not in motion.joint_names]
    left = [name for name in motion.joint_names if name not in names]
    if missing or left:
        found = f"missing {', '.join(missing) or 'none'}; left over {', '.join(left) or 'none'}"
        raise InputFileError(motion.source.path, f"joints: {found}; expected {', '.join(names)}")
    return motion.joint_pos[:, [motion.joint_names.index(name) for name in names]]


def written_rate(fps: float) -> int | float:
    """A frame rate as other tools store it: an integer where it is one."""
    return int(fps) if fps == int(fps) else float(fps)


def angular_velocity(quat: Array, fps: float) -> Array:
    """World angular velocity (T, …, 3) rad/s of orientations (T, …, 4), central differences, one-sided at the ends."""
    after, before = np.roll(quat, -1, axis=0), np.roll(quat, 1, axis=0)
    after[-1], before[0] = quat[-1], quat[0]
    frames = np.full(len(quat), 2.0)
    frames[[0, -1]] = 1.0
    return quat_to_rotvec(quat_mul(after, quat_conj(before))) * (fps / frames).reshape(-1, *[1] * (quat.ndim - 1))


def centres_of_mass(profile: RobotProfile) -> Array:
    """(L, 3) m in the links' frames, with what is welded to them; virtual links have theirs at the origin."""
    mass = np.zeros(profile.num_links)
    moment = np.zeros((profile.num_links, 3))
    places = {link.name: _Place(link.name, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])) for link in profile.links}
    for link in profile.fixed_links:
        places[link.name] = _weld(link, places[str(link.parent)])
    for link in (*profile.links, *profile.fixed_links):
        place = places[link.name]
        index = profile.link_index(place.carrier)
        mass[index] += link.mass
        moment[index] += link.mass * (place.pos + rotate(place.quat, np.array(link.com)))
    return moment / np.where(mass > 0, mass, 1.0)[:, None]


@dataclass(frozen=True)
class _Place:
    """Where a body lies in the frame of the link that carries it: pos (3,) m, quat (4,) wxyz."""

    carrier: str
    pos: Array
    quat: Array


def _weld(link: Link, parent: _Place) -> _Place:
    pos = parent.pos + rotate(parent.quat, np.array(link.pos))
    return _Place(parent.carrier, pos, quat_mul(parent.quat, np.array(link.quat)))
