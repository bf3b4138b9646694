"""MuJoCo backend: N robots on CPU threads, through `mujoco.batch` where it exists and `mujoco.rollout` elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from asap_core.robots.kinematics import LinkStates
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import rotate, rotate_inverse
from asap_core.simulators.driven import DrivenRobots
from asap_core.simulators.each import each_physics
from asap_core.simulators.protocol import Array, Ids, RobotState, TargetCorrection

Models = Sequence[mujoco.MjModel]
"""One model per robot, of equal sizes; mostly one and the same."""


class Stepper(Protocol):
    """Steps N robots, each by its own model; `qpos`, `qvel` and `ctrl` are live arrays with a leading N."""

    qpos: Array
    qvel: Array
    ctrl: Array

    def step(self, nstep: int) -> None:
        """Advance all copies by `nstep` physics steps. The solver starts cold, so equal states step equally."""


class BatchStepper:
    """`mujoco.batch.Batch` (mujoco 3.17 and later)."""

    def __init__(self, models: Models, threads: int) -> None:
        from mujoco import batch

        self._batch = batch.Batch(models[0], nsim=len(models), nthread=threads)
        if any(model is not models[0] for model in models):
            self._batch.set_models(models)
        self.qpos = self._batch.bind("qpos")
        self.qvel = self._batch.bind("qvel")
        self.ctrl = self._batch.bind("ctrl")
        self._warmstart = self._batch.bind("qacc_warmstart")

    def step(self, nstep: int) -> None:
        """See `Stepper.step`."""
        self._warmstart[:] = 0.0
        self._batch.step(nstep=nstep)


class RolloutStepper:
    """`mujoco.rollout.Rollout`, for mujoco before 3.17 (Isaac Lab 3.0 pins 3.12)."""

    def __init__(self, models: Models, threads: int) -> None:
        from mujoco import rollout

        num_envs, model = len(models), models[0]
        self._models = list(models)
        self._datas = [mujoco.MjData(model) for _ in range(max(1, threads))]
        self._rollout = rollout.Rollout(nthread=threads if threads > 1 else 0)
        size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self._state = np.zeros((num_envs, size))
        self.qpos = self._state[:, 1 : 1 + model.nq]
        self.qvel = self._state[:, 1 + model.nq : 1 + model.nq + model.nv]
        self.ctrl = np.zeros((num_envs, model.nu))

    def step(self, nstep: int) -> None:
        """See `Stepper.step`."""
        control = np.repeat(self.ctrl[:, None], nstep, axis=1)
        states, _ = self._rollout.rollout(self._models, self._datas, self._state, control, nstep=nstep)
        self._state[:] = states[:, -1]


def best_stepper(models: Models, threads: int) -> Stepper:
    """The fastest stepper that the installed mujoco offers."""
    if find_spec("mujoco.batch") is not None:
        return BatchStepper(models, threads)
    return RolloutStepper(models, threads)


class MujocoSimulator(DrivenRobots):
    """N robots under `PhysicsSettings`. Deterministic: equal states and targets give equal bits on any thread count.

    Args:
        profile: the robot.
        physics: nominal or altered physics, time steps and action delay; or one for each robot, whose time steps and
            drives must be the same.
        num_envs: N.
        threads: worker threads.
    """

    def __init__(
        self,
        profile: RobotProfile,
        physics: PhysicsSettings | Sequence[PhysicsSettings],
        num_envs: int,
        threads: int = 1,
        stepper: type[BatchStepper] | type[RolloutStepper] | None = None,
    ) -> None:
        each = each_physics(physics, num_envs, ("physics_dt", "control_dt", "drive"))
        super().__init__(profile, each)
        models = {key: build_model(profile, p) for key, p in {id(p): p for p in each}.items()}
        make = stepper or best_stepper
        self._stepper: Stepper = make([models[id(p)] for p in each], threads)
        self._target = self._stepper.ctrl

    @property
    def state(self) -> RobotState:
        """A copy of the present state; see `RobotState`."""
        qpos, qvel = self._stepper.qpos, self._stepper.qvel
        root_quat = qpos[:, 3:7].copy()
        return RobotState(
            root_pos=qpos[:, :3].copy(),
            root_quat=root_quat,
            root_lin_vel=qvel[:, :3].copy(),
            root_ang_vel=rotate(root_quat, qvel[:, 3:6]),
            joint_pos=qpos[:, 7:].copy(),
            joint_vel=qvel[:, 6:].copy(),
        )

    def set_state(self, ids: Ids, state: RobotState, past_target: Array | None = None) -> None:
        """See `Simulator.set_state`. Without a past, delayed targets start as the joint positions of the new state."""
        if len(ids) == 0:
            return
        qpos, qvel = self._stepper.qpos, self._stepper.qvel
        qpos[ids, :3] = state.root_pos
        qpos[ids, 3:7] = state.root_quat
        qpos[ids, 7:] = state.joint_pos
        qvel[ids, :3] = state.root_lin_vel
        qvel[ids, 3:6] = rotate_inverse(state.root_quat, state.root_ang_vel)
        qvel[ids, 6:] = state.joint_vel
        self._target[ids] = state.joint_pos
        self._delay.refill(ids, state.joint_pos, past_target)
        self._links = None

    def set_root_velocity(self, ids: Ids, lin_vel: Array) -> None:
        """See `Simulator.set_root_velocity`."""
        self._stepper.qvel[ids, :3] = lin_vel
        self._links = None

    def step(self, joint_target: NDArray[np.floating], correction: TargetCorrection | None = None) -> None:
        """See `Simulator.step`."""
        for target, physics_steps in self._commands(joint_target, correction):
            self._target[:] = target
            self._stepper.step(physics_steps)
        self._links = None

    def foot_contact(self, links: LinkStates | None = None) -> NDArray[np.bool_]:
        """See `Simulator.foot_contact`; true where a sole point is at or under the ground."""
        return self._sole_in_ground(links)

    def _joints(self) -> tuple[Array, Array]:
        return self._stepper.qpos[:, 7:], self._stepper.qvel[:, 6:]
