"""What a delta action model sees: raw quantities in SI units, and the physical features made of them.

Per joint and odd in the joint's sign, so that left and right may share weights: the PD error q_target − q and its
cube (stiffness, torque limits), the velocity and its saturations (damping, dry friction), the changes of velocity and
target within one control step (inertia, delay). For all joints alike: gravity, angular velocity and height of the base.
"""

from __future__ import annotations

import torch

INPUTS = (
    "joint_pos",
    "joint_vel",
    "joint_target",
    "last_joint_vel",
    "last_joint_target",
    "root_quat",
    "root_ang_vel",
    "root_height",
)
"""Names of the model's inputs, in order: (N, J) ×5 rad and rad/s, (N, 4) wxyz, (N, 3) rad/s world, (N, 1) m."""

OWN_FEATURES = (
    "error",
    "error_cubed",
    "velocity",
    "velocity_sign_0.05",
    "velocity_sign_0.3",
    "velocity_sign_2",
    "velocity_change",
    "target_change",
)
"""Last axis of `own_features`."""

NUM_SHARED = 7
"""Width of `shared_features`: gravity 3, angular velocity 3, height 1."""

NUM_FEATURES = len(OWN_FEATURES) + NUM_SHARED
"""Width of `joint_features`."""


def own_features(
    joint_pos: torch.Tensor,
    joint_vel: torch.Tensor,
    joint_target: torch.Tensor,
    last_joint_vel: torch.Tensor,
    last_joint_target: torch.Tensor,
) -> torch.Tensor:
    """Features (N, J, 8) of each joint by itself, in the order of `OWN_FEATURES`."""
    error = joint_target - joint_pos
    return torch.stack(
        [
            error,
            error * error * error,
            joint_vel,
            torch.tanh(joint_vel / 0.05),
            torch.tanh(joint_vel / 0.3),
            torch.tanh(joint_vel / 2.0),
            joint_vel - last_joint_vel,
            joint_target - last_joint_target,
        ],
        dim=-1,
    )


def _into_base(quat: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """World vector (N, 3) in the frame of `quat` (N, 4) wxyz."""
    w, x, y, z = quat.unbind(-1)
    vx, vy, vz = vector.unbind(-1)
    tx, ty, tz = 2 * (y * vz - z * vy), 2 * (z * vx - x * vz), 2 * (x * vy - y * vx)
    return torch.stack(
        [
            vx - w * tx + y * tz - z * ty,
            vy - w * ty + z * tx - x * tz,
            vz - w * tz + x * ty - y * tx,
        ],
        dim=-1,
    )


def shared_features(root_quat: torch.Tensor, root_ang_vel: torch.Tensor, root_height: torch.Tensor) -> torch.Tensor:
    """Features (N, 7) of the base: gravity direction and angular velocity in its frame, height."""
    down = torch.cat([torch.zeros_like(root_ang_vel[:, :2]), -torch.ones_like(root_ang_vel[:, :1])], dim=-1)
    return torch.cat([_into_base(root_quat, down), _into_base(root_quat, root_ang_vel), root_height], dim=-1)


def joint_features(inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Own and shared features (N, J, 15) of `inputs` in the order of `INPUTS`."""
    own = own_features(*inputs[:5])
    shared = shared_features(*inputs[5:])
    return torch.cat([own, shared[:, None].expand(-1, own.shape[1], -1)], dim=-1)
