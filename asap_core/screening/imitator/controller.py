"""Whole-body controller: one quadratic programme per control step over accelerations and contact forces.

Costs are squared errors of accelerations wanted for the centre of mass, the feet, the pelvis' orientation and the
joints. Equations of motion hold exactly; contact forces stay in the friction cones, torques in the drives' limits, and
a residual wrench on the root, if any is allowed, in its bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import daqp
import mujoco
import numpy as np
from numpy.typing import NDArray

from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array, quat_conj, quat_mul, quat_to_matrix, quat_to_rotvec, yaw_quat
from asap_core.screening.dynamics import GRAVITY, cone_edges

_FRICTION = 0.7
_TOUCH = 0.01
"""m: a sole point lower than this touches."""
_COM_GAIN, _FOOT_GAIN, _TURN_GAIN, _JOINT_GAIN = 60.0, 250.0, 120.0, 120.0
"""1/s² per error; dampings are critical."""
_COM, _STANCE, _SWING, _TURN, _JOINT = 200.0, 200.0, 10.0, 4.0, 0.3
"""Weights of the squared acceleration errors."""
_FORCE, _WRENCH, _ACCELERATION = 1e-5, 1e-2, 1e-4


@dataclass(frozen=True)
class Wanted:
    """What the controller follows in one step; world frame."""

    com: Array
    """(3, 3) position, velocity and acceleration."""
    root_quat: Array
    root_spin: Array
    """(3,) angular velocity in the root's frame."""
    joint: Array
    """(3, J) position, velocity and acceleration."""
    foot_pos: Array
    """(3, F, 3) position, velocity and acceleration of the foot links."""
    foot_quat: Array
    """(F, 4)."""
    foot_spin: Array
    """(F, 3) angular velocity."""
    stands: NDArray[np.bool_]
    """(F, S) sole points that are planned to bear load."""


@dataclass(frozen=True)
class Command:
    """What the controller found."""

    torque: Array
    """(J,) N m."""
    wrench: Array
    """(6,) residual force (world, N) and torque (root's frame, N m) on the root."""


