"""The residuals that a retarget minimises, linearised around a trajectory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.banded import BandedSystem
from asap_core.retargeting.normal import LinkResiduals
from asap_core.retargeting.settings import RetargetSettings
from asap_core.retargeting.targets import Targets
from asap_core.retargeting.trajectory import Trajectory
from asap_core.robots.kinematics import Kinematics, LinkPoses
from asap_core.rotations import Array, quat_conj, quat_mul, quat_to_rotvec


@dataclass(frozen=True)
class Phase:
    """What an iteration minimises."""

    link_slack: float
    """m"""
    soles: bool
    """Whether the soles count, or the links alone."""


@dataclass(frozen=True)
class Point:
    """Where residuals are linearised."""

    state: Trajectory
    poses: LinkPoses
    soles: Array
    """(T, F * S, 3) world ground contact points, m."""
    pressed: NDArray[np.bool_]
    """(T, F * S) sole points that are kept from going under the ground."""
    phase: Phase


def linearise(kinematics: Kinematics, targets: Targets, at: Point, settings: RetargetSettings) -> BandedSystem:
    """The Gauss-Newton system of all residuals.

    Variables of a frame: root position, root turn (world rotation vector, applied from the left), joints.
    """
    system = BandedSystem(len(at.soles), 6 + kinematics.profile.num_joints)
    residuals = LinkResiduals(kinematics, at.poses)
    _add_links(residuals, at.poses, targets, at.phase.link_slack)
    turns = quat_to_rotvec(quat_mul(at.poses.quat[:, targets.turned], quat_conj(targets.orientations)))
    residuals.add_turns(targets.turned, targets.turned_weights**2, _frames_last(turns))
    if at.phase.soles:
        _add_soles(system, residuals, kinematics, at, targets, settings)
    residuals.add_to(system)
    _add_posture(system, at.state, kinematics, settings.posture)
    _add_speed(system, at.state, kinematics, targets.fps, settings.speed_limit)
    _add_smoothness(system, at.state, targets.fps, settings.smoothness)
    return system


def _frames_last(a: Array) -> Array:
    """(T, n, 3) to (3, n, T)."""
    return np.ascontiguousarray(a.transpose(2, 1, 0))


def _robust(square: Array, slack: float) -> Array:
    """Factor of the squared weight that makes a cost quadratic below `slack` and linear beyond it (pseudo-Huber)."""
    return np.asarray(1.0 / np.sqrt(1.0 + square / slack**2))


def _add_links(residuals: LinkResiduals, poses: LinkPoses, targets: Targets, slack: float) -> None:
    """Distances from the targets."""
    place = poses.pos[:, targets.links]
    away = _frames_last(place - targets.positions)
    weight = _robust((away * away).sum(axis=0), slack)
    point = _frames_last(place - poses.pos[:, :1])
    residuals.add_points(targets.links, point, np.broadcast_to(weight, away.shape), weight * away)


def _add_soles(
    system: BandedSystem,
    residuals: LinkResiduals,
    kinematics: Kinematics,
    at: Point,
    targets: Targets,
    settings: RetargetSettings,
) -> None:
    """Sole points in contact neither move nor leave the ground; none goes under it."""
    profile = kinematics.profile
    per_foot = profile.sole_points.shape[1]
    place = _frames_last(at.soles)
    firm = targets.sole_contact.reshape(len(at.soles), -1).T
    pace = targets.fps / 30.0
    slide = place[:2, :, 1:] - place[:2, :, :-1]
    hold = firm[:, 1:] * firm[:, :-1] * (settings.foot_hold * pace) ** 2
    hold *= _robust((slide * slide).sum(axis=0), settings.hold_slack / pace)
    weight, force = np.zeros_like(place), np.zeros_like(place)
    pull = hold * slide
    weight[:2, :, 1:] += hold
    weight[:2, :, :-1] += hold
    force[:2, :, 1:] += pull
    force[:2, :, :-1] -= pull
    height = place[2]
    stand = (firm * settings.sole_height) ** 2 * _robust(height * height, settings.sole_slack)
    weight[2] = np.maximum(stand, at.pressed.T * settings.penetration**2)
    force[2] = weight[2] * height
    point = place - at.poses.pos[:, 0].T[:, None]
    residuals.add_points(np.repeat(profile.foot_index, per_foot), point, weight, force)
    for foot, link in enumerate(profile.foot_index):
        part = slice(foot * per_foot, (foot + 1) * per_foot)
        _add_hold(system, residuals.motion, kinematics.moved[link], point[:, part], hold[part])


def _add_hold(system: BandedSystem, motion: Array, moves: Array, point: Array, hold: Array) -> None:
    """What the horizontal movement of a foot's points (3, S, T), squared weights (S, T-1), couples between frames."""
    variables = np.concatenate([np.arange(6), 6 + np.flatnonzero(moves)])
    linear, angular = motion[:3, variables], motion[3:, variables]
    x, y, z = point[:, :, None]
    level = np.stack([linear[0] + angular[1] * z - angular[2] * y, linear[1] + angular[2] * x - angular[0] * z])
    rows = level.transpose(3, 0, 1, 2).reshape(level.shape[3], -1, len(variables))
    weighted = rows[1:] * np.tile(hold.T, (1, 2))[..., None]
    between = -np.matmul(weighted.transpose(0, 2, 1), rows[:-1])
    later, earlier = np.meshgrid(variables, variables, indexing="ij")
    system.add_between(later.ravel(), earlier.ravel(), between.reshape(len(between), -1))


def _add_posture(system: BandedSystem, state: Trajectory, kinematics: Kinematics, posture: float) -> None:
    away = np.zeros_like(system.gradient)
    away[:, 6:] = state.joint_pos - kinematics.profile.default_joint_pos
    weight = np.full(away.shape[1], posture**2)
    weight[:6] = 0.0
    system.add_own(weight, away)


def _add_speed(system: BandedSystem, state: Trajectory, kinematics: Kinematics, fps: float, weight: float) -> None:
    """Joints that turn faster than they can are slowed down."""
    change = np.diff(state.joint_pos, axis=0)
    most = kinematics.profile.joint_velocity_limit / fps
    beyond = np.zeros((len(change), system.gradient.shape[1]))
    beyond[:, 6:] = change - np.clip(change, -most, most)
    if beyond.any():
        system.add_change((beyond != 0) * weight**2, beyond)


def _add_smoothness(system: BandedSystem, state: Trajectory, fps: float, smoothness: float) -> None:
    turn = quat_to_rotvec(quat_mul(state.root_quat[1:], quat_conj(state.root_quat[:-1])))
    turned = np.concatenate([np.zeros((1, 3)), np.cumsum(turn, axis=0)])
    values = np.concatenate([state.root_pos, turned, state.joint_pos], axis=1)
    system.add_acceleration(np.full(values.shape[1], (smoothness * (fps / 30.0) ** 2) ** 2), values)
