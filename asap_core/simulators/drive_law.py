"""What a real drive does that a linear one cannot: play in the gear, and torque that falls with speed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asap_core.robots.mjcf import per_joint, scaled_gains
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import Array


class DriveLaw:
    """Turns joint targets into those under which a linear PD drive gives the torque of the real one.

    Called at each physics step with the state at its start. Play: within half of it on either side of the target the
    spring kp (target − q) is slack; beyond, it acts on what is left. Speed: in the direction of motion the torque limit
    falls linearly, from standstill to nothing at the no-load speed.

    Args:
        profile: the robot.
        physics: of each of the N robots.
    """

    def __init__(self, profile: RobotProfile, physics: Sequence[PhysicsSettings]) -> None:
        gains = [scaled_gains(profile, p) for p in physics]
        self._kp, self._kd, self._limit = (np.stack([g[i] for g in gains]) for i in range(3))
        self._half_play = np.stack([per_joint(profile, "backlash", 0.0, p.backlash) for p in physics]) / 2
        top = [per_joint(profile, "no_load_speed", np.inf, p.no_load_speed) for p in physics]
        self._inverse_speed = 1.0 / np.stack(top)

    @classmethod
    def of(cls, profile: RobotProfile, physics: Sequence[PhysicsSettings]) -> DriveLaw | None:
        """The law of `physics`, or None where all drives are linear."""
        return cls(profile, physics) if any(p.backlash or p.no_load_speed for p in physics) else None

    def __call__(self, target: Array, joint_pos: Array, joint_vel: Array) -> Array:
        """Targets (N, J) rad for the next physics step from `joint_pos` (N, J) rad and `joint_vel` (N, J) rad/s."""
        error = target - joint_pos
        error = error - np.clip(error, -self._half_play, self._half_play)
        share = joint_vel * self._inverse_speed
        high = self._limit * np.clip(1.0 - share, 0.0, 1.0)
        low = -self._limit * np.clip(1.0 + share, 0.0, 1.0)
        torque = np.clip(self._kp * error - self._kd * joint_vel, low, high)
        return joint_pos + (torque + self._kd * joint_vel) / self._kp
