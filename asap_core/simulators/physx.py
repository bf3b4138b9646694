"""PhysX backend on a CPU without Isaac Sim (extra `physx`): the second engine, to test against and to collect on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.compound import compound_inertials
from asap_core.robots.kinematics import Kinematics, LinkStates
from asap_core.robots.mjcf import per_joint, scaled_gains
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.robots.usd import joint_prims, link_prims, scene_usda
from asap_core.rotations import rotate
from asap_core.simulators.drive_law import DriveLaw
from asap_core.simulators.each import each_physics
from asap_core.simulators.physx_world import PhysxWorld
from asap_core.simulators.protocol import Array, Ids, RobotState
from asap_core.simulators.target_delay import TargetDelay

_ALIKE = ("physics_dt", "control_dt", "drive", "self_collision")
_SIDE_BY_SIDE = 3.0
"""m between robots that cannot collide, and may meet."""
_APART = 12.0
"""m between robots that could."""
_IN_THE_AIR = 50.0
"""m, of a root that no contact reaches."""
_NO_TIME = 1e-6
"""s."""
_XYZW = [1, 2, 3, 0]
"""wxyz → xyzw."""
_WXYZ = [3, 0, 1, 2]
"""xyzw → wxyz."""


class PhysxSimulator:
    """N robots under `PhysicsSettings` in single precision, on one thread.

    The process has one PhysX scene. Several simulators may live; the one in use holds the scene, and a change of hands
    takes a tenth of a second, so do not alternate step by step. From a `set_state` of all robots on, equal calls give
    equal bits.

    Args:
        profile: the robot.
        physics: nominal or altered physics, time steps and action delay; or one for each robot, whose time steps,
            drives and self collision must be the same.
        num_envs: N.

    Raises:
        StageError: ovphysx is not installed.
    """

    def __init__(
        self, profile: RobotProfile, physics: PhysicsSettings | Sequence[PhysicsSettings], num_envs: int
    ) -> None:
        self._each = each_physics(physics, num_envs, _ALIKE)
        self.profile = profile
        self.physics = self._each[0]
        self.num_envs = num_envs
        self.control_dt = self.physics.control_dt
        gains = [scaled_gains(profile, p) for p in self._each]
        self._kp, self._kd, self._torque_limit = (np.stack([g[i] for g in gains]) for i in range(3))
        self._delay = TargetDelay(self._each, profile.num_joints)
        self._drive = DriveLaw.of(profile, self._each)
        self._kinematics = Kinematics(profile)
        self._target = np.tile(profile.default_joint_pos, (num_envs, 1))
        self._inertials = {id(p): compound_inertials(profile, p) for p in self._each}
        self._root_com = np.stack([self._inertials[id(p)][profile.links[0].name].com for p in self._each])
        self._parked: RobotState | None = None
        self._links: LinkStates | None = None
        self._pressed = np.zeros((num_envs, len(profile.foot_links)), bool)
        self.world = PhysxWorld(
            scene_usda(profile, self.physics),
            link_prims(profile)[0],
            [link_prims(profile)[i] for i in profile.foot_index],
            num_envs,
            _APART if self.physics.self_collision else _SIDE_BY_SIDE,
            self._write_physics,
            self._park,
        )
        self._to_physx = np.array([joint_prims(profile).index(name) for name in self.world.joint_names()])
        self._to_profile = np.argsort(self._to_physx)

    @property
    def state(self) -> RobotState:
        """A copy of the present state; see `RobotState`."""
        pose, velocity = self.world.read("ROOT_POSE").astype(float), self.world.read("ROOT_VELOCITY").astype(float)
        root_quat = pose[:, 3:][:, _WXYZ]
        return RobotState(
            root_pos=pose[:, :3] - self.world.origins,
            root_quat=root_quat,
            root_lin_vel=velocity[:, :3] - self._com_lead(root_quat, velocity[:, 3:], slice(None)),
            root_ang_vel=velocity[:, 3:],
            joint_pos=self._joints("DOF_POSITION"),
            joint_vel=self._joints("DOF_VELOCITY"),
        )

    def set_state(self, ids: Ids, state: RobotState, past_target: Array | None = None) -> None:
        """See `Simulator.set_state`; exact to single precision."""
        if len(ids) == 0:
            return
        if len(ids) == self.num_envs:
            self._forget_contacts()
        pose = np.concatenate([state.root_pos + self.world.origins[ids], state.root_quat[:, _XYZW]], axis=1)
        self._write_rows("ROOT_POSE", ids, pose)
        self._write_rows("DOF_POSITION", ids, state.joint_pos[:, self._to_physx])
        self._write_rows("DOF_VELOCITY", ids, state.joint_vel[:, self._to_physx])
        com_vel = state.root_lin_vel + self._com_lead(state.root_quat, state.root_ang_vel, ids)
        self._write_rows("ROOT_VELOCITY", ids, np.concatenate([com_vel, state.root_ang_vel], axis=1))
        self._target[ids] = state.joint_pos
        self._delay.refill(ids, state.joint_pos, past_target)
        self._pressed[ids] = False
        self._links = None

    def set_root_velocity(self, ids: Ids, lin_vel: Array) -> None:
        """See `Simulator.set_root_velocity`."""
        velocity, quat = self.world.read("ROOT_VELOCITY"), self.world.read("ROOT_POSE")[:, 3:][:, _WXYZ]
        velocity[ids, :3] = lin_vel + self._com_lead(quat[ids], velocity[ids, 3:], ids)
        self.world.write("ROOT_VELOCITY", velocity, ids)
        self._links = None

    def step(self, joint_target: NDArray[np.floating]) -> None:
        """See `Simulator.step`."""
        for target, physics_steps in self._delay.runs(np.asarray(joint_target, float)):
            self._target[:] = target
            if self._drive is None and self.physics.drive == "implicit":
                self._advance(physics_steps)
                continue
            for _ in range(physics_steps):
                if self._drive is not None:
                    self._target[:] = self._drive(target, self._joints("DOF_POSITION"), self._joints("DOF_VELOCITY"))
                self._advance(1)
        self._pressed = self.world.foot_forces()[..., 2] > 0.0
        self._links = None

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
        error = self._target - self._joints("DOF_POSITION")
        torque = self._kp * error - self._kd * self._joints("DOF_VELOCITY")
        return np.clip(torque, -self._torque_limit, self._torque_limit)

    def foot_contact(self) -> NDArray[np.bool_]:
        """See `Simulator.foot_contact`; true where the last physics step pressed or a sole point is in the ground.

        A robot that has not stepped since `set_state` is judged by its sole points alone.
        """
        heights = self._kinematics.sole_points(self.link_states())[..., 2]
        return np.asarray(self._pressed | (heights <= 0.0).any(axis=2), bool)

    def _advance(self, physics_steps: int) -> None:
        if self.physics.drive == "implicit":
            self.world.write("DOF_POSITION_TARGET", self._target[:, self._to_physx])
        else:
            self.world.write("DOF_ACTUATION_FORCE", self.joint_torque()[:, self._to_physx])
        self.world.step(self.physics.physics_dt, physics_steps)

    def _forget_contacts(self) -> None:
        """Step once in the air: PhysX's contact solver starts from the last step's forces, wherever robots are put."""
        pose = self.world.read("ROOT_POSE")
        pose[:, 2] = _IN_THE_AIR
        self.world.write("ROOT_POSE", pose)
        self.world.step(_NO_TIME, 1)

    def _joints(self, name: str) -> Array:
        """(N, J) in profile order, double precision."""
        return self.world.read(name).astype(float)[:, self._to_profile]

    def _write_rows(self, name: str, ids: Ids, rows: Array) -> None:
        values = np.zeros(self.world.shape(name))
        values[ids] = rows
        self.world.write(name, values, ids)

    def _com_lead(self, root_quat: Array, root_ang_vel: Array, ids: Ids | slice) -> Array:
        """(M, 3) m/s by which the root's centre of mass, whose velocity PhysX means, moves against its origin."""
        return np.cross(root_ang_vel, rotate(root_quat, self._root_com[ids]))

    def _park(self) -> None:
        self._parked = self.state

    def _write_physics(self) -> None:
        """All that differs from robot to robot, and the state in which the scene was left."""
        self._write_inertials()
        profile, each = self.profile, self._each
        order = np.array([joint_prims(profile).index(name) for name in self.world.joint_names()])
        armature, damping, dry = (
            np.stack([per_joint(profile, f"{n}_of", getattr(p, n), getattr(p, f"{n}_of")) for p in each])[:, order]
            for n in ("armature", "damping", "frictionloss")
        )
        implicit = float(self.physics.drive == "implicit")
        self.world.write("DOF_ARMATURE", armature)
        self.world.write("DOF_FRICTION_PROPERTIES", np.stack([dry, dry, damping], axis=2))
        self.world.write("DOF_STIFFNESS", implicit * self._kp[:, order])
        self.world.write("DOF_DAMPING", implicit * self._kd[:, order])
        self.world.write("DOF_MAX_FORCE", self._torque_limit[:, order])
        surface = self.world.read("SHAPE_FRICTION_AND_RESTITUTION")
        surface[..., :2] = np.array([p.friction for p in each])[:, None, None]
        self.world.write("SHAPE_FRICTION_AND_RESTITUTION", surface)
        if self._parked is not None:
            target, pressed = self._target.copy(), self._pressed.copy()
            past = self._delay.past.copy()
            self.set_state(np.arange(self.num_envs), self._parked, past)
            self._target[:], self._pressed[:], self._parked = target, pressed, None

    def _write_inertials(self) -> None:
        prims = self.world.link_names()
        names = [self.profile.links[link_prims(self.profile).index(prim)].name for prim in prims]
        rows = [[self._inertials[id(p)][name] for name in names] for p in self._each]
        com = np.zeros((self.num_envs, len(names), 7))
        com[..., :3] = [[i.com for i in row] for row in rows]
        com[..., 6] = 1.0
        self.world.write("BODY_COM_POSE", com)
        self.world.write("BODY_MASS", np.array([[i.mass for i in row] for row in rows]))
        self.world.write("BODY_INERTIA", np.array([[i.inertia.reshape(9) for i in row] for row in rows]))
