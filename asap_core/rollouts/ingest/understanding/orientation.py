"""Which of the four numbers of a quaternion is the scalar, and which way it turns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asap_core.errors import StageError
from asap_core.evidence import Decision, decide
from asap_core.rollouts.ingest.sync import synchronise
from asap_core.rollouts.ingest.understanding.rates import WINDOW, turning, windows
from asap_core.rotations import Array, quat_conj, rotate, slerp

ORDERS = ("wxyz", "xyzw")
_IMU_SCORE, _IMU_MARGIN = 0.8, 0.2
_TURNS_RAD = 2e-3
"""rad rms over a window; below, the gyro is not asked."""
_UPRIGHT_RAD, _UPRIGHT_MARGIN = np.radians(30.0), np.radians(20.0)
_RPY_RAD, _RPY_MARGIN = 0.01, 0.05
_VECTOR_R2, _VECTOR_MARGIN = 0.9, float(np.log(1.5))
_VECTOR_SCORE = -0.5 * float(np.log(1 - _VECTOR_R2))
_TAKE_S = 60.0


def as_wxyz(quat: Array, order: str) -> Array:
    """Unit quaternions (N, 4) wxyz, body to world, of stored ones; `order` may end in ' inverse'."""
    quat = np.asarray(quat, float)
    quat = quat / np.maximum(np.linalg.norm(quat, axis=1, keepdims=True), 1e-12)
    quat = np.roll(quat, 1, axis=1) if order.startswith("xyzw") else quat
    return quat_conj(quat) if order.endswith("inverse") else quat


def imu_order(
    question: str,
    option: str,
    time: Array,
    quat: Array,
    lin_acc: Array | None,
    ang_vel: Array | None,
    rpy: Array | None,
) -> Decision:
    """By the IMU's own roll, pitch, yaw; else by gravity (or being upright) and by what its gyro says of the turning.

    Gravity alone takes a reading that is a half turn about the vertical for right, the gyro alone one that is turned
    on its head.
    """
    good = np.isfinite(quat).all(axis=1)
    if rpy is not None:
        found = _by_rpy(question, option, quat[good], np.asarray(rpy, float)[good])
        if found.answer is not None:
            return found
    acc = np.tile([0.0, 0.0, 1.0], (len(quat), 1)) if lin_acc is None else np.asarray(lin_acc, float)
    good &= np.isfinite(acc).all(axis=1)
    size = np.linalg.norm(acc[good], axis=1).mean()
    turning_r2 = {} if ang_vel is None else _turning_r2(time[good], quat[good], np.asarray(ang_vel, float)[good])
    scores = {}
    for order in turning_r2 or ORDERS:
        up = float(rotate(as_wxyz(quat[good], order), acc[good]).mean(axis=0)[2] / size)
        scores[order] = (up + max(turning_r2[order], -1.0)) / 2 if turning_r2 else up
    what = "accelerometer" if lin_acc is not None else "z axis"
    how = f"share of the {what} that points up in the world" + (", mean with R² of the gyro" if turning_r2 else "")
    return decide(question, scores, how, option, _IMU_MARGIN, _IMU_SCORE)


def _turning_r2(time: Array, quat: Array, ang_vel: Array) -> dict[str, float]:
    """Share of the turning that the gyro explains, by order and sense; empty where nothing turns."""
    out = {}
    for order in (*ORDERS, *(f"{order} inverse" for order in ORDERS)):
        change, integral = windows(time, turning(as_wxyz(quat, order)), ang_vel)
        if len(change) < WINDOW or np.sqrt((change**2).mean()) < _TURNS_RAD:
            return {}
        scale = max((change * integral).sum() / max((integral**2).sum(), 1e-12), 0.0)
        out[order] = 1 - float(((change - scale * integral) ** 2).sum() / (change**2).sum())
    return out


def _by_rpy(question: str, option: str, quat: Array, rpy: Array) -> Decision:
    """Largest difference between stored and computed roll and pitch and yaw, rad; reads roll–pitch–yaw as Unitree."""
    scores = {}
    for order in ORDERS:
        w, x, y, z = as_wxyz(quat, order).T
        roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
        pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))
        yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        away = np.stack([roll, pitch, yaw], axis=1) - rpy
        away = np.abs((away + np.pi) % (2 * np.pi) - np.pi).max(axis=1)
        scores[order] = -float(np.percentile(away, 95))
    return decide(question, scores, "minus the distance from imu rpy, rad", option, _RPY_MARGIN, -_RPY_RAD)


def upright_order(question: str, option: str, quat: Array, up: Array) -> Decision:
    """By the mean angle of the body's `up` (3,) to the world's, which is below 30° for what walks."""
    scores = {}
    for order in ORDERS:
        along = rotate(as_wxyz(quat, order), up) @ up
        scores[order] = -float(np.arccos(np.clip(along, -1, 1)).mean())
    return decide(question, scores, "minus the mean tilt, rad", option, _UPRIGHT_MARGIN, -_UPRIGHT_RAD)


@dataclass(frozen=True)
class AgainstImu:
    """A pose stream beside an IMU, its quaternions read in each order."""

    r2: dict[str, float]
    """Vector R² of the gyro by order."""
    gravity: dict[str, Array]
    """By order, mean specific force (3,) in the mocap's world; only where the clocks could be matched."""


