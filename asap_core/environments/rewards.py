"""Reward terms of the tracking task, one small function each (paper Table I; formulas of the released code).

Every term is (N,) and unweighted; the environment sums weight · control_dt · term. Position errors are in metres,
world frame, over the links of a group; "mse" is the mean of squared components over links and axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.kinematics import LinkStates
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import yaw
from asap_core.simulators.protocol import RobotState

Array = NDArray[np.floating]
SIGMA = {
    "upper_body": 0.03,
    "lower_body": 0.1,
    "vr_3point": 0.03,
    "feet": 0.03,
    "rotation": 1.0,
    "velocity": 1.0,
    "ang_velocity": 1.0,
    "joint_position": 1.0,
    "joint_velocity": 1.0,
}
"""Widths of the exponential kernels (released configuration)."""
SOFT_LIMIT = {"dof_pos": 0.95, "dof_vel": 0.95, "torque": 0.9}
"""Share of the range beyond which a limit is penalised."""


@dataclass(frozen=True)
class RewardContext:
    """One control step of N robots, after the step, with the reference of the same time."""

    profile: RobotProfile
    state: RobotState
    links: LinkStates
    torque: Array
    """(N, J) Nm."""
    foot_contact: NDArray[np.bool_]
    """(N, F)."""
    action: Array
    """(N, J) raw."""
    last_action: Array
    """(N, J) raw, of the step before."""
    ref_joint_pos: Array
    ref_joint_vel: Array
    ref_link_pos: Array
    ref_link_quat: Array
    ref_link_lin_vel: Array
    ref_link_ang_vel: Array


def _mse(error: Array) -> Array:
    return np.mean(error * error, axis=(1, 2))


def body_position(c: RewardContext) -> Array:
    """Lower and upper body: 0.5·exp(−mse_lower/σ_l) + exp(−mse_upper/σ_u)."""
    error = c.ref_link_pos - c.links.pos
    lower = np.exp(-_mse(error[:, c.profile.lower_body_index]) / SIGMA["lower_body"])
    upper = np.exp(-_mse(error[:, c.profile.upper_body_index]) / SIGMA["upper_body"])
    return 0.5 * lower + upper


def vr_3point(c: RewardContext) -> Array:
    """Hands and head."""
    points = c.profile.tracking_index
    return np.exp(-_mse(c.ref_link_pos[:, points] - c.links.pos[:, points]) / SIGMA["vr_3point"])


def body_position_feet(c: RewardContext) -> Array:
    """The two feet."""
    feet = c.profile.foot_index
    return np.exp(-_mse(c.ref_link_pos[:, feet] - c.links.pos[:, feet]) / SIGMA["feet"])


def body_rotation(c: RewardContext) -> Array:
    """exp(−mean squared angle between link orientations/σ)."""
    cosine = np.abs(np.sum(c.ref_link_quat * c.links.quat, axis=-1))
    angle = 2.0 * np.arccos(np.minimum(cosine, 1.0))
    return np.exp(-np.mean(angle * angle, axis=1) / SIGMA["rotation"])


def body_velocity(c: RewardContext) -> Array:
    """Linear velocities of all links."""
    return np.exp(-_mse(c.ref_link_lin_vel - c.links.lin_vel) / SIGMA["velocity"])


def body_ang_velocity(c: RewardContext) -> Array:
    """Angular velocities of all links."""
    return np.exp(-_mse(c.ref_link_ang_vel - c.links.ang_vel) / SIGMA["ang_velocity"])


def joint_position(c: RewardContext) -> Array:
    """exp(−mean squared joint error/σ)."""
    error = c.ref_joint_pos - c.state.joint_pos
    return np.exp(-np.mean(error * error, axis=1) / SIGMA["joint_position"])


def joint_velocity(c: RewardContext) -> Array:
    """exp(−mean squared joint velocity error/σ)."""
    error = c.ref_joint_vel - c.state.joint_vel
    return np.exp(-np.mean(error * error, axis=1) / SIGMA["joint_velocity"])


def torques(c: RewardContext) -> Array:
    """Σ τ²."""
    return np.sum(c.torque**2, axis=1)


def action_rate(c: RewardContext) -> Array:
    """Σ (a − a_previous)², raw actions."""
    return np.sum((c.action - c.last_action) ** 2, axis=1)


def feet_orientation(c: RewardContext) -> Array:
    """Σ over feet of the horizontal part of gravity in the foot's frame: 0 when flat."""
    rot = c.links.rot[:, c.profile.foot_index]
    return np.sum(np.linalg.norm(rot[..., 2, :2], axis=-1), axis=1)


def feet_heading(c: RewardContext) -> Array:
    """Σ over feet of |heading of the foot − heading of the pelvis|, rad."""
    feet = yaw(c.links.quat[:, c.profile.foot_index])
    error = feet - yaw(c.state.root_quat)[:, None]
    return np.sum(np.abs((error + np.pi) % (2 * np.pi) - np.pi), axis=1)


def slippage(c: RewardContext) -> Array:
    """Σ over touching feet of the foot's speed, m/s."""
    speed = np.linalg.norm(c.links.lin_vel[:, c.profile.foot_index], axis=-1)
    return np.sum(speed * c.foot_contact, axis=1)


def limits_dof_pos(c: RewardContext) -> Array:
    """Σ of how far joints are beyond the soft limits, rad."""
    middle = 0.5 * (c.profile.joint_lower + c.profile.joint_upper)
    half = 0.5 * (c.profile.joint_upper - c.profile.joint_lower) * SOFT_LIMIT["dof_pos"]
    return np.sum(np.maximum(np.abs(c.state.joint_pos - middle) - half, 0.0), axis=1)


def limits_dof_vel(c: RewardContext) -> Array:
    """Σ of joint speeds beyond the soft limit, each at most 1 rad/s."""
    beyond = np.abs(c.state.joint_vel) - c.profile.joint_velocity_limit * SOFT_LIMIT["dof_vel"]
    return np.sum(np.clip(beyond, 0.0, 1.0), axis=1)


def limits_torque(c: RewardContext) -> Array:
    """Σ of torques beyond the soft limit, each at most 1 Nm."""
    beyond = np.abs(c.torque) - c.profile.joint_torque_limit * SOFT_LIMIT["torque"]
    return np.sum(np.clip(beyond, 0.0, 1.0), axis=1)


TERMS: dict[str, Callable[[RewardContext], Array]] = {
    f.__name__: f
    for f in (
        body_position,
        vr_3point,
        body_position_feet,
        body_rotation,
        body_velocity,
        body_ang_velocity,
        joint_position,
        joint_velocity,
        torques,
        action_rate,
        feet_orientation,
        feet_heading,
        slippage,
        limits_dof_pos,
        limits_dof_vel,
        limits_torque,
    )
}
"""Every reward term by name. `termination` is added by the environment."""