class Controller:
    """For one robot in one MuJoCo model.

    Args:
        model: as `robots.mjcf.build_model` makes it.
        profile: the robot.
        root_force: bound of each component of the residual force, as a share of the weight; the torque's arm is 0.5 m.
    """

    def __init__(self, model: mujoco.MjModel, profile: RobotProfile, root_force: float) -> None:
        self._model = model
        self._profile = profile
        self._feet = [model.body(name).id for name in profile.foot_links]
        self._soles = profile.sole_points
        self.mass = float(model.body_subtreemass[1])
        bound = root_force * self.mass * GRAVITY
        self._bound = np.array([bound] * 3 + [0.5 * bound] * 3)
        self._edges = cone_edges(_FRICTION)

    def solve(self, data: mujoco.MjData, wanted: Wanted) -> Command:
        """Torques for the present state of `data`, whose positions and velocities are up to date (`mj_forward`)."""
        model, nv = self._model, self._model.nv
        inertia = _inertia(model, data)
        bias = data.qfrc_bias.copy()
        columns = self._contact_columns(data, wanted.stands)
        count = columns.shape[1]
        rows, targets, weights = self._tasks(data, wanted, inertia, bias, count > 0)
        hessian = np.zeros((nv + count, nv + count))
        gradient = np.zeros(nv + count)
        hessian[:nv, :nv] = (rows.T * weights) @ rows
        gradient[:nv] = -(rows.T * weights) @ targets
        # Root wrench: inertia qdd + bias - columns f, first six rows.
        dynamics = np.concatenate([inertia, -columns], axis=1)
        hessian += _WRENCH * dynamics[:6].T @ dynamics[:6]
        gradient += _WRENCH * dynamics[:6].T @ bias[:6]
        hessian[np.arange(nv), np.arange(nv)] += _ACCELERATION
        hessian[np.arange(nv, nv + count), np.arange(nv, nv + count)] += _FORCE
        limit = np.concatenate([self._bound, self._profile.joint_torque_limit])
        upper = np.concatenate([np.full(nv, 1e5), np.full(count, 1e5), limit - bias])
        lower = np.concatenate([np.full(nv, -1e5), np.zeros(count), -limit - bias])
        solved, _, flag, _ = daqp.solve(hessian, gradient, dynamics, upper, lower)
        if flag < 0:
            return Command(np.zeros(nv - 6), np.zeros(6))
        force = dynamics @ solved + bias
        return Command(force[6:], force[:6])

    def _contact_columns(self, data: mujoco.MjData, stands: NDArray[np.bool_]) -> Array:
        """(nv, 4 n) generalised force of a unit force along each cone edge at the n bearing points.

        In planned flight every point that touches bears: a foot that leaves late or lands early.
        """
        may_bear = stands if stands.any() else np.ones_like(stands)
        columns = [np.empty((self._model.nv, 0))]
        for foot, body in enumerate(self._feet):
            rotation = data.xmat[body].reshape(3, 3)
            points = data.xpos[body] + self._soles[foot] @ rotation.T
            for point in points[may_bear[foot] & (points[:, 2] < _TOUCH)]:
                jacobian = np.zeros((3, self._model.nv))
                mujoco.mj_jac(self._model, data, jacobian, None, point, body)
                columns.append((self._edges @ jacobian).T)
        return np.concatenate(columns, axis=1)

    def _tasks(
        self, data: mujoco.MjData, wanted: Wanted, inertia: Array, bias: Array, supported: bool
    ) -> tuple[Array, Array, Array]:
        """Rows (n, nv) over accelerations, their targets (n,) and weights (n,)."""
        nv, parts = self._model.nv, []
        com, com_velocity = data.subtree_com[1], inertia[:3] @ data.qvel / self.mass
        goal = wanted.com[0] + self._stance_drift(data, wanted)
        pull = wanted.com[2] + _pd(_COM_GAIN, goal - com, wanted.com[1] - com_velocity)
        rest = bias[:3] / self.mass - [0.0, 0.0, GRAVITY]
        parts.append((inertia[:3] / self.mass, pull - rest, _COM if supported else 0.0))
        eye = np.eye(nv)
        lean = _pd(_TURN_GAIN, _turn(data.qpos[3:7], wanted.root_quat), wanted.root_spin - data.qvel[3:6])
        parts.append((eye[3:6], lean, _TURN))
        joint = wanted.joint[2] + _pd(_JOINT_GAIN, wanted.joint[0] - data.qpos[7:], wanted.joint[1] - data.qvel[6:])
        parts.append((eye[6:], joint, _JOINT))
        parts += [self._foot_task(data, wanted, foot) for foot in range(len(self._feet))]
        rows = np.concatenate([part[0] for part in parts])
        targets = np.concatenate([part[1] for part in parts])
        weights = np.concatenate([np.full(len(part[0]), part[2]) for part in parts])
        return rows, targets, weights

    def _stance_drift(self, data: mujoco.MjData, wanted: Wanted) -> Array:
        """(3,) how far the standing feet are from where the clip has them, horizontally: the plan moves along."""
        stands = wanted.stands.any(axis=1)
        if not stands.any():
            return np.zeros(3)
        drift = (data.xpos[self._feet] - wanted.foot_pos[0])[stands].mean(axis=0)
        return np.asarray(drift * (1.0, 1.0, 0.0))

    def _foot_task(self, data: mujoco.MjData, wanted: Wanted, foot: int) -> tuple[Array, Array, float]:
        model, body = self._model, self._feet[foot]
        jacobian, drift = np.zeros((6, model.nv)), np.zeros((6, model.nv))
        mujoco.mj_jac(model, data, jacobian[:3], jacobian[3:], data.xpos[body], body)
        mujoco.mj_jacDot(model, data, drift[:3], drift[3:], data.xpos[body], body)
        velocity, quat = jacobian @ data.qvel, data.xquat[body]
        points = data.xpos[body] + self._soles[foot] @ data.xmat[body].reshape(3, 3).T
        touches = bool((points[wanted.stands[foot], 2] < _TOUCH).any())
        spin = quat_to_matrix(quat) @ _turn(quat, wanted.foot_quat[foot])
        if touches:
            if wanted.stands[foot].all():
                spin = quat_to_matrix(quat) @ _turn(quat, yaw_quat(quat))
            linear = -2 * np.sqrt(_FOOT_GAIN) * velocity[:3]
            angular = _pd(_FOOT_GAIN, spin, -velocity[3:])
        else:
            pos, vel, acc = wanted.foot_pos[:, foot]
            linear = acc + _pd(_FOOT_GAIN, pos - data.xpos[body], vel - velocity[:3])
            angular = _pd(_FOOT_GAIN, spin, wanted.foot_spin[foot] - velocity[3:])
        target = np.concatenate([linear, angular]) - drift @ data.qvel
        return jacobian, target, _STANCE if touches else _SWING


def _inertia(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """(nv, nv); row by row, since `mj_fullM` differs between the versions of MuJoCo."""
    out, eye = np.zeros((model.nv, model.nv)), np.eye(model.nv)
    for row, unit in zip(out, eye, strict=True):
        mujoco.mj_mulM(model, data, row, unit)
    return out


def _pd(gain: float, error: Array, rate: Array) -> Array:
    """gain · error plus critical damping of its rate."""
    return np.asarray(gain * error + 2.0 * np.sqrt(gain) * rate)


def _turn(now: Array, to: Array) -> Array:
    """(3,) rotation vector in the frame of `now` that turns it to `to`."""
    return np.asarray(quat_to_rotvec(quat_mul(quat_conj(now), to)))
