"""Which feet stand, from what the robot feels: the load that the leg's torques carry, and which foot is lower."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.kinematics import Kinematics, LinkPoses
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array

LOAD_ON_N, LOAD_OFF_N = 60.0, 30.0
"""Above the first a foot begins to stand, below the second it stops; a swinging leg's own weight stays below."""
HIGHER_M = 0.05
"""A foot so far above the other does not stand."""
DEBOUNCE_S = 0.01
_SINGULAR = 1e-3
"""Directions in which a straight leg shows no force are left at zero."""
_SLAB = 4000


@dataclass(frozen=True)
class Feet:
    """F feet in N samples, in the base's frame."""

    place: Array
    """(N, F, 3) m, middle of the sole."""
    load: Array
    """(N, F) N, along the world's vertical."""
    contact: NDArray[np.bool_]
    """(N, F)."""


def feel_feet(profile: RobotProfile, time: Array, quat: Array, joint_pos: Array, joint_torque: Array) -> Feet:
    """Places and contacts.

    Args:
        time: (N,) s.
        quat: (N, 4) wxyz of the base; its heading does not matter.
        joint_pos, joint_torque: (N, J) rad, Nm, in the profile's order. Torques count as static: force = τ by Jᵀ.
    """
    kinematics = Kinematics(profile)
    places, loads = [], []
    for start in range(0, len(time), _SLAB):
        rows = slice(start, start + _SLAB)
        place, load = _feel(kinematics, quat[rows], joint_pos[rows], joint_torque[rows])
        places.append(place)
        loads.append(load)
    place, load = np.concatenate(places), np.concatenate(loads)
    heights = np.einsum("ni,nfi->nf", _up(quat), place)
    low = heights < heights.min(axis=1, keepdims=True) + HIGHER_M
    samples = max(1, round(DEBOUNCE_S / float(np.median(np.diff(time)))))
    contact = np.stack([_schmitt(load[:, k], low[:, k], samples) for k in range(load.shape[1])], axis=1)
    return Feet(place, load, contact)


def _feel(kinematics: Kinematics, quat: Array, joint_pos: Array, torque: Array) -> tuple[Array, Array]:
    profile = kinematics.profile
    level = np.tile([1.0, 0.0, 0.0, 0.0], (len(quat), 1))
    poses = kinematics.forward(np.zeros((len(quat), 3)), level, joint_pos)
    place = kinematics.points(poses, profile.foot_index, profile.sole_points.mean(axis=1))
    force = leg_forces(kinematics, poses, torque)
    return place, np.asarray(np.einsum("ni,nfi->nf", _up(quat), force))


def leg_forces(kinematics: Kinematics, poses: LinkPoses, torque: Array) -> Array:
    """Force (N, F, 3) in N of the ground on each foot, in the frame of `poses`, from the legs' torques (N, J) in N m.

    Force and moment at the sole are those that explain the torques of a weightless leg at rest: τ = −Jᵀ f.
    """
    profile = kinematics.profile
    axes = kinematics.joint_axes(poses)[0]
    sole = kinematics.jacobian(poses, profile.foot_index, profile.sole_points.mean(axis=1))[..., 6:]
    forces = np.zeros((len(torque), len(profile.foot_index), 3))
    for foot, link in enumerate(profile.foot_index):
        leg = np.flatnonzero(kinematics.moved[link])
        lever = np.concatenate([np.swapaxes(sole[:, foot][..., leg], 1, 2), axes[:, leg]], axis=2)
        forces[:, foot] = (np.linalg.pinv(lever, rcond=_SINGULAR) @ -torque[:, leg, None])[:, :3, 0]
    return forces


def _up(quat: Array) -> Array:
    """The world's vertical (N, 3) in the base's frame."""
    w, x, y, z = quat.T
    return np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=1)


def _schmitt(load: Array, low: NDArray[np.bool_], samples: int) -> NDArray[np.bool_]:
    """On after `samples` in a row above the upper threshold and low, off at once below the lower one or when high."""
    out = np.zeros(len(load), dtype=bool)
    on, count = False, 0
    for k, (force, near) in enumerate(zip(load.tolist(), low.tolist(), strict=True)):
        if on:
            on = near and force > LOAD_OFF_N
            count = 0
        else:
            count = count + 1 if near and force > LOAD_ON_N else 0
            on = count >= samples
        out[k] = on
    return out
