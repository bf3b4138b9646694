"""Reward terms of the tracking task, one small function each (paper Table I; formulas of the released code).

Every term is (N,) and unweighted; the environment sums weight · control_dt · term. Position errors are in metres,
world frame, over the links of a group; "mse" is the mean of squared components over links and axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.kinematics import LinkStates
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import projected_gravity, yaw
from asap_core.simulators.protocol import RobotState

Array = NDArray[np.floating]
Index = NDArray[np.intp]
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
    sigma: Mapping[str, float] = field(default_factory=lambda: SIGMA)
    soft_limit: Mapping[str, float] = field(default_factory=lambda: SOFT_LIMIT)

    @cached_property
    def square_distance(self) -> Array:
        """(N, L) m², squared distance of each link from its reference."""
        error = self.ref_link_pos - self.links.pos
        error *= error
        return np.asarray((error.reshape(-1, 3) @ np.ones(3, error.dtype)).reshape(error.shape[:2]))


def _mse(reference: Array, found: Array) -> Array:
    error = (reference - found).reshape(len(found), -1)
    return np.einsum("nk,nk->n", error, error) / error.shape[1]


def _mse_of(c: RewardContext, links: Index) -> Array:
    share = np.zeros(c.links.pos.shape[1], c.links.pos.dtype)
    share[links] = 1.0 / (3 * len(links))
    return c.square_distance @ share


def _mean_square_angle(c: RewardContext) -> Array:
    product = (c.ref_link_quat * c.links.quat).reshape(-1, 4)
    cosine = np.abs(product @ np.ones(4, product.dtype)).reshape(c.links.quat.shape[:2])
    half = np.arccos(np.minimum(cosine, 1.0))
    return 4.0 * np.einsum("nk,nk->n", half, half) / half.shape[1]


ERRORS: dict[str, Callable[[RewardContext], Array]] = {
    "upper_body": lambda c: _mse_of(c, c.profile.upper_body_index),
    "lower_body": lambda c: _mse_of(c, c.profile.lower_body_index),
    "vr_3point": lambda c: _mse_of(c, c.profile.tracking_index),
    "feet": lambda c: _mse_of(c, c.profile.foot_index),
    "rotation": _mean_square_angle,
    "velocity": lambda c: _mse(c.ref_link_lin_vel, c.links.lin_vel),
    "ang_velocity": lambda c: _mse(c.ref_link_ang_vel, c.links.ang_vel),
    "joint_position": lambda c: _mse(c.ref_joint_pos, c.state.joint_pos),
    "joint_velocity": lambda c: _mse(c.ref_joint_vel, c.state.joint_vel),
}
"""Squared errors (N,) by the name of their kernel's width in `SIGMA`."""


def _kernel(c: RewardContext, name: str) -> Array:
    return np.exp(-ERRORS[name](c) / c.sigma[name])


def body_position(c: RewardContext) -> Array:
    """Lower and upper body: 0.5·exp(−mse_lower/σ_l) + exp(−mse_upper/σ_u)."""
    return 0.5 * _kernel(c, "lower_body") + _kernel(c, "upper_body")


def vr_3point(c: RewardContext) -> Array:
    """Hands and head."""
    return _kernel(c, "vr_3point")


def body_position_feet(c: RewardContext) -> Array:
    """The two feet."""
    return _kernel(c, "feet")


def body_rotation(c: RewardContext) -> Array:
    """exp(−mean squared angle between link orientations/σ)."""
    return _kernel(c, "rotation")


def body_velocity(c: RewardContext) -> Array:
    """Linear velocities of all links."""
    return _kernel(c, "velocity")


def body_ang_velocity(c: RewardContext) -> Array:
    """Angular velocities of all links."""
    return _kernel(c, "ang_velocity")


def joint_position(c: RewardContext) -> Array:
    """exp(−mean squared joint error/σ)."""
    return _kernel(c, "joint_position")


def joint_velocity(c: RewardContext) -> Array:
    """exp(−mean squared joint velocity error/σ)."""
    return _kernel(c, "joint_velocity")


def torques(c: RewardContext) -> Array:
    """Σ τ²."""
    return np.einsum("nj,nj->n", c.torque, c.torque)


def action_rate(c: RewardContext) -> Array:
    """Σ (a − a_previous)², raw actions."""
    change = c.action - c.last_action
    return np.einsum("nj,nj->n", change, change)


def feet_orientation(c: RewardContext) -> Array:
    """Σ over feet of the horizontal part of gravity in the foot's frame: 0 when flat."""
    down = projected_gravity(c.links.quat[:, c.profile.foot_index])
    return np.sum(np.hypot(down[..., 0], down[..., 1]), axis=1)


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
    half = 0.5 * (c.profile.joint_upper - c.profile.joint_lower) * c.soft_limit["dof_pos"]
    return np.sum(np.maximum(np.abs(c.state.joint_pos - middle) - half, 0.0), axis=1)


def limits_dof_vel(c: RewardContext) -> Array:
    """Σ of joint speeds beyond the soft limit, each at most 1 rad/s."""
    beyond = np.abs(c.state.joint_vel) - c.profile.joint_velocity_limit * c.soft_limit["dof_vel"]
    return np.sum(np.clip(beyond, 0.0, 1.0), axis=1)


def limits_torque(c: RewardContext) -> Array:
    """Σ of torques beyond the soft limit, each at most 1 Nm."""
    beyond = np.abs(c.torque) - c.profile.joint_torque_limit * c.soft_limit["torque"]
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

PENALTIES = frozenset(
    {
        "torques",
        "action_rate",
        "feet_orientation",
        "feet_heading",
        "slippage",
        "limits_dof_pos",
        "limits_dof_vel",
        "limits_torque",
    }
)
"""Terms whose weights the penalty curriculum scales."""
