"""What engines have in common that hold one scene a process: delayed targets, drives, contact, change of hands."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.kinematics import LinkStates
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.driven import DrivenRobots
from asap_core.simulators.each import each_physics
from asap_core.simulators.protocol import Array, Ids, RobotState, TargetCorrection

_ALIKE = ("physics_dt", "control_dt", "drive", "self_collision")


class OneSceneSimulator(DrivenRobots):
    """N robots under `PhysicsSettings` in an engine of single precision that holds one scene a process.

    Several simulators may live; the one in use holds the scene. Before it is taken from a simulator, that is told to
    `park`, and when it is given back, to `unpark`.

    Args:
        profile: the robot.
        physics: nominal or altered physics, time steps and action delay; or one for each robot, whose time steps,
            drives and self collision must be the same.
        num_envs: N.
    """

    def __init__(
        self, profile: RobotProfile, physics: PhysicsSettings | Sequence[PhysicsSettings], num_envs: int
    ) -> None:
        self.each = each_physics(physics, num_envs, _ALIKE)
        super().__init__(profile, self.each)
        self._pressed = np.zeros((num_envs, len(profile.foot_links)), bool)
        self._parked: RobotState | None = None

    def set_state(self, ids: Ids, state: RobotState, past_target: Array | None = None) -> None:
        """See `Simulator.set_state`; exact to single precision."""
        if len(ids) == 0:
            return
        if len(ids) == self.num_envs:
            self._forget_contacts()
        self._write_state(ids, state)
        self._target[ids] = state.joint_pos
        self._delay.refill(ids, state.joint_pos, past_target)
        self._pressed[ids] = False
        self._links = None

    def set_root_velocity(self, ids: Ids, lin_vel: Array) -> None:
        """See `Simulator.set_root_velocity`."""
        self._write_root_velocity(ids, lin_vel)
        self._links = None

    def step(self, joint_target: NDArray[np.floating], correction: TargetCorrection | None = None) -> None:
        """See `Simulator.step`."""
        for target, physics_steps in self._commands(joint_target, correction):
            self._target[:] = target
            runs = (physics_steps,) if self.physics.drive == "implicit" else (1,) * physics_steps
            for run in runs:
                self._advance(run)
        self._pressed = self._foot_forces()[..., 2] > 0.0
        self._links = None

    def foot_contact(self, links: LinkStates | None = None) -> NDArray[np.bool_]:
        """See `Simulator.foot_contact`; true where the last physics step pressed or a sole point is in the ground.

        A robot that has not stepped since `set_state` is judged by its sole points alone.
        """
        return np.asarray(self._pressed | self._sole_in_ground(links), bool)

    def park(self) -> None:
        """Remember the state: the scene is about to go."""
        self._parked = self.state

    def unpark(self) -> None:
        """Put a new scene into the state in which the last one was left."""
        if self._parked is None:
            return
        target, pressed, past = self._target.copy(), self._pressed.copy(), self._delay.past.copy()
        self.set_state(np.arange(self.num_envs), self._parked, past)
        self._target[:], self._pressed[:], self._parked = target, pressed, None

    @abstractmethod
    def _write_state(self, ids: Ids, state: RobotState) -> None: ...

    @abstractmethod
    def _write_root_velocity(self, ids: Ids, lin_vel: Array) -> None: ...

    @abstractmethod
    def _forget_contacts(self) -> None:
        """Make what follows independent of what was: contact solvers start from the last step's forces."""

    @abstractmethod
    def _advance(self, physics_steps: int) -> None:
        """Step under `_target`: by the engine's own drives if `implicit`, else by `joint_torque` of the state now."""

    @abstractmethod
    def _foot_forces(self) -> NDArray[np.floating]:
        """(N, F, 3) N, world frame, on each foot in the last physics step."""
