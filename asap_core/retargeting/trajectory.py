"""The robot's motion while it is solved for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from asap_core.rotations import Array, quat_mul, rotvec_to_quat, slerp


@dataclass(frozen=True)
class Trajectory:
    """Root (T, 3) m, (T, 4) wxyz, and joints (T, J) rad."""

    root_pos: Array
    root_quat: Array
    joint_pos: Array

    def part(self, frames: slice) -> Trajectory:
        """Some of the frames."""
        return Trajectory(self.root_pos[frames], self.root_quat[frames], self.joint_pos[frames])

    def put(self, at: int, other: Trajectory) -> None:
        """Overwrite the frames from `at` on."""
        frames = slice(at, at + len(other.root_pos))
        self.root_pos[frames], self.root_quat[frames] = other.root_pos, other.root_quat
        self.joint_pos[frames] = other.joint_pos

    def moved(self, step: Array, lower: Array, upper: Array) -> Trajectory:
        """Advanced by `step` (T, 6 + J): root position, world rotation vector, joints within their limits."""
        quat = quat_mul(rotvec_to_quat(step[:, 3:6]), self.root_quat)
        return Trajectory(
            self.root_pos + step[:, :3],
            quat / np.linalg.norm(quat, axis=1, keepdims=True),
            np.clip(self.joint_pos + step[:, 6:], lower, upper),
        )

    def refined(self, stride: int, frames: int) -> Trajectory:
        """Every frame of `frames`, of which this is every `stride`-th; those after the last one hold."""
        times = stride * np.arange(len(self.root_pos), dtype=float)
        at = np.minimum(np.arange(frames, dtype=float), times[-1])
        values = CubicSpline(times, np.concatenate([self.root_pos, self.joint_pos], axis=1))(at)
        return Trajectory(values[:, :3], slerp(self.root_quat, times, at), values[:, 3:])
