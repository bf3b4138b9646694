"""What a delta action model sees: raw quantities in SI units, and the physical features made of them.

Each feature of a joint is the form that one physical difference takes in a joint target that is held for a control
step. With Δq = Δτ / kp: a drive's strength scales the PD torque, damping goes with the velocity, dry friction with its
sign, armature with the acceleration, a delay with the change of the target (Δq = q_target of before − q_target), extra
mass with the torque of a leg that stands. They are odd in the joint's sign, so that left and right may share weights,
and have weights in physical units. Velocities are those half a control step ahead, as the last change continues.
For all joints alike: gravity, angular velocity and height of the base.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from asap_core.robots.profile import RobotProfile
from asap_core.rotations import quat_to_matrix

INPUTS = (
    "joint_pos",
    "joint_vel",
    "joint_target",
    "last_joint_vel",
    "last_joint_target",
    "earlier_joint_target",
    "root_pos",
    "root_quat",
    "root_ang_vel",
)
"""Names of the model's inputs, in order: (N, J) ×6 rad and rad/s, (N, 3) m, (N, 4) wxyz, (N, 3) rad/s world.

`last` is one control step before, `earlier` two; after a reset the velocity is the present one, and the targets are
the present joint positions."""

WIDTHS = {"root_pos": 3, "root_quat": 4, "root_ang_vel": 3}
"""Widths of the inputs that are not one number a joint."""

OWN_FEATURES = (
    "torque",
    "excess",
    "velocity",
    "friction",
    "friction_smooth",
    "acceleration",
    "target_change",
    "target_change_before",
    "standing_torque",
    "standing_acceleration",
)
"""Odd features of a joint by itself; see `PhysicalFeatures.own`."""

NUM_SHARED = 7
"""Width of `shared_features`: gravity 3, angular velocity 3, height 1."""

NUM_FEATURES = len(OWN_FEATURES) + NUM_SHARED
"""Width of `PhysicalFeatures.forward`."""

_STICK_RAD_S = 0.05
_SMOOTH_RAD_S = 0.3
_CONTACT_HEIGHT_M, _CONTACT_WIDTH_M = 0.01, 0.004
"""A sole at this height counts half; the width over which that changes."""


class PhysicalFeatures(torch.nn.Module):
    """Features (N, J, 17) of the raw quantities in the order of `INPUTS`.

    Args:
        profile: gains, limits, legs.
        control_dt: s between calls.
    """

    kp: torch.Tensor
    kd: torch.Tensor
    torque_limit: torch.Tensor
    control_dt: torch.Tensor
    leg: torch.Tensor

    def __init__(self, profile: RobotProfile, control_dt: float) -> None:
        super().__init__()
        self.register_buffer("kp", torch.tensor(profile.kp))
        self.register_buffer("kd", torch.tensor(profile.kd))
        self.register_buffer("torque_limit", torch.tensor(profile.joint_torque_limit))
        self.register_buffer("control_dt", torch.tensor(float(control_dt), dtype=torch.float64))
        self.register_buffer("leg", torch.tensor(leg_of_joint(profile)))
        self.soles = SoleHeights(profile)

    def forward(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Own and shared features (N, J, 17)."""
        joint_pos, *_, root_pos, root_quat, root_ang_vel = inputs
        heights = root_pos[:, 2:3] + self.soles(joint_pos, root_quat)
        standing = torch.sigmoid((_CONTACT_HEIGHT_M - heights) / _CONTACT_WIDTH_M) @ self.leg
        own = self.own(inputs[:6], standing)
        shared = shared_features(root_quat, root_ang_vel, root_pos[:, 2:3])
        return torch.cat([own, shared.unsqueeze(1).expand(-1, own.shape[1], -1)], dim=-1)

    def own(self, joints: tuple[torch.Tensor, ...], standing: torch.Tensor) -> torch.Tensor:
        """Features (N, J, 10) of each joint by itself, in the order of `OWN_FEATURES`.

        Args:
            joints: the first six of `INPUTS`.
            standing: (N, J) 1 where the joint's leg stands, 0 where it swings and for joints of no leg.
        """
        joint_pos, joint_vel, target, last_vel, last_target, earlier_target = joints
        change = joint_vel - last_vel
        velocity = joint_vel + 0.5 * change
        error = target - joint_pos - 0.5 * self.control_dt * (joint_vel + change / 3.0)
        torque = error - velocity * (self.kd / self.kp)
        limit = self.torque_limit / self.kp
        excess = torque - torch.minimum(torch.maximum(torque, -limit), limit)
        acceleration = change / self.control_dt / self.kp
        return torch.stack(
            [
                torque,
                excess,
                velocity / self.kp,
                torch.tanh(velocity / _STICK_RAD_S) / self.kp,
                torch.tanh(velocity / _SMOOTH_RAD_S) / self.kp,
                acceleration,
                target - last_target,
                last_target - earlier_target,
                standing * torque,
                standing * acceleration,
            ],
            dim=-1,
        )


