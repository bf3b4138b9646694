"""PhysX backend on a CPU without Isaac Sim (extra `physx`): the second engine, to test against and to collect on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asap_core.robots.compound import compound_inertials
from asap_core.robots.mjcf import per_joint
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.robots.usd import joint_prims, link_prims, scene_usda
from asap_core.rotations import rotate
from asap_core.simulators.one_scene import OneSceneSimulator
from asap_core.simulators.physx_world import Float32, PhysxWorld
from asap_core.simulators.protocol import Array, Ids, RobotState

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


class PhysxSimulator(OneSceneSimulator):
    """N robots under `PhysicsSettings` in single precision, on one thread.

    The process has one PhysX scene; a change of hands between simulators takes a tenth of a second, so do not alternate
    step by step. From a `set_state` of all robots on, equal calls give equal bits.

    Args:
        profile, physics, num_envs: see `OneSceneSimulator`.

    Raises:
        StageError: ovphysx is not installed.
    """

    def __init__(
        self, profile: RobotProfile, physics: PhysicsSettings | Sequence[PhysicsSettings], num_envs: int
    ) -> None:
        super().__init__(profile, physics, num_envs)
        self._inertials = {id(p): compound_inertials(profile, p) for p in self.each}
        self._root_com = np.stack([self._inertials[id(p)][profile.links[0].name].com for p in self.each])
        self.world = PhysxWorld(
            scene_usda(profile, self.physics),
            link_prims(profile)[0],
            [link_prims(profile)[i] for i in profile.foot_index],
            num_envs,
            _APART if self.physics.self_collision else _SIDE_BY_SIDE,
            self._write_physics,
            self.park,
        )
        self._to_physx = np.array([joint_prims(profile).index(name) for name in self.world.joint_names()])
        self._to_profile = np.argsort(self._to_physx)

    @property
    def state(self) -> RobotState:
        """A copy of the present state; see `RobotState`."""
        pose, velocity = self.world.read("ROOT_POSE").astype(float), self.world.read("ROOT_VELOCITY").astype(float)
        root_quat = pose[:, 3:][:, _WXYZ]
        joint_pos, joint_vel = self._joints()
        return RobotState(
            root_pos=pose[:, :3] - self.world.origins,
            root_quat=root_quat,
            root_lin_vel=velocity[:, :3] - self._com_lead(root_quat, velocity[:, 3:], slice(None)),
            root_ang_vel=velocity[:, 3:],
            joint_pos=joint_pos,
            joint_vel=joint_vel,
        )

    def _write_state(self, ids: Ids, state: RobotState) -> None:
        pose = np.concatenate([state.root_pos + self.world.origins[ids], state.root_quat[:, _XYZW]], axis=1)
        self._write_rows("ROOT_POSE", ids, pose)
        self._write_rows("DOF_POSITION", ids, state.joint_pos[:, self._to_physx])
        self._write_rows("DOF_VELOCITY", ids, state.joint_vel[:, self._to_physx])
        com_vel = state.root_lin_vel + self._com_lead(state.root_quat, state.root_ang_vel, ids)
        self._write_rows("ROOT_VELOCITY", ids, np.concatenate([com_vel, state.root_ang_vel], axis=1))

    def _write_root_velocity(self, ids: Ids, lin_vel: Array) -> None:
        velocity, quat = self.world.read("ROOT_VELOCITY"), self.world.read("ROOT_POSE")[:, 3:][:, _WXYZ]
        velocity[ids, :3] = lin_vel + self._com_lead(quat[ids], velocity[ids, 3:], ids)
        self.world.write("ROOT_VELOCITY", velocity, ids)

    def _foot_forces(self) -> Float32:
        return self.world.foot_forces()

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

    def _joints(self) -> tuple[Array, Array]:
        position, velocity = self.world.read("DOF_POSITION"), self.world.read("DOF_VELOCITY")
        return position.astype(float)[:, self._to_profile], velocity.astype(float)[:, self._to_profile]

    def _write_rows(self, name: str, ids: Ids, rows: Array) -> None:
        values = np.zeros(self.world.shape(name))
        values[ids] = rows
        self.world.write(name, values, ids)

    def _com_lead(self, root_quat: Array, root_ang_vel: Array, ids: Ids | slice) -> Array:
        """(M, 3) m/s by which the root's centre of mass, whose velocity PhysX means, moves against its origin."""
        return np.cross(root_ang_vel, rotate(root_quat, self._root_com[ids]))

    def _write_physics(self) -> None:
        """All that differs from robot to robot, and the state in which the scene was left."""
        self._write_inertials()
        profile, each = self.profile, self.each
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
        self.unpark()

    def _write_inertials(self) -> None:
        prims = self.world.link_names()
        names = [self.profile.links[link_prims(self.profile).index(prim)].name for prim in prims]
        rows = [[self._inertials[id(p)][name] for name in names] for p in self.each]
        com = np.zeros((self.num_envs, len(names), 7))
        com[..., :3] = [[i.com for i in row] for row in rows]
        com[..., 6] = 1.0
        self.world.write("BODY_COM_POSE", com)
        self.world.write("BODY_MASS", np.array([[i.mass for i in row] for row in rows]))
        self.world.write("BODY_INERTIA", np.array([[i.inertia.reshape(9) for i in row] for row in rows]))
