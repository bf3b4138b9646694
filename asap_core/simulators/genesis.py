"""Genesis backend (extra `genesis`): the paper's second target, on a CPU or a CUDA device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import ConfigError
from asap_core.robots.kinematics import LinkStates
from asap_core.robots.mjcf import link_centres, link_masses, per_joint
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import rotate, rotate_inverse
from asap_core.simulators.driven import DrivenRobots
from asap_core.simulators.each import each_physics
from asap_core.simulators.genesis_world import LEAST_FRICTION, GenesisWorld
from asap_core.simulators.protocol import Array, Ids, RobotState, TargetCorrection

_ALIKE = ("physics_dt", "control_dt", "drive", "self_collision")


class GenesisSimulator(DrivenRobots):
    """N robots under `PhysicsSettings` in single precision. From `set_state` on, equal calls give equal bits on a CPU.

    Args:
        profile: the robot.
        physics: nominal or altered physics, time steps and action delay; or one for each robot, whose time steps,
            drives and self collision must be the same.
        num_envs: N.

    Raises:
        StageError: genesis-world is not installed.
        ConfigError: a friction below 0.01, which Genesis would raise to it.
    """

    def __init__(
        self, profile: RobotProfile, physics: PhysicsSettings | Sequence[PhysicsSettings], num_envs: int
    ) -> None:
        each = each_physics(physics, num_envs, _ALIKE)
        for p in each:
            if p.friction < LEAST_FRICTION:
                raise ConfigError(f"friction is {p.friction}; Genesis has none below {LEAST_FRICTION}")
        super().__init__(profile, each)
        varied = any(p != each[0] for p in each)
        self.world = GenesisWorld(profile, self.physics, num_envs, varied)
        if varied:
            self._write_physics(each)

    @property
    def state(self) -> RobotState:
        """A copy of the present state; see `RobotState`."""
        qpos, qvel = self.world.qpos(), self.world.qvel()
        return RobotState(
            root_pos=qpos[:, :3],
            root_quat=qpos[:, 3:7],
            root_lin_vel=qvel[:, :3],
            root_ang_vel=rotate(qpos[:, 3:7], qvel[:, 3:6]),
            joint_pos=qpos[:, 7:],
            joint_vel=qvel[:, 6:],
        )

    def set_state(self, ids: Ids, state: RobotState, past_target: Array | None = None) -> None:
        """See `Simulator.set_state`; exact to single precision."""
        if len(ids) == 0:
            return
        qpos = np.concatenate([state.root_pos, state.root_quat, state.joint_pos], axis=1)
        ang_vel = rotate_inverse(state.root_quat, state.root_ang_vel)
        self.world.write_state(ids, qpos, np.concatenate([state.root_lin_vel, ang_vel, state.joint_vel], axis=1))
        self._target[ids] = state.joint_pos
        self._delay.refill(ids, state.joint_pos, past_target)
        self._links = None

    def set_root_velocity(self, ids: Ids, lin_vel: Array) -> None:
        """See `Simulator.set_root_velocity`."""
        qvel = self.world.qvel()[ids]
        qvel[:, :3] = lin_vel
        self.world.write_velocity(ids, qvel)
        self._links = None

    def step(self, joint_target: NDArray[np.floating], correction: TargetCorrection | None = None) -> None:
        """See `Simulator.step`."""
        implicit = self.physics.drive == "implicit"
        for target, physics_steps in self._commands(joint_target, correction):
            self._target[:] = target
            if implicit:
                self.world.hold(target)
            for _ in range(physics_steps):
                if not implicit:
                    self.world.push(self.joint_torque())
                self.world.step()
        self._links = None

    def foot_contact(self, links: LinkStates | None = None) -> NDArray[np.bool_]:
        """See `Simulator.foot_contact`; true where a sole point is at or under the ground."""
        return self._sole_in_ground(links)

    def _joints(self) -> tuple[Array, Array]:
        return self.world.qpos()[:, 7:], self.world.qvel()[:, 6:]

    def _write_physics(self, each: list[PhysicsSettings]) -> None:
        """Each robot's own, where the scene was built with that of the first."""
        profile, robot, dofs = self.profile, self.world.robot, self.world.joint_dofs
        tensor = self.world.tensor
        for name in ("armature", "damping", "frictionloss"):
            values = [per_joint(profile, f"{name}_of", getattr(p, name), getattr(p, f"{name}_of")) for p in each]
            getattr(robot, f"set_dofs_{name}")(tensor(np.stack(values)), dofs)
        robot.set_dofs_kp(tensor(self._kp), dofs)
        robot.set_dofs_kv(tensor(self._kd), dofs)
        robot.set_dofs_force_range(tensor(-self._torque_limit), tensor(self._torque_limit), dofs)
        links = [self.world.link_names.index(link.name) for link in profile.links]
        robot.set_links_mass(tensor(np.array([[*link_masses(profile, p).values()] for p in each])), links)
        robot.set_links_COM(tensor(np.array([[*link_centres(profile, p).values()] for p in each])), links)
        ratio = np.array([[p.friction / self.physics.friction] * len(self.world.link_names) for p in each])
        robot.set_friction_ratio(tensor(ratio))
