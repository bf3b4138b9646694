"""What the reference does next, as observations of the actor: with them one policy can follow many motions.

All but `ref_root_turn` come from the motion alone. `ref_root_turn` needs the orientation of the robot's pelvis, which
an IMU gives once its heading was set to the motion's at the start (as in BeyondMimic, arXiv 2508.08241).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.motion_set import Reference
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import projected_gravity, quat_conj, quat_mul, quat_to_matrix, rotate_inverse, yaw_quat
from asap_core.simulators.protocol import Ids, RobotState

Array = NDArray[np.floating]
_ROOT_WIDTH, _TURN_WIDTH = 10, 6


@dataclass(frozen=True)
class Ahead:
    """N robots in a reference."""

    reference: Reference
    frame: Ids
    """(N,) frame that the coming step aims at."""

    def frames(self, steps: tuple[int, ...]) -> Ids:
        """(N, K) frames after 1, 2, … control steps from the present one, at most the motion's last."""
        frame = self.frame[:, None] + (np.array(steps) - 1)
        return np.minimum(frame, self.reference.last_frame[self.frame][:, None])


def _dof_pos(ahead: Ahead, state: RobotState, profile: RobotProfile, steps: tuple[int, ...]) -> Array:
    away = ahead.reference.state.joint_pos[ahead.frames(steps)] - profile.default_joint_pos
    return away.reshape(len(away), -1)


def _root(ahead: Ahead, state: RobotState, profile: RobotProfile, steps: tuple[int, ...]) -> Array:
    root = ahead.reference.state.take(ahead.frames(steps).ravel())
    parts = (
        root.root_pos[:, 2:],
        projected_gravity(root.root_quat),
        rotate_inverse(yaw_quat(root.root_quat), root.root_lin_vel),
        rotate_inverse(root.root_quat, root.root_ang_vel),
    )
    return np.concatenate(parts, axis=1).reshape(len(ahead.frame), -1)


def _root_turn(ahead: Ahead, state: RobotState, profile: RobotProfile, steps: tuple[int, ...]) -> Array:
    wanted = ahead.reference.state.root_quat[ahead.frames(steps)]
    turn = quat_to_matrix(quat_mul(quat_conj(state.root_quat)[:, None], wanted))
    return np.asarray(turn[..., :2].reshape(len(turn), -1))


FUTURE_TERMS: dict[
    str,
    tuple[
        Callable[[Ahead, RobotState, RobotProfile, tuple[int, ...]], Array],
        Callable[[RobotProfile, tuple[int, ...]], int],
    ],
] = {
    "ref_dof_pos_future": (_dof_pos, lambda p, steps: len(steps) * p.num_joints),
    "ref_root_future": (_root, lambda p, steps: len(steps) * _ROOT_WIDTH),
    "ref_root_turn": (_root_turn, lambda p, steps: len(steps) * _TURN_WIDTH),
}
"""Name → (raw quantity (N, dim), its width), both by the steps ahead.

ref_dof_pos_future: reference joint angles less the default ones, rad, step by step.
ref_root_future: for each step height (m), gravity's direction in the pelvis frame, velocity in the heading frame (m/s)
    and angular velocity in the pelvis frame (rad/s) of the reference's root.
ref_root_turn: for each step the first two columns of the rotation from the robot's pelvis to the reference's, row by
    row.
"""
