"""A Genesis scene: N copies of one robot on a floor, and what is read from and written to it.

Genesis is initialised once a process, on a CUDA device where torch sees one, else on a CPU. Scenes live side by side.
"""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import StageError
from asap_core.progress import say
from asap_core.robots.mjcf import mjcf_xml
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile

Array = NDArray[np.floating]
Ids = NDArray[np.intp]

LEAST_FRICTION = 0.01
"""Of any contact in Genesis."""
FLOOR_DEPTH = 10.0
"""m, down to which a foot below the floor is pushed out of it."""
_ROOT = "root"
"""The free joint of the MJCF."""


def _engine() -> Any:
    """The package, initialised in single precision. It seeds nothing, so that nobody else's random numbers change."""
    if find_spec("genesis") is None:
        raise StageError(
            "simulation.backend genesis: genesis-world is not installed; `make install EXTRAS=dev,robot,genesis`"
        )
    import genesis
    import torch

    if not genesis._initialized:
        say("Genesis starts; the first time on a machine it compiles its kernels, which takes minutes")
        genesis.init(
            backend=genesis.gpu if torch.cuda.is_available() else genesis.cpu,
            precision="32",
            logging_level=logging.ERROR,
        )
    return genesis


class GenesisWorld:
    """N robots of one profile, each in a world of its own, on a floor without friction of its own.

    Args:
        profile: the robot.
        physics: time step and self collision of all, and all else as every robot has it that is not `varied`.
        num_envs: N.
        varied: whether `write_physics` will give each robot its own.
    """

    def __init__(self, profile: RobotProfile, physics: PhysicsSettings, num_envs: int, varied: bool) -> None:
        gs = self._gs = _engine()
        self._scene = gs.Scene(
            sim_options=gs.options.SimOptions(dt=physics.physics_dt),
            rigid_options=gs.options.RigidOptions(
                # It takes the damping of Genesis's own drives at a step's end, and treats torques from outside as Euler
                # does: one integrator, so that its kernels are compiled once.
                integrator=gs.integrator.implicitfast,
                enable_self_collision=physics.self_collision,
                enable_neutral_collision=True,
                batch_dofs_info=varied,
                batch_links_info=varied,
            ),
            show_viewer=False,
        )
        floor = self._scene.add_entity(gs.morphs.Plane(), material=gs.materials.Rigid(friction=LEAST_FRICTION))
        # Genesis looks for contacts where bounding boxes overlap, and that of its plane is 1 cm deep.
        bottom = floor.geoms[0].init_verts
        bottom[bottom[:, 2] < 0.0, 2] = -FLOOR_DEPTH
        # Without a default, Genesis gives every joint whose armature is 0 one of 0.1.
        morph = gs.morphs.MJCF(
            file=mjcf_xml(profile, physics),
            exclude_ground_plane=True,
            default_armature=None,
            visualization=False,
        )
        self.robot = self._scene.add_entity(morph)
        self._scene.build(n_envs=num_envs)
        joints = [self.robot.get_joint(name) for name in (_ROOT, *profile.joint_names)]
        self._qs = [i for joint in joints for i in joint.qs_idx_local]
        self._dofs = [i for joint in joints for i in joint.dofs_idx_local]
        self.joint_dofs = self._dofs[6:]
        """(J,) Genesis's numbers of the joints, in profile order."""
        self.link_names = [link.name for link in self.robot.links]
        self._lost = np.zeros(num_envs, bool)
        """(N,) robots that were parked because Genesis found no solution for them, until they are written."""
        self._start = self.qpos()

    def qpos(self) -> Array:
        """(N, 7 + J): root position, root quaternion wxyz, joints in profile order; NaN for a robot without solution.

        Genesis leaves the state of such a robot as it was, and refuses to step on.
        """
        return self._seen(_numpy(self.robot.get_qpos())[:, self._qs])

    def qvel(self) -> Array:
        """(N, 6 + J): velocity of the root, its angular velocity as Genesis has it, joints in profile order; or NaN."""
        return self._seen(_numpy(self.robot.get_dofs_velocity())[:, self._dofs])

    def write_state(self, ids: Ids, qpos: Array, qvel: Array) -> None:
        """Set robots `ids` (M,) to `qpos` (M, 7 + J) and `qvel` (M, 6 + J); contacts and solver start anew."""
        self._lost[ids] = False
        self.robot.set_qpos(self.tensor(qpos), self._qs, ids, zero_velocity=False)
        self.write_velocity(ids, qvel)

    def write_velocity(self, ids: Ids, qvel: Array) -> None:
        """Set the velocities of robots `ids` (M,) to `qvel` (M, 6 + J)."""
        self.robot.set_dofs_velocity(self.tensor(qvel), self._dofs, ids)

    def hold(self, joint_target: Array) -> None:
        """Drive the joints to `joint_target` (N, J) rad from the next step on."""
        self.robot.control_dofs_position(self.tensor(joint_target), self.joint_dofs)

    def push(self, joint_torque: Array) -> None:
        """Drive the joints with `joint_torque` (N, J) N m from the next step on."""
        self.robot.control_dofs_force(self.tensor(joint_torque), self.joint_dofs)

    def step(self) -> None:
        """Advance all robots by one physics step; those without a solution are parked where they were built.

        Raises:
            StageError: Genesis stopped for another reason.
        """
        try:
            self._scene.step(update_visualizer=False)
        except self._gs.GenesisException as error:
            invalid = self._invalid()
            if not invalid.any():
                raise StageError(f"Genesis stopped: {error}") from None
            self._park(np.flatnonzero(invalid))
            self._scene.step(update_visualizer=False)

    def _park(self, ids: Ids) -> None:
        self.write_state(ids, self._start[ids], np.zeros((len(ids), len(self._dofs))))
        self._lost[ids] = True

    def _invalid(self) -> NDArray[np.bool_]:
        return np.asarray(self._scene.rigid_solver.get_error_envs_mask().cpu().numpy(), bool)

    def _seen(self, values: Array) -> Array:
        values[self._lost | self._invalid()] = np.nan
        return values

    def link_forces(self, names: tuple[str, ...]) -> Array:
        """(N, n, 3) N, world frame, contact forces on the links `names` (n,) in the last physics step."""
        return _numpy(self.robot.get_links_net_contact_force())[:, [self.link_names.index(n) for n in names]]

    def tensor(self, values: Array) -> Any:
        """In Genesis's precision, on its device."""
        import torch

        return torch.as_tensor(np.asarray(values), dtype=self._gs.tc_float, device=self._gs.device)


def _numpy(tensor: Any) -> Array:
    return np.asarray(tensor.cpu().numpy(), float)
