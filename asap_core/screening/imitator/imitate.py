"""`imitate`: let the simulated robot follow a motion, and say how far it got."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline

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
from asap_core.screening.verdict import Reason, Verdict

_CHUNK = 25
"""Control steps between two looks at the error."""
_PLAN_FPS = 50.0
"""Hz of the plan of the centre of mass."""
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

    def verdict(self, settings: ImitatorSettings) -> Verdict:
        """As one of the screen's."""
        reasons = []
        if self.share < 1.0:
            unit = "of the clip followed"
            detail = f"links {self.worst_error:.2f} m off in the mean, limit {settings.max_error:.2f} m"
            reasons.append(Reason("imitation", self.share, 1.0, unit, [], detail))
        elif self.mean_error > settings.max_mean_error:
            unit = "m off in the mean of links and clip"
            reasons.append(Reason("imitation", self.mean_error, settings.max_mean_error, unit, []))
        if self.root_force > settings.max_root_force:
            unit = "of the weight held up by the residual force"
            reasons.append(Reason("assistance", self.root_force, settings.max_root_force, unit, []))
        figures = {
            "imitation_share": self.share,
            "imitation_mean_error": self.mean_error,
            "imitation_worst_error": self.worst_error,
            "imitation_root_force": self.root_force,
        }
        return Verdict(self.passed, reasons, figures, self.share, {"imitation": self.error})


def imitate(
    motion: RobotMotion, profile: RobotProfile, settings: ImitatorSettings, physics: PhysicsSettings
) -> Imitation:
    """Start the robot in the clip's first frame and control it along the clip in MuJoCo.

    The pass rule: in every control step the links are, in the mean, no farther than `settings.max_error` from the clip,
    over the clip no farther than `settings.max_mean_error`, and the residual force on the root is in the mean no more
    than `settings.max_root_force` of the weight.
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
    errors, forces = np.empty(0), np.empty(0)
    for first in range(0, len(wanted) - 1, _CHUNK):
        chunk = range(first, min(first + _CHUNK, len(wanted) - 1))
        qpos, force = _follow(model, data, controller, [wanted[k] for k in chunk], physics.substeps)
        poses = Kinematics(profile).forward(qpos[:, :3], qpos[:, 3:7], qpos[:, 7:])
        away = np.linalg.norm(poses.pos - links[chunk.start + 1 : chunk.stop + 1], axis=-1).mean(axis=1)
        errors, forces = np.append(errors, away), np.append(forces, force)
        if not away.max() <= settings.max_error:
            break
    return _imitation(errors, forces, len(wanted) - 1, controller.mass * GRAVITY, settings)


def _follow(
    model: mujoco.MjModel, data: mujoco.MjData, controller: Controller, wanted: list[Wanted], substeps: int
) -> tuple[Array, Array]:
    """Control along some steps; qpos (n, 7 + J) after each of them and the residual force (n,) in N."""
    qpos, forces = np.empty((len(wanted), model.nq)), np.empty(len(wanted))
    for k, target in enumerate(wanted):
        mujoco.mj_forward(model, data)
        command = controller.solve(data, target)
        data.qfrc_applied[:] = np.concatenate([command.wrench, command.torque])
        mujoco.mj_step(model, data, nstep=substeps)
        qpos[k], forces[k] = data.qpos, np.linalg.norm(command.wrench[:3])
    return qpos, forces


def _imitation(errors: Array, forces: Array, steps: int, weight: float, settings: ImitatorSettings) -> Imitation:
    beyond = ~(errors <= settings.max_error)
    followed = int(beyond.argmax()) if beyond.any() else len(errors)
    seen = slice(0, followed + 1)
    root_force = float(forces[seen].mean()) / weight
    mean_error = float(errors[seen].mean())
    within = mean_error <= settings.max_mean_error and root_force <= settings.max_root_force
    return Imitation(
        passed=followed == steps and within,
        share=followed / steps,
        mean_error=mean_error,
        worst_error=float(errors[seen].max()),
        root_force=root_force,
        error=errors[seen],
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
    com = _planned_com(_centre_of_mass(profile, qpos), soles, stands, clip.fps)
    feet = poses.pos[:, profile.foot_index]
    spin = angular_velocity(poses.rot[:, profile.foot_index], clip.fps)
    paths = (com, _with_derivatives(feet, control_dt))
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


def _planned_com(com: Array, soles: Array, stands: NDArray[np.bool_], fps: float) -> Array:
    """(3, K, 3) the plan with its first and second derivative; planned at a lower rate and splined."""
    every = max(1, round(fps / _PLAN_FPS))
    times = np.arange(len(com)) / fps
    flat, bears = soles.reshape(len(com), -1, 3), stands.reshape(len(com), -1)
    plan = plan_com(com[::every], flat[::every], bears[::every], fps / every)
    spline = make_interp_spline(times[::every], plan, k=3)
    at = np.minimum(times, times[::every][-1])
    return np.stack([spline(at), spline(at, 1), spline(at, 2)])


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