class SoleHeights(torch.nn.Module):
    """Height (N, F) m above the root of the lowest sole point of each foot."""

    def __init__(self, profile: RobotProfile) -> None:
        super().__init__()
        links = {link.name: link for link in profile.links}
        self._chains: list[list[int]] = []
        joints: list[int] = []
        offsets, quats, axes = [], [], []
        for foot in profile.foot_links:
            chain = []
            name: str | None = foot
            while name is not None and links[name].parent is not None:
                link = links[name]
                assert link.joint is not None
                assert link.axis is not None
                chain.append(len(joints))
                joints.append(profile.joint_names.index(link.joint))
                offsets.append(link.pos)
                quats.append(link.quat)
                axes.append(link.axis)
                name = link.parent
            self._chains.append(chain)
        self._joints = joints
        self.register_buffer("offset", torch.tensor(offsets, dtype=torch.float64))
        unit = np.array(quats) / np.linalg.norm(quats, axis=1, keepdims=True)
        self.register_buffer("turn", torch.tensor(quat_to_matrix(unit)))
        self.register_buffer("axis", torch.tensor(axes, dtype=torch.float64))
        self.register_buffer("points", torch.tensor(profile.sole_points.copy()))

    offset: torch.Tensor
    turn: torch.Tensor
    axis: torch.Tensor
    points: torch.Tensor

    def forward(self, joint_pos: torch.Tensor, root_quat: torch.Tensor) -> torch.Tensor:
        """Of joint_pos (N, J) rad and root_quat (N, 4) wxyz."""
        up = -_down_in_base(root_quat)
        angles = joint_pos.unbind(-1)
        heights = []
        for foot, chain in enumerate(self._chains):
            points = self.points[foot][None]
            for i in chain:
                angle = angles[self._joints[i]].unsqueeze(-1).unsqueeze(-1)
                points = _turned(self.axis[i], angle, points)
                points = self.offset[i] + points @ self.turn[i].T
            heights.append((points * up.unsqueeze(1)).sum(-1).amin(-1))
        return torch.stack(heights, dim=-1)


def _turned(axis: torch.Tensor, angle: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """v (N, S, 3) turned by angle (N, 1, 1) about a unit axis (3,)."""
    along = (v * axis).sum(-1, keepdim=True) * axis
    across = torch.stack(
        [
            axis[1] * v[..., 2] - axis[2] * v[..., 1],
            axis[2] * v[..., 0] - axis[0] * v[..., 2],
            axis[0] * v[..., 1] - axis[1] * v[..., 0],
        ],
        dim=-1,
    )
    return along + torch.cos(angle) * (v - along) + torch.sin(angle) * across


def into_frame(quat: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
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
    return torch.cat([_down_in_base(root_quat), into_frame(root_quat, root_ang_vel), root_height], dim=-1)


def _down_in_base(root_quat: torch.Tensor) -> torch.Tensor:
    w, x, y, z = root_quat.unbind(-1)
    return torch.stack([2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1.0], dim=-1)


def leg_of_joint(profile: RobotProfile) -> NDArray[np.float64]:
    """(F, J) 1 where the joint lies on the way from the root to the foot."""
    links = {link.name: link for link in profile.links}
    out = np.zeros((len(profile.foot_links), profile.num_joints))
    for row, foot in zip(out, profile.foot_links, strict=True):
        link = links[foot]
        while link.parent is not None:
            row[profile.joint_names.index(str(link.joint))] = 1.0
            link = links[link.parent]
    return out
