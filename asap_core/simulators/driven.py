"""What all backends do alike: gains, delay and drive law of each robot, link states and torques."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.kinematics import Kinematics, LinkStates
from asap_core.robots.mjcf import scaled_gains
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.drive_law import DriveLaw
from asap_core.simulators.protocol import Array, RobotState, TargetCorrection
from asap_core.simulators.target_delay import TargetDelay


class DrivenRobots(ABC):
    """N robots of `profile` under PD drives; a backend adds the engine, and sets `_links` to None when states change.

    Args:
        profile: the robot.
        each: the physics of each of the N robots.
    """

    def __init__(self, profile: RobotProfile, each: list[PhysicsSettings]) -> None:
        self.profile = profile
        self.physics = each[0]
        self.num_envs = len(each)
        self.control_dt = self.physics.control_dt
        kinds = {id(p): p for p in each}
        gains = {key: scaled_gains(profile, p) for key, p in kinds.items()}
        self._kp, self._kd, self._torque_limit = (np.stack([gains[id(p)][i] for p in each]) for i in range(3))
        self._delay = TargetDelay(each, profile.num_joints)
        self._drive = DriveLaw.of(profile, each)
        self._kinematics = Kinematics(profile)
        self._target: Array = np.tile(profile.default_joint_pos, (self.num_envs, 1))
        """(N, J) rad, of the last physics step; written in place."""
        self._links: LinkStates | None = None

    @property
    @abstractmethod
    def state(self) -> RobotState:
        """A copy of the present state; see `RobotState`."""

    @abstractmethod
    def _joints(self) -> tuple[Array, Array]:
        """Joint positions and velocities, (N, J) each, in profile order; not to be altered."""

    def _commands(self, joint_target: Array, correction: TargetCorrection | None) -> Iterator[tuple[Array, int]]:
        """A control step's targets (N, J) for linear drives, and for how many physics steps each.

        Delay, correction and drive law are in them; the last two read the state, so step before taking the next.
        """
        time_s = 0.0
        for target, physics_steps in self._delay.runs(np.asarray(joint_target, float)):
            if self._drive is None and correction is None:
                yield target, physics_steps
                continue
            for _ in range(physics_steps):
                told = target if correction is None else target + correction(self.state, target, time_s)
                yield told if self._drive is None else self._drive(told, *self._joints()), 1
                time_s += self.physics.physics_dt

    def link_states(self) -> LinkStates:
        """See `Simulator.link_states`; computed once per state."""
        if self._links is None:
            s = self.state
            self._links = self._kinematics.forward_with_velocities(
                s.root_pos, s.root_quat, s.joint_pos, s.root_lin_vel, s.root_ang_vel, s.joint_vel
            )
        return self._links

    def joint_torque(self) -> Array:
        """See `Simulator.joint_torque`."""
        joint_pos, joint_vel = self._joints()
        torque = self._kp * (self._target - joint_pos) - self._kd * joint_vel
        return np.clip(torque, -self._torque_limit, self._torque_limit)

    def _sole_in_ground(self, links: LinkStates | None) -> NDArray[np.bool_]:
        """(N, F) whether a sole point is at or under the ground; by `links` or, without them, `link_states`."""
        heights = self._kinematics.sole_heights(links or self.link_states())
        return np.asarray((heights <= 0.0).any(axis=2), bool)