def against_imu(time: Array, quat: Array, imu_time: Array, ang_vel: Array, lin_acc: Array | None) -> AgainstImu:
    """Match the clocks for each reading of the quaternions, on the first minute.

    Args:
        time, quat: (M,) s and (M, 4) as stored. imu_time, ang_vel, lin_acc: (N,) s, (N, 3) rad/s, (N, 3) m/s².
    """
    good = np.isfinite(quat).all(axis=1) & (time < time[0] + _TAKE_S)
    near = imu_time < imu_time[0] + _TAKE_S
    r2: dict[str, float] = {}
    gravity: dict[str, Array] = {}
    for order in ORDERS:
        wxyz = as_wxyz(quat[good], order)
        try:
            sync = synchronise(imu_time[near], ang_vel[near], time[good], wxyz)
        except StageError:
            r2[order] = 0.0
            continue
        r2[order] = sync.vector_r2
        if lin_acc is not None and sync.vector_r2 >= _VECTOR_R2:
            at = sync.clock.to_mocap(imu_time[near])
            inside = (at > time[good][0]) & (at < time[good][-1])
            body = rotate(quat_conj(sync.mount_quat), lin_acc[near][inside])
            gravity[order] = rotate(slerp(wxyz, time[good], at[inside]), body).mean(axis=0)
    return AgainstImu(r2, gravity)


def pose_order(question: str, option: str, quat: Array, up: Array, imu: AgainstImu | None) -> Decision:
    """By how well the mocap's turning explains an IMU's, whatever its mount; where both readings do, as they may when
    a robot mostly turns on the spot, by gravity; else by being upright about `up` (3,)."""
    if imu is not None:
        scores = {order: -0.5 * float(np.log(max(1 - r2, 1e-9))) for order, r2 in imu.r2.items()}
        words = ", ".join(f"{order} {r2:.3f}" for order, r2 in imu.r2.items())
        how = f"ln of the gyro over what the mocap leaves of it; R² {words}"
        found = decide(question, scores, how, option, _VECTOR_MARGIN, _VECTOR_SCORE)
        if found.answer is None and len(imu.gravity) == len(ORDERS):
            found = _by_gravity(question, option, imu.gravity, up)
        if found.answer is not None:
            return found
    return upright_order(question, option, quat[np.isfinite(quat).all(axis=1)], up)


def _by_gravity(question: str, option: str, gravity: dict[str, Array], up: Array) -> Decision:
    """By the direction in which the IMU's mean force points in the mocap's world."""
    scores = {order: float(force @ up / np.linalg.norm(force)) for order, force in gravity.items()}
    how = "share of the accelerometer that points up in the mocap's world"
    return decide(question, scores, how, option, _IMU_MARGIN, _IMU_SCORE)
