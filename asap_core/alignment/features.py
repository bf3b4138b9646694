"""What a delta action model sees: raw quantities in SI units, and the physical features made of them.

The model acts at each physics step, where the torque of a drive is made, so that each feature of a joint is the form
that one physical difference takes there, exactly or nearly. With Δq = Δτ / kp: a drive's strength scales the PD torque,
damping goes with the velocity, dry friction with its sign, armature with the acceleration, a delay with the change of
the target (Δq = q_target of before − q_target), a load on the torso with the torque that holds it through the legs
that stand. They are odd in the joint's sign, so that left and right may share weights, and have weights in physical
units. For all joints alike: gravity, angular velocity and height of the base.
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
    "joint_acc",
    "joint_target",
    "last_joint_target",
    "earlier_joint_target",
    "root_pos",
    "root_quat",
    "root_ang_vel",
)
"""Names of the model's inputs, in order: (N, J) ×6 rad, rad/s and rad/s², (N, 3) m, (N, 4) wxyz, (N, 3) rad/s world.

The acceleration is smoothed over `ACCELERATION_TIME_S`; `last` is one control step before, `earlier` two. After a
reset the acceleration is zero, and past targets are the present joint positions."""

WIDTHS = {"root_pos": 3, "root_quat": 4, "root_ang_vel": 3}
"""Widths of the inputs that are not one number a joint."""

ACCELERATION_TIME_S = 0.01
"""Shorter, and a drive with much more armature than the simulator's rings; longer, and the inertia comes late."""

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
    "payload",
)
"""Odd features of a joint by itself; see `PhysicalFeatures.own`."""

NUM_SHARED = 7
"""Width of `shared_features`: gravity 3, angular velocity 3, height 1."""

NUM_FEATURES = len(OWN_FEATURES) + NUM_SHARED
"""Width of `PhysicalFeatures.forward`."""

_STICK_RAD_S = 0.05
_SMOOTH_RAD_S = 0.3
_GRAVITY_M_S2 = 9.81
_CONTACT_HEIGHT_M, _CONTACT_WIDTH_M = 0.01, 0.004
"""A sole at this height counts half; the width over which that changes."""


