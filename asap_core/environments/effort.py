"""What a reference asks of the drives: inverse dynamics, with the contact forces that spare the drives most.

How the ground's forces are shared between the feet is not determined by a motion. Here, frame by frame, they are those
inside the friction cones (a pyramid around each) for which the most loaded leg joint is loaded least: a linear
programme. So the loads are a lower bound: where one is above 1, no control law follows the smoothed reference in that
frame on its soles alone. What the ground cannot give at all (a motion that falls too slowly) acts on the root and loads
no joint.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import linprog

from asap_core.environments.reference import ReferenceMotion
from asap_core.robots.inverse_dynamics import inverse_dynamics, robot_mass
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import quat_conj, quat_mul, quat_to_rotvec, rotate_inverse

Array = NDArray[np.floating]
_SMOOTHING_S = 0.04
"""Standard deviation of the filter on velocities."""
_REACH_M = 0.1
"""A sole point at most this high above the clip's lowest one may bear."""
_GRAVITY = 9.81
_UNEXPLAINED = 100.0
"""Cost of one weight that the ground does not give, against a load of 1."""
_OTHERS = 0.01
"""Cost of the mean load, against the largest: it settles the joints that are not the most loaded."""


def drive_load(reference: ReferenceMotion, profile: RobotProfile, physics: PhysicsSettings) -> Array:
    """(T, J) torque of each drive as a share of its limit, at least."""
    state, dt = reference.state, reference.control_dt
    spin = rotate_inverse(state.root_quat, _smooth(_angular_velocity(state.root_quat, dt), dt))
    root_vel, joint_vel = (_smooth(np.gradient(x, dt, axis=0), dt) for x in (state.root_pos, state.joint_pos))
    qvel = np.concatenate([root_vel, spin, joint_vel], axis=1)
    qpos = np.concatenate([state.root_pos, state.root_quat, state.joint_pos], axis=1)
    force, _ = inverse_dynamics(profile, physics, qpos, qvel, np.gradient(qvel, dt, axis=0))
    height, jacobian = _sole_jacobian(reference, profile)
    columns = np.einsum("tpid,ei->tdpe", jacobian, _cone_corners(physics.friction))
    limit = profile.joint_torque_limit
    weight = robot_mass(profile, physics) * _GRAVITY
    load = np.abs(force[:, 6:]) / limit
    legs = np.flatnonzero(np.abs(jacobian[..., 6:]).max(axis=(0, 1, 2)) > 0)
    bears = height < height.min() + _REACH_M
    for frame in np.flatnonzero(bears.any(axis=1)):
        column = columns[frame][:, bears[frame]].reshape(columns.shape[1], -1)
        load[frame, legs] = _least(force[frame], column, legs, limit[legs], weight)
    return load


def _cone_corners(friction: float) -> Array:
    """(4, 3) edges of the pyramid about z that contains the friction cone."""
    return np.array([[x * friction, y * friction, 1.0] for x in (-1, 1) for y in (-1, 1)])


def _smooth(values: Array, dt: float) -> Array:
    return np.asarray(gaussian_filter1d(values, _SMOOTHING_S / dt, axis=0, mode="nearest"))


def _angular_velocity(quat: Array, dt: float) -> Array:
    step = quat_to_rotvec(quat_mul(quat[2:], quat_conj(quat[:-2]))) / (2 * dt)
    return np.concatenate([step[:1], step, step[-1:]])


def _sole_jacobian(reference: ReferenceMotion, profile: RobotProfile) -> tuple[Array, Array]:
    """(T, P) heights of the sole points, m, and (T, P, 3, 6 + J) their derivatives."""
    kinematics, state = Kinematics(profile), reference.state
    poses = kinematics.forward(state.root_pos, state.root_quat, state.joint_pos)
    links = np.repeat(profile.foot_index, profile.sole_points.shape[1])
    offsets = profile.sole_points.reshape(-1, 3)
    return kinematics.points(poses, links, offsets)[..., 2], kinematics.jacobian(poses, links, offsets)


def _least(force: Array, columns: Array, legs: NDArray[np.intp], limit: Array, weight: float) -> Array:
    """(K,) loads of the leg joints for the contact forces along `columns` (6 + J, C) that load the worst one least.

    Variables: the C forces, K loads, their largest, and what is unexplained, positive and negative (6 each). All but
    the loads are in weights and metres.
    """
    count, joints = columns.shape[1], len(legs)
    loads = np.eye(joints)
    contact = columns[6 + legs] * (weight / limit[:, None])
    free = force[6 + legs] / limit
    zero, one = np.zeros((joints, 1)), np.ones((joints, 1))
    slack = np.zeros((joints, 12))
    upper = np.block(
        [
            [contact, -loads, zero, slack],
            [-contact, -loads, zero, slack],
            [np.zeros((joints, count)), loads, -one, slack],
        ]
    )
    bound = np.concatenate([free, -free, np.zeros(joints)])
    root = np.hstack([columns[:6], np.zeros((6, joints + 1)), np.eye(6), -np.eye(6)])
    cost = np.concatenate([np.zeros(count), np.full(joints, _OTHERS / joints), [1.0], np.full(12, _UNEXPLAINED)])
    solved = linprog(cost, A_ub=upper, b_ub=bound, A_eq=root, b_eq=force[:6] / weight, method="highs")
    return np.asarray(np.abs(free - contact @ solved.x[:count]))
