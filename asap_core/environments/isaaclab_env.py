"""The tracking environment as one of Isaac Lab's own (`DirectRLEnv`), for its training scripts. Needs Isaac Lab.

Isaac Lab owns scene, stepping and events; what robots see, what pays and where episodes begin and end is asked of a
`TrackingEnv`, which finds the scene behind the `Simulator` protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from isaaclab.actuators import IdealPDActuatorCfg
from isaaclab.envs import DirectRLEnv, DirectRLEnvCfg
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.sim import SimulationCfg
from isaaclab.utils import configclass
from numpy.typing import NDArray

from asap_core.environments.isaaclab_events import event_terms
from asap_core.environments.observations import ObservationLayout
from asap_core.environments.settings import TrackingSettings
from asap_core.environments.tracking import StepResult, TrackingEnv
from asap_core.robots.kinematics import LinkStates
from asap_core.robots.mjcf import scaled_gains
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.robots.usd import joint_prims
from asap_core.simulators.driven import DrivenRobots
from asap_core.simulators.isaaclab.ovphysx import set_up_ovphysx
from asap_core.simulators.isaaclab.runtime import device, physics_cfg, prepare, shares_physx
from asap_core.simulators.isaaclab.scene import scene_cfg
from asap_core.simulators.isaaclab.scene_robot import SceneRobot
from asap_core.simulators.protocol import Array, Ids, RobotState, TargetCorrection

Task = Callable[["SceneRobots"], TrackingEnv]
"""Makes the tracking environment over the robots of a scene."""


class SceneRobots(DrivenRobots):
    """The robots of an environment's scene as a `Simulator`, which that environment steps."""

    def __init__(self, robot: SceneRobot, profile: RobotProfile, physics: PhysicsSettings, num_envs: int) -> None:
        super().__init__(profile, [physics] * num_envs)
        self.robot = robot

    @property
    def state(self) -> RobotState:
        """See `Simulator.state`."""
        return self.robot.state()

    def _joints(self) -> tuple[Array, Array]:
        return self.robot.joints()

    def set_state(self, ids: Ids, state: RobotState, past_target: Array | None = None) -> None:
        """See `Simulator.set_state`."""
        if len(ids) == 0:
            return
        self.robot.write_state(ids, state)
        self._target[ids] = state.joint_pos
        self.changed()

    def set_root_velocity(self, ids: Ids, lin_vel: Array) -> None:
        """See `Simulator.set_root_velocity`."""
        self.robot.write_root_velocity(ids, lin_vel)
        self.changed()

    def step(self, joint_target: Array, correction: TargetCorrection | None = None) -> None:
        """Isaac Lab's environment steps; nothing else may."""
        raise NotImplementedError("robots of an Isaac Lab environment are stepped by it")

    def command(self, joint_target: Array) -> None:
        """Hold `joint_target` (N, J) rad in the physics steps that follow."""
        self._target[:] = joint_target
        self.robot.command_target(joint_target)

    def changed(self) -> None:
        """The state is another one now."""
        self._links = None

    def foot_contact(self, links: LinkStates | None = None) -> NDArray[np.bool_]:
        """See `Simulator.foot_contact`."""
        return np.asarray((self.robot.foot_forces()[..., 2] > 0.0) | self._sole_in_ground(links), bool)


@configclass
class TaskCfg(DirectRLEnvCfg):
    """Isaac Lab's configuration of a task; `task_cfg` makes one."""

    decimation: int = 4
    episode_length_s: float = 1.0
    action_space: int = 1
    observation_space: int = 1
    state_space: int = 1
    sim: SimulationCfg = SimulationCfg()
    scene: InteractiveSceneCfg = InteractiveSceneCfg(num_envs=1, env_spacing=3.0)
    events: Any = None


def task_cfg(
    profile: RobotProfile, physics: PhysicsSettings, settings: TrackingSettings, num_envs: int, length_s: float
) -> TaskCfg:
    """The configuration of a task of `num_envs` robots whose episodes last at most `length_s` seconds."""
    scene = scene_cfg(profile, physics, num_envs)
    if physics.drive == "explicit":
        scene.robot.actuators = {"joints": _explicit_drives(profile, physics)}
    return TaskCfg(
        decimation=physics.substeps,
        episode_length_s=length_s,
        action_space=profile.num_joints,
        observation_space=ObservationLayout(settings.actor, profile).width,
        state_space=ObservationLayout(settings.critic, profile).width,
        sim=SimulationCfg(
            device=device(),
            dt=physics.physics_dt,
            render_interval=physics.substeps,
            physics=physics_cfg("physx", physics.drive == "implicit"),
        ),
        scene=scene,
        events=event_terms(settings, profile),
    )


def _explicit_drives(profile: RobotProfile, physics: PhysicsSettings) -> IdealPDActuatorCfg:
    """PD torques that Isaac Lab recomputes at each physics step."""
    kp, kd, limit = (
        dict(zip(joint_prims(profile), map(float, row), strict=True)) for row in scaled_gains(profile, physics)
    )
    return IdealPDActuatorCfg(
        joint_names_expr=[".*"], stiffness=kp, damping=kd, actuator_effort_limit=limit, armature=physics.armature
    )


class TaskEnv(DirectRLEnv):
    """A `TrackingEnv` in Isaac Lab: observations `policy` and `critic`, actions as everywhere.

    Args:
        cfg: of `task_cfg`.
        profile, physics: the robot.
        task: makes the tracking environment; its own pushes must be off, Isaac Lab's events push.
    """

    def __init__(
        self, cfg: TaskCfg, profile: RobotProfile, physics: PhysicsSettings, task: Task, render_mode: str | None = None
    ) -> None:
        prepare("physx")
        super().__init__(cfg, render_mode)
        self.robots = SceneRobots(SceneRobot(self.scene, profile), profile, physics, self.num_envs)
        self.tracking = task(self.robots)
        self._result: StepResult | None = None
        self._seen: dict[str, torch.Tensor] | None = None

    def _setup_scene(self) -> None:
        if shares_physx("physx"):
            set_up_ovphysx(self.sim)

    def _pre_physics_step(self, actions: torch.Tensor) -> None:
        self._target = self.tracking.begin(actions.cpu().numpy())
        self._seen = None

    def _apply_action(self) -> None:
        self.robots.command(self._target)

    def _get_dones(self) -> tuple[torch.Tensor, torch.Tensor]:
        self.robots.changed()
        self._result = self.tracking.finish()
        return self._tensor(self._result.failed), self._tensor(self._result.timed_out)

    def _get_rewards(self) -> torch.Tensor:
        assert self._result is not None
        return self._tensor(self._result.reward)

    def _get_observations(self) -> dict[str, torch.Tensor]:
        """Those of the present step: asking twice does not advance their histories twice."""
        if self._seen is None:
            self.robots.changed()
            self.tracking.look_anew()
            seen = self.tracking.observe()
            self._seen = {"policy": self._tensor(seen["actor"]), "critic": self._tensor(seen["critic"])}
        return dict(self._seen)

    def _reset_idx(self, env_ids: Any) -> None:
        super()._reset_idx(env_ids)
        self._seen = None

    def _tensor(self, values: NDArray[np.generic]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device)