class PhysicalFeatures(torch.nn.Module):
    """Features (N, J, 17) of the raw quantities in the order of `INPUTS`.

    Args:
        profile: gains, limits, geometry.
    """

    kp: torch.Tensor
    kd: torch.Tensor
    torque_limit: torch.Tensor

    def __init__(self, profile: RobotProfile) -> None:
        super().__init__()
        self.register_buffer("kp", torch.tensor(profile.kp))
        self.register_buffer("kd", torch.tensor(profile.kd))
        self.register_buffer("torque_limit", torch.tensor(profile.joint_torque_limit))
        self.limbs = Limbs(profile)

    def forward(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Own and shared features (N, J, 17)."""
        joint_pos, *_, root_pos, root_quat, root_ang_vel = inputs
        standing, payload = self.limbs(joint_pos, root_pos[:, 2:3], root_quat)
        own = self.own(inputs[:6], standing, payload)
        shared = shared_features(root_quat, root_ang_vel, root_pos[:, 2:3])
        return torch.cat([own, shared.unsqueeze(1).expand(-1, own.shape[1], -1)], dim=-1)

    def own(self, joints: tuple[torch.Tensor, ...], standing: torch.Tensor, payload: torch.Tensor) -> torch.Tensor:
        """Features (N, J, 10) of each joint by itself, in the order of `OWN_FEATURES`.

        Args:
            joints: the first six of `INPUTS`.
            standing, payload: (N, J) as `Limbs` gives them.
        """
        joint_pos, joint_vel, joint_acc, target, last_target, earlier_target = joints
        torque = target - joint_pos - joint_vel * (self.kd / self.kp)
        limit = self.torque_limit / self.kp
        excess = torque - torch.minimum(torch.maximum(torque, -limit), limit)
        return torch.stack(
            [
                torque,
                excess,
                joint_vel / self.kp,
                torch.tanh(joint_vel / _STICK_RAD_S) / self.kp,
                torch.tanh(joint_vel / _SMOOTH_RAD_S) / self.kp,
                joint_acc / self.kp,
                target - last_target,
                last_target - earlier_target,
                standing * torque,
                payload / self.kp,
            ],
            dim=-1,
        )


class Limbs(torch.nn.Module):
    """Legs and waist: which stand, and what 1 kg more in the torso asks of their joints.

    A leg whose sole is on the ground carries its share of the load as a chain fixed at the foot; the waist carries it
    from below.
    """

    def __init__(self, profile: RobotProfile) -> None:
        super().__init__()
        self._links = {link.name: link for link in profile.links}
        self._joints: list[int] = []
        offsets, quats, axes = [], [], []
        self._chains: list[list[int]] = []
        for end in (*profile.foot_links, profile.torso_link):
            chain = []
            for name in _way_from_root(profile, end):
                link = self._links[name]
                assert link.joint is not None
                assert link.axis is not None
                chain.append(len(self._joints))
                self._joints.append(profile.joint_names.index(link.joint))
                offsets.append(link.pos)
                quats.append(link.quat)
                axes.append(link.axis)
            self._chains.append(chain)
        unit = np.array(quats) / np.linalg.norm(quats, axis=1, keepdims=True)
        members = np.zeros((len(self._joints), profile.num_joints))
        members[np.arange(len(self._joints)), self._joints] = 1.0
        self.register_buffer("offset", torch.tensor(offsets, dtype=torch.float64))
        self.register_buffer("turn", torch.tensor(quat_to_matrix(unit)))
        self.register_buffer("axis", torch.tensor(axes, dtype=torch.float64))
        self.register_buffer("points", torch.tensor(profile.sole_points.copy()))
        self.register_buffer("load", torch.tensor(self._links[profile.torso_link].com, dtype=torch.float64))
        self.register_buffer("joint", torch.tensor(members))
        self.register_buffer("leg", torch.tensor(leg_of_joint(profile)))

    offset: torch.Tensor
    turn: torch.Tensor
    axis: torch.Tensor
    points: torch.Tensor
    load: torch.Tensor
    joint: torch.Tensor
    leg: torch.Tensor

    def forward(
        self, joint_pos: torch.Tensor, root_height: torch.Tensor, root_quat: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Of joint_pos (N, J) rad, root_height (N, 1) m, root_quat (N, 4) wxyz.

        Returns:
            standing: (N, J) 1 where the joint's leg stands, 0 where it swings and for joints of no leg.
            payload: (N, J) Nm, what holds 1 kg at the torso's centre of mass.
        """
        up = -_down_in_base(root_quat)
        angles = joint_pos.unbind(-1)
        chains = [self._placed(chain, angles) for chain in self._chains]
        legs, (axes, origins, (end, frame)) = chains[:-1], chains[-1]
        load = end + frame @ self.load
        heights = [self._height(foot, end, frame, up) for foot, (_, _, (end, frame)) in enumerate(legs)]
        stands = torch.sigmoid((_CONTACT_HEIGHT_M - torch.stack(heights, dim=-1) - root_height) / _CONTACT_WIDTH_M)
        share = stands / torch.clamp(stands.sum(-1, keepdim=True), min=1.0)
        moments = [-share[:, foot, None] * _lift(up, a, load, o) for foot, (a, o, _) in enumerate(legs)]
        moments.append(_lift(up, axes, load, origins))
        payload = -_GRAVITY_M_S2 * torch.cat(moments, dim=-1) @ self.joint
        return stands @ self.leg, payload

    def heights(self, joint_pos: torch.Tensor, root_quat: torch.Tensor) -> torch.Tensor:
        """Height (N, F) m above the root of the lowest sole point of each foot."""
        up = -_down_in_base(root_quat)
        ends = [self._placed(chain, joint_pos.unbind(-1))[2] for chain in self._chains[:-1]]
        return torch.stack([self._height(foot, end, frame, up) for foot, (end, frame) in enumerate(ends)], dim=-1)

    def _height(self, foot: int, end: torch.Tensor, frame: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        points = end.unsqueeze(1) + self.points[foot] @ frame.transpose(-1, -2)
        return (points * up.unsqueeze(1)).sum(-1).amin(-1)

    def _placed(
        self, chain: list[int], angles: tuple[torch.Tensor, ...]
    ) -> tuple[torch.Tensor, torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """In the root's frame: joint axes and origins (N, C, 3); place (N, 3) and frame (N, 3, 3) of the last link."""
        end = angles[0].unsqueeze(-1) * torch.zeros_like(self.load)
        frame = torch.eye(3, dtype=end.dtype) + end.unsqueeze(-1)
        axes, origins = [], []
        for i in chain:
            end = end + frame @ self.offset[i]
            frame = frame @ self.turn[i]
            axes.append(frame @ self.axis[i])
            origins.append(end)
            frame = frame @ _rotation(self.axis[i], angles[self._joints[i]])
        return torch.stack(axes, dim=1), torch.stack(origins, dim=1), (end, frame)


def _way_from_root(profile: RobotProfile, end: str) -> list[str]:
    """Names of the jointed links from the root, itself excluded, to `end`."""
    links = {link.name: link for link in profile.links}
    way = []
    name: str | None = end
    while name is not None and links[name].parent is not None:
        way.append(name)
        name = links[name].parent
    return way[::-1]


def _lift(up: torch.Tensor, axes: torch.Tensor, load: torch.Tensor, origins: torch.Tensor) -> torch.Tensor:
    """m/rad (N, C) by which turning each joint raises the load, its link fixed at the root's side."""
    arm = load.unsqueeze(1) - origins
    raised = torch.stack(
        [
            axes[..., 1] * arm[..., 2] - axes[..., 2] * arm[..., 1],
            axes[..., 2] * arm[..., 0] - axes[..., 0] * arm[..., 2],
            axes[..., 0] * arm[..., 1] - axes[..., 1] * arm[..., 0],
        ],
        dim=-1,
    )
    return (raised * up.unsqueeze(1)).sum(-1)


def _rotation(axis: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """Matrices (N, 3, 3) that turn by angle (N,) about a unit axis (3,)."""
    x, y, z = axis.unbind()
    zero = torch.zeros_like(x)
    cross = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero]).reshape(3, 3)
    sine, cosine = torch.sin(angle)[:, None, None], torch.cos(angle)[:, None, None]
    return torch.eye(3, dtype=axis.dtype) + sine * cross + (1.0 - cosine) * (cross @ cross)


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
