"""`imitate`: let the simulated robot follow a motion, and say how far it got."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import mujoco
import numpy as np

from asap_core.motions.robot import RobotMotion
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array
from asap_core.screening.dynamics import GRAVITY, angular_velocity
from asap_core.screening.imitator.controller import Controller, Wanted
from asap_core.screening.imitator.plan import plan_com
from asap_core.screening.robot_dynamics import trajectory
from asap_core.screening.settings import ImitatorSettings

_CONTACT_HEIGHT, _CONTACT_SPEED = 0.04, 0.45
"""m, m/s: a sole point of the clip lower and slower than this is planned to bear load."""


@dataclass(frozen=True)
class Imitation:
    """How the robot followed a clip."""

    passed: bool
    share: float
    """Of the clip, the part that it followed until the error limit."""
    mean_error: float
    """m, of all links over the followed part."""
    worst_error: float
    """m, of the mean over the links."""
    root_force: float
    """Mean residual force on the root as a share of the weight."""
    error: Array
    """(K,) m, mean over the links after each control step."""

    def to_header(self) -> dict[str, Any]:
        """As a JSON object, without the errors per step."""
        return {key: value for key, value in asdict(self).items() if key != "error"}


def imitate(
    motion: RobotMotion, profile: RobotProfile, settings: ImitatorSettings, physics: PhysicsSettings
) -> Imitation:
    """Start the robot in the clip's first frame and control it along the clip in MuJoCo.

    The pass rule: in every control step the links are, in the mean, no farther than `settings.max_error` from the
    clip, and the residual force on the root is in the mean no more than `settings.max_root_force` of the weight.
    """
    physics = physics.model_copy(update={"physics_dt": settings.physics_dt, "control_dt": settings.control_dt})
    model = build_model(profile, physics)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    wanted, links = _references(motion, profile, settings.control_dt)
    controller = Controller(model, profile, settings.root_force)
    data = mujoco.MjData(model)
    start = wanted[0]
    data.qpos[:] = np.concatenate([links[0, 0], start.root_quat, start.joint[0]])
    data.qvel[:] = np.concatenate([(links[1, 0] - links[0, 0]) / settings.control_dt, start.root_spin, start.joint[1]])
    kinematics = Kinematics(profile)
    errors, forces = [], []
    for step in range(len(wanted) - 1):
        mujoco.mj_forward(model, data)
        command = controller.solve(data, wanted[step])
        data.qfrc_applied[:] = np.concatenate([command.wrench, command.torque])
        mujoco.mj_step(model, data, nstep=physics.substeps)
        forces.append(float(np.linalg.norm(command.wrench[:3])))
        q = data.qpos[None]
        poses = kinematics.forward(q[:, :3], q[:, 3:7], q[:, 7:])
        errors.append(float(np.linalg.norm(poses.pos[0] - links[step + 1], axis=-1).mean()))
        if not errors[-1] <= settings.max_error:
            break
    return _imitation(errors, forces, len(wanted) - 1, controller.mass * GRAVITY, settings)


def _imitation(
    errors: list[float], forces: list[float], steps: int, weight: float, settings: ImitatorSettings
) -> Imitation:
    followed = len(errors) if errors[-1] <= settings.max_error else len(errors) - 1
    root_force = float(np.mean(forces)) / weight
    return Imitation(
        passed=followed == steps and root_force <= settings.max_root_force,
        share=followed / steps,
        mean_error=float(np.mean(errors[: max(followed, 1)])),
        worst_error=float(np.max(errors)),
        root_force=root_force,
        error=np.array(errors),
    )


def _references(motion: RobotMotion, profile: RobotProfile, control_dt: float) -> tuple[list[Wanted], Array]:
    """What is wanted in each control step, and the clip's link positions (K, L, 3) at these times."""
    clip = motion.resample(1.0 / control_dt)
    kinematics = Kinematics(profile)
    links = kinematics.forward(clip.root_pos, clip.root_quat, clip.joint_pos).pos
    qpos, qvel, qacc = trajectory(clip)
    poses = kinematics.forward(qpos[:, :3], qpos[:, 3:7], qpos[:, 7:])
    soles = kinematics.sole_points(poses)
    speed = np.linalg.norm(np.gradient(soles, control_dt, axis=0), axis=-1)
    stands = (soles[..., 2] < _CONTACT_HEIGHT) & (speed < _CONTACT_SPEED)
    flat = soles.reshape(len(qpos), -1, 3)
    com = plan_com(_centre_of_mass(profile, qpos), flat, stands.reshape(len(qpos), -1), clip.fps)
    feet = poses.pos[:, profile.foot_index]
    spin = angular_velocity(poses.rot[:, profile.foot_index], clip.fps)
    paths = [_with_derivatives(values, control_dt) for values in (com, feet)]
    wanted = [
        Wanted(
            com=paths[0][:, k],
            root_quat=qpos[k, 3:7],
            root_spin=qvel[k, 3:6],
            joint=np.stack([qpos[k, 7:], qvel[k, 6:], qacc[k, 6:]]),
            foot_pos=paths[1][:, k],
            foot_quat=poses.quat[k, profile.foot_index],
            foot_spin=spin[k],
            stands=stands[k],
        )
        for k in range(len(qpos))
    ]
    return wanted, links


def _centre_of_mass(profile: RobotProfile, qpos: Array) -> Array:
    """(K, 3) m."""
    model = build_model(profile, PhysicsSettings())
    data = mujoco.MjData(model)
    out = np.zeros((len(qpos), 3))
    for k, row in enumerate(qpos):
        data.qpos[:] = row
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        out[k] = data.subtree_com[1]
    return out


def _with_derivatives(values: Array, dt: float) -> Array:
    """(3, K, …) values with first and second derivative."""
    first = np.gradient(values, dt, axis=0)
    return np.stack([values, first, np.gradient(first, dt, axis=0)])
