"""What a motion asks of the ground, and whether the ground can give it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import nnls

from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import sole_points
from asap_core.rotations import Array
from asap_core.screening.body import body_segments

GRAVITY = 9.81
SMOOTHING = 1.2
"""Standard deviation of the filter before differentiation, frames at 30 fps."""
_MOMENT_SCALE = 2.0
"""1/m: a moment counts as a force at half a metre."""

_HULL_WEIGHT = 100.0
"""Holds the sum of a convex combination's weights at 1."""


@dataclass(frozen=True)
class Demand:
    """Per unit of body mass, in T frames."""

    com: Array
    """(T, 3) centre of mass, m."""
    com_speed: Array
    """(T,) its horizontal speed, m/s."""
    force: Array
    """(T, 3) acceleration of the centre of mass plus gravity, N/kg: what the contacts must give."""
    moment: Array
    """(T, 3) rate of change of the angular momentum about the centre of mass, m²/s²."""
    soles: Array
    """(T, P, 3) sole points, m."""
    sole_speed: Array
    """(T, P) their speed, m/s."""


def contact_demand(motion: HumanMotion) -> Demand:
    """Newton and Euler for a person of published segment masses (unfiltered positions, filtered derivatives)."""
    fps, sigma = motion.fps, SMOOTHING * motion.fps / 30.0
    rotations = motion.global_rotations()
    joints = motion.joint_positions(rotations)
    segments = body_segments(motion.skeleton)
    turned = rotations[:, segments.joint]
    places = gaussian_filter1d(
        joints[:, segments.joint] + np.einsum("tsij,sj->tsi", turned, segments.com), sigma, axis=0
    )
    com = np.einsum("s,tsi->ti", segments.mass, places)
    velocity, com_velocity = np.gradient(places, 1 / fps, axis=0), np.gradient(com, 1 / fps, axis=0)
    spin = gaussian_filter1d(angular_velocity(turned, fps), sigma, axis=0)
    inertia = turned @ segments.inertia @ np.swapaxes(turned, 2, 3)
    orbital = np.cross(places - com[:, None], velocity - com_velocity[:, None]) * segments.mass[:, None]
    momentum = (orbital + (inertia @ spin[..., None])[..., 0]).sum(axis=1)
    points = sole_points(motion.skeleton)
    soles = np.stack([joints[:, joint] + rotations[:, joint] @ offset for joint, offset in points], axis=1)
    sole_velocity = np.gradient(gaussian_filter1d(soles, sigma, axis=0), 1 / fps, axis=0)
    return Demand(
        com=com,
        com_speed=np.linalg.norm(com_velocity[:, :2], axis=1),
        force=np.gradient(com_velocity, 1 / fps, axis=0) + np.array([0.0, 0.0, GRAVITY]),
        moment=np.gradient(momentum, 1 / fps, axis=0),
        soles=soles,
        sole_speed=np.linalg.norm(sole_velocity, axis=-1),
    )


def angular_velocity(rotations: Array, fps: float) -> Array:
    """World angular velocity (T, S, 3) of rotations (T, S, 3, 3), central, zero at both ends."""
    turn = rotations[2:] @ np.swapaxes(rotations[:-2], -1, -2)
    out = np.zeros(rotations.shape[:3])
    vee = np.stack(
        [turn[..., 2, 1] - turn[..., 1, 2], turn[..., 0, 2] - turn[..., 2, 0], turn[..., 1, 0] - turn[..., 0, 1]], -1
    )
    sine = np.linalg.norm(vee, axis=-1, keepdims=True) / 2
    cosine = (np.trace(turn, axis1=-2, axis2=-1)[..., None] - 1) / 2
    angle = np.arctan2(sine, cosine)
    out[1:-1] = vee / 2 * np.where(sine > 1e-9, angle / np.maximum(sine, 1e-12), 1.0) * fps / 2
    return out


def contact_forces(demand: Demand, bears: NDArray[np.bool_], friction: float) -> tuple[Array, Array]:
    """The forces inside the friction cones at the bearing points (T, P) that come nearest to the demand.

    Returns:
        (T,) part of the weight that they leave unexplained, and the forces (T, P, 3), N/kg.
    """
    wanted = np.concatenate([demand.force, demand.moment * _MOMENT_SCALE], axis=1) / GRAVITY
    columns = _force_columns(demand.soles - demand.com[:, None], friction)
    residual, forces = _explain(wanted, columns, bears)
    return residual, forces @ cone_edges(friction) * GRAVITY


def cone_edges(friction: float) -> Array:
    """(4, 3) unit vectors along the edges of a pyramid inside the friction cone about z."""
    edges = np.array([[friction, 0, 1], [-friction, 0, 1], [0, friction, 1], [0, -friction, 1]])
    return np.asarray(edges / np.linalg.norm(edges, axis=1, keepdims=True))


def _force_columns(arms: Array, friction: float) -> Array:
    """(T, 6, P, 4) force and scaled moment of a unit force along each cone edge at points with arms (T, P, 3), m."""
    edges = cone_edges(friction)
    out = np.empty((len(arms), 6, arms.shape[1], len(edges)))
    out[:, :3] = edges.T[None, :, None, :]
    x, y, z = (arms[..., i, None] * _MOMENT_SCALE for i in range(3))
    out[:, 3] = y * edges[:, 2] - z * edges[:, 1]
    out[:, 4] = z * edges[:, 0] - x * edges[:, 2]
    out[:, 5] = x * edges[:, 1] - y * edges[:, 0]
    return out


def _explain(wanted: Array, columns: Array, bears: NDArray[np.bool_]) -> tuple[Array, Array]:
    """The forces at the bearing points (T, P) that come nearest to the wrench `wanted` (T, 6), moments scaled.

    Returns:
        (T,) distance that is left, and (T, P, 4) the forces along the cone edges of `columns` (T, 6, P, 4).
    """
    residual = np.linalg.norm(wanted, axis=1)
    forces = np.zeros((len(wanted), *columns.shape[2:]))
    for frame in np.flatnonzero(bears.any(axis=1)):
        points = bears[frame]
        solved, residual[frame] = nnls(columns[frame][:, points].reshape(6, -1), wanted[frame])
        forces[frame, points] = solved.reshape(-1, columns.shape[3])
    return residual, forces


def slowest_low_point(demand: Demand, low: NDArray[np.bool_]) -> Array:
    """(T,) speed in m/s of the slowest of the low sole points (T, P), 0 in frames without any."""
    slowest = np.where(low, demand.sole_speed, np.inf).min(axis=1)
    return np.where(low.any(axis=1), slowest, 0.0)


def support_distance(demand: Demand, bears: NDArray[np.bool_]) -> Array:
    """(T,) horizontal distance in m of the centre of mass from the convex hull of the bearing points, 0 without any."""
    out = np.zeros(len(demand.com))
    for frame in np.flatnonzero(bears.any(axis=1)):
        relative = (demand.soles[frame, bears[frame]] - demand.com[frame])[:, :2]
        weights, _ = nnls(np.vstack([relative.T, np.full(len(relative), _HULL_WEIGHT)]), np.array([0, 0, _HULL_WEIGHT]))
        out[frame] = np.linalg.norm(weights @ relative)
    return out
