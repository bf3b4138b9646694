"""Whole-sequence Gauss-Newton: all frames of a clip at once, joint limits hard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from asap_core.retargeting.banded import BandedSystem
from asap_core.retargeting.settings import RetargetSettings
from asap_core.robots.kinematics import Kinematics, LinkPoses
from asap_core.rotations import Array, quat_conj, quat_mul, quat_to_rotvec, rotvec_to_quat

_AT_LIMIT = 1e-6
"""A joint this near to its limit is at it, rad."""
_MAX_TURN = 0.7
"""Longest step of any angle in one iteration, rad."""


@dataclass(frozen=True)
class Targets:
    """What the robot shall do in T frames."""

    fps: float
    links: NDArray[np.intp]
    """(n,) indices of the links that follow."""
    positions: Array
    """(T, n, 3) where they shall be, m."""
    orientations: tuple[tuple[int, Array, float], ...]
    """(link index, world rotations (T, 3, 3), weight)."""
    sole_contact: Array
    """(T, F * S) how firmly each sole point stands, 0 to 1."""


@dataclass(frozen=True)
class Trajectory:
    """Root (T, 3) m, (T, 4) wxyz, and joints (T, J) rad."""

    root_pos: Array
    root_quat: Array
    joint_pos: Array


def solve(kinematics: Kinematics, targets: Targets, start: Trajectory, settings: RetargetSettings) -> Trajectory:
    """Minimise the weighted residuals from `start`; joint limits hold in every iteration.

    A joint at its limit whose gradient points outwards is kept there (projected Newton, Bertsekas 1982).
    """
    profile = kinematics.profile
    state = start
    with threadpool_limits(1):
        for _ in range(settings.iterations):
            system = _linearise(kinematics, targets, state, settings)
            system.freeze(_held(state.joint_pos, system.gradient, profile.joint_lower, profile.joint_upper))
            step = system.solve()
            largest = float(np.abs(step[:, 3:]).max())
            step *= min(1.0, _MAX_TURN / max(largest, 1e-12))
            state = _advance(state, step, profile.joint_lower, profile.joint_upper)
            if np.abs(step).max() < settings.tolerance:
                break
    return state


def _held(joint_pos: Array, gradient: Array, lower: Array, upper: Array) -> Array:
    slope = gradient[:, 6:]
    joints = ((joint_pos <= lower + _AT_LIMIT) & (slope > 0)) | ((joint_pos >= upper - _AT_LIMIT) & (slope < 0))
    return np.concatenate([np.zeros((len(joint_pos), 6), dtype=bool), joints], axis=1)


def _advance(state: Trajectory, step: Array, lower: Array, upper: Array) -> Trajectory:
    quat = quat_mul(rotvec_to_quat(step[:, 3:6]), state.root_quat)
    return Trajectory(
        state.root_pos + step[:, :3],
        quat / np.linalg.norm(quat, axis=1, keepdims=True),
        np.clip(state.joint_pos + step[:, 6:], lower, upper),
    )


def _linearise(kinematics: Kinematics, targets: Targets, state: Trajectory, settings: RetargetSettings) -> BandedSystem:
    profile = kinematics.profile
    poses = kinematics.forward(state.root_pos, state.root_quat, state.joint_pos)
    system = BandedSystem(len(state.root_pos), 6 + profile.num_joints)
    _add_links(system, kinematics, poses, targets)
    _add_orientations(system, kinematics, poses, targets)
    _add_soles(system, kinematics, poses, targets, settings)
    weight = np.concatenate([np.zeros(6), np.full(profile.num_joints, settings.posture)])
    away = np.concatenate([np.zeros((len(state.root_pos), 6)), state.joint_pos - profile.default_joint_pos], axis=1)
    system.add_diagonal(weight, away)
    _add_smoothness(system, state, targets.fps, settings.smoothness)
    return system


def _flat(jacobian: Array) -> Array:
    """(T, n, 3, v) to (T, 3 n, v)."""
    return jacobian.reshape(len(jacobian), -1, jacobian.shape[-1])


def _add_links(system: BandedSystem, kinematics: Kinematics, poses: LinkPoses, targets: Targets) -> None:
    jacobian = kinematics.jacobian(poses, targets.links, np.zeros((len(targets.links), 3)))
    away = poses.pos[:, targets.links] - targets.positions
    system.add_frame(_flat(jacobian), away.reshape(len(away), -1))


def _add_orientations(system: BandedSystem, kinematics: Kinematics, poses: LinkPoses, targets: Targets) -> None:
    """Two axes of each link against two axes of its target: half the squared chord is near the squared angle."""
    axes = np.concatenate([np.zeros((1, 3)), np.eye(3)])
    for link, rotation, weight in targets.orientations:
        jacobian = kinematics.jacobian(poses, np.full(4, link, dtype=np.intp), axes)
        turned = (jacobian[:, 1:] - jacobian[:, :1]) * (weight / np.sqrt(2))
        away = np.swapaxes(poses.rot[:, link] - rotation, 1, 2) * (weight / np.sqrt(2))
        system.add_frame(_flat(turned), away.reshape(len(away), -1))


def _add_soles(
    system: BandedSystem, kinematics: Kinematics, poses: LinkPoses, targets: Targets, settings: RetargetSettings
) -> None:
    """Sole points in contact neither move nor leave the ground; none goes under it."""
    profile = kinematics.profile
    links = np.repeat(profile.foot_index, profile.sole_points.shape[1])
    offsets = profile.sole_points.reshape(-1, 3)
    points = kinematics.points(poses, links, offsets)
    jacobian = kinematics.jacobian(poses, links, offsets)
    hold = np.sqrt(targets.sole_contact[1:] * targets.sole_contact[:-1])[..., None] * settings.foot_hold
    moved = (points[1:, :, :2] - points[:-1, :, :2]) * hold
    level = jacobian[:, :, :2]
    after, before = level[1:] * hold[..., None], -level[:-1] * hold[..., None]
    system.add_pair(_flat(before), _flat(after), moved.reshape(len(moved), -1))
    height = points[..., 2]
    weight = np.maximum(targets.sole_contact * settings.sole_height, (height < 0) * settings.penetration)
    system.add_frame(jacobian[:, :, 2] * weight[..., None], height * weight)


def _add_smoothness(system: BandedSystem, state: Trajectory, fps: float, smoothness: float) -> None:
    turn = quat_to_rotvec(quat_mul(state.root_quat[1:], quat_conj(state.root_quat[:-1])))
    turned = np.concatenate([np.zeros((1, 3)), np.cumsum(turn, axis=0)])
    values = np.concatenate([state.root_pos, turned, state.joint_pos], axis=1)
    weight = np.concatenate([np.full(3, 3.0), np.ones(values.shape[1] - 3)]) * smoothness * (fps / 30.0) ** 2
    system.add_acceleration(weight, values)
