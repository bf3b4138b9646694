"""A simulated G1 that steps on the spot and forward with footfalls: truth for base velocity and for the estimator.

A guide holds it upright, drives it forward and carries some of its weight; footfalls are the contact's own. It is a
test stand, no policy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array, quat_to_rotvec, rotate_inverse

STEP_HZ = 500.0
GRAVITY = np.array([0.0, 0.0, 9.81])
_STRIDE_HZ = 1.4
_LIFT = 0.45
"""rad of knee bend, halved at hip and ankle."""
_HEIGHT = 0.74
"""m; below, the guide carries a part of the weight."""
_SPEED = 0.4
"""m/s that the guide asks for."""


@dataclass(frozen=True)
class Walk:
    """N states 2 ms apart; quaternions wxyz, velocities in the world at the pelvis' origin."""

    time: Array
    root_pos: Array
    root_quat: Array
    root_lin_vel: Array
    ang_vel: Array
    """(N, 3) rad/s in the pelvis' frame."""
    lin_acc: Array
    """(N, 3) m/s², specific force in the pelvis' frame, mean of the 4 ms around the state."""
    joint_pos: Array
    joint_vel: Array
    joint_torque: Array
    foot_force: Array
    """(N, F) N, vertical."""


def walk(profile: RobotProfile, seconds: float, seed: int = 0) -> Walk:
    """Walk for `seconds`, with steps of changing height and rhythm."""
    import mujoco

    physics = PhysicsSettings(physics_dt=1 / STEP_HZ, control_dt=0.02)
    model = build_model(profile, physics)
    data = mujoco.MjData(model)
    data.qpos[:7] = [0, 0, 0.79, 1, 0, 0, 0]
    data.qpos[7:] = profile.default_joint_pos
    rng = np.random.default_rng(seed)
    gait = _Gait(profile, rng)
    pelvis = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, profile.link_names[0])
    feet = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name) for name in profile.foot_links]
    rows = []
    for step in range(round(seconds * STEP_HZ)):
        time = step / STEP_HZ
        if step % 10 == 0:
            data.ctrl[:] = gait.target(time)
        data.xfrc_applied[pelvis] = _guide(data.qpos, data.qvel, time)
        mujoco.mj_step(model, data)
        force = np.zeros(len(feet))
        wrench = np.zeros(6)
        for k in range(data.ncon):
            mujoco.mj_contactForce(model, data, k, wrench)
            body = model.geom_bodyid[data.contact[k].geom[1]]
            if body in feet:
                force[feet.index(body)] += wrench[0]
        rows.append((data.qpos.copy(), data.qvel.copy(), data.actuator_force.copy(), force))
    qpos, qvel, torque, force = (np.stack(column) for column in zip(*rows, strict=True))
    # A step moves the place by the speed it ends with, so a speed belongs half a step before its state.
    qvel[:-1] = (qvel[:-1] + qvel[1:]) / 2
    quat = qpos[:, 3:7] / np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    return Walk(
        time=(np.arange(len(rows)) + 1) / STEP_HZ,
        root_pos=qpos[:, :3],
        root_quat=quat,
        root_lin_vel=qvel[:, :3],
        ang_vel=qvel[:, 3:6],
        lin_acc=rotate_inverse(quat, np.gradient(qvel[:, :3], 1 / STEP_HZ, axis=0) + GRAVITY),
        joint_pos=qpos[:, 7:],
        joint_vel=qvel[:, 6:],
        joint_torque=torque,
        foot_force=force,
    )


class _Gait:
    """Targets of a robot that lifts its feet in turn."""

    def __init__(self, profile: RobotProfile, rng: np.random.Generator) -> None:
        self._default = profile.default_joint_pos
        self._phases = rng.uniform(0, 2 * np.pi, 3)
        self._index = {
            side: [profile.joint_index(f"{side}_{part}_joint") for part in ("hip_pitch", "knee", "ankle_pitch")]
            for side in ("left", "right")
        }

    def target(self, time: float) -> Array:
        """(J,) rad."""
        out: Array = self._default.copy()
        phase = 2 * np.pi * _STRIDE_HZ * time + 0.3 * np.sin(0.7 * time + self._phases[0])
        height = _LIFT * (1 + 0.3 * np.sin(0.9 * time + self._phases[1]))
        for side, shift in (("left", 0.0), ("right", np.pi)):
            lift = height * max(0.0, float(np.sin(phase + shift))) ** 1.5 * min(time, 1.0)
            hip, knee, ankle = self._index[side]
            out[hip] -= lift + 0.12 * np.sin(phase + shift - 0.6) * min(time, 1.0)
            out[knee] += 2 * lift
            out[ankle] -= lift
        return out


def _guide(qpos: Array, qvel: Array, time: float) -> Array:
    """Force and torque (6,) in the world that keep the pelvis upright, on its heading and moving."""
    heading = 0.5 * np.sin(0.5 * time)
    away = quat_to_rotvec(np.asarray(qpos[3:7], float))
    wanted = np.array([0.06 * np.sin(2.2 * time), 0.05 * np.sin(3.1 * time), heading])
    torque = 250.0 * (wanted - away) - 25.0 * np.asarray(qvel[3:6])
    force = 120.0 * (_SPEED * np.array([np.cos(heading), np.sin(heading), 0.0]) * min(time, 1.0) - qvel[:3])
    force[2] = max(0.0, 1500.0 * (_HEIGHT - qpos[2]))
    return np.concatenate([force, torque])
