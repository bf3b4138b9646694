"""The `Simulator` protocol over Isaac Lab's `InteractiveScene`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.isaaclab.parameters import write_parameters
from asap_core.simulators.isaaclab.runtime import Engine, collecting_later, require_isaaclab
from asap_core.simulators.isaaclab.world import IsaacLabWorld
from asap_core.simulators.one_scene import OneSceneSimulator
from asap_core.simulators.protocol import Array, Ids, RobotState

_IN_THE_AIR = 50.0
"""m, of a root that no contact reaches."""


class IsaacLabSimulator(OneSceneSimulator):
    """N robots under `PhysicsSettings` in Isaac Lab, in single precision.

    Isaac Lab has one simulation a process; a change of hands between simulators takes about a second.

    Args:
        profile, physics, num_envs: see `OneSceneSimulator`.
        engine: `physx`, in Isaac Sim where that and a GPU are present, else without; or `newton`.

    Raises:
        StageError: Isaac Lab is not installed, or something else in this process holds its simulation.
    """

    def __init__(
        self,
        profile: RobotProfile,
        physics: PhysicsSettings | Sequence[PhysicsSettings],
        num_envs: int,
        engine: Engine = "physx",
    ) -> None:
        require_isaaclab()
        super().__init__(profile, physics, num_envs)
        self._now: RobotState | None = None
        """The present state, where it was read already."""
        with collecting_later():
            self.world = IsaacLabWorld(profile, self.physics, engine, num_envs, self._set_up, self.park)
            self.world.attach()

    @property
    def state(self) -> RobotState:
        """A copy of the present state; see `RobotState`."""
        return RobotState(**{name: value.copy() for name, value in self._seen().__dict__.items()})

    def _seen(self) -> RobotState:
        if self._now is None:
            self._now = self.world.robot.state()
        return self._now

    def _joints(self) -> tuple[Array, Array]:
        now = self._seen()
        return now.joint_pos, now.joint_vel

    def _write_state(self, ids: Ids, state: RobotState) -> None:
        self.world.robot.write_state(ids, state)
        self._now = None

    def _write_root_velocity(self, ids: Ids, lin_vel: Array) -> None:
        self.world.robot.write_root_velocity(ids, lin_vel)
        self._now = None

    def _forget_contacts(self) -> None:
        """One step in the air, always from the same state: solvers start from the last step's forces."""
        n, joints = self.num_envs, self.profile.num_joints
        upright = np.tile([1.0, 0.0, 0.0, 0.0], (n, 1))
        high = np.tile([0.0, 0.0, _IN_THE_AIR], (n, 1))
        rest = np.tile(self.profile.default_joint_pos, (n, 1))
        still = np.zeros((n, 3))
        self._write_state(np.arange(n), RobotState(high, upright, still, still, rest, np.zeros((n, joints))))
        self._target[:] = rest
        self._advance(1)

    def _advance(self, physics_steps: int) -> None:
        if self.physics.drive == "implicit":
            self.world.robot.command_target(self._target)
        else:
            self.world.robot.command_torque(self.joint_torque())
        self.world.step(physics_steps)
        self._now = None

    def _foot_forces(self) -> Array:
        return self.world.foot_forces()

    def _set_up(self) -> None:
        """All that differs from robot to robot, and the state in which the scene was left."""
        write_parameters(self.world.robot, self.world.manager, self.profile, self.each)
        self.unpark()
