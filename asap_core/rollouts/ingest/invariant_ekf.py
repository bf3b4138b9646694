"""Base motion without mocap: a contact-aided right-invariant extended Kalman filter (Hartley et al., IJRR 2020).

State: orientation R, velocity v and position p of the IMU, position d of each foot, gyro and accelerometer bias. The
error is η = X̂ X⁻¹ in the group SE₂₊F(3), so a standing foot's innovation, R̂ h + p̂ − d̂, is linear in it whatever the
state. Heading and position drift, for nothing measures them; what comes out is an estimate and is marked so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asap_core.rollouts.ingest.base_velocity import BaseMotion
from asap_core.rollouts.ingest.foot_contact import Feet
from asap_core.rotations import Array, quat_to_matrix

GRAVITY = np.array([0.0, 0.0, -9.81])


@dataclass(frozen=True)
class FilterNoise:
    """Standard deviations, of one sample where nothing else is said; chosen on the walking twin."""

    gyro: float = 0.01
    """rad/s."""
    accel: float = 0.2
    """m/s²."""
    gyro_bias: float = 1e-5
    """rad/s a sample."""
    accel_bias: float = 1e-4
    """m/s² a sample."""
    foot_slip: float = 0.3
    """m/s of a standing foot."""
    foot_place: float = 0.02
    """m: encoders, and a sole that rolls."""
    start_velocity: float = 0.3
    """m/s."""
    start_tilt: float = 0.05
    """rad."""
    start_gyro_bias: float = 0.02
    """rad/s."""
    start_accel_bias: float = 0.1
    """m/s²."""


def estimate_base(
    time: Array,
    ang_vel: Array,
    lin_acc: Array,
    start_quat: Array,
    feet: Feet,
    noise: FilterNoise | None = None,
    imu_offset: Array | None = None,
) -> BaseMotion:
    """The base at every sample.

    Args:
        time: (N,) s. ang_vel, lin_acc: (N, 3) rad/s and m/s² (specific force) of the IMU, whose axes are the base's.
        start_quat: (4,) wxyz at the first sample; its heading is the world's.
        feet: places in the base's frame and contacts at the samples.
        imu_offset: (3,) m, the IMU in the base's frame.

    Returns:
        kind `estimated`; position from (0, 0, 0) at the first sample.
    """
    offset = np.zeros(3) if imu_offset is None else np.asarray(imu_offset, float)
    state = _Filter(start_quat, feet.place.shape[1], noise or FilterNoise())
    steps = np.diff(time)
    rotation, velocity = np.empty((len(time), 3, 3)), np.empty((len(time), 3))
    position, spin = np.empty((len(time), 3)), np.empty((len(time), 3))
    reach = feet.place - offset
    for k in range(len(time)):
        if k:
            gyro, force = (ang_vel[k - 1] + ang_vel[k]) / 2, (lin_acc[k - 1] + lin_acc[k]) / 2
            state.carry(gyro, force, float(steps[k - 1]))
        state.stand(reach[k], feet.contact[k])
        rotation[k], velocity[k], position[k] = state.rotation, state.velocity, state.position
        spin[k] = state.rotation @ (ang_vel[k] - state.gyro_bias)
    arm = -rotation @ offset
    place = position + arm
    return BaseMotion(
        "estimated",
        place - place[0],
        _quats(rotation),
        velocity + np.cross(spin, arm),
        spin,
        np.ones(len(time), dtype=bool),
        np.zeros(3),
    )


class _Filter:
    """The state, and the covariance of ξ = (rotation, velocity, position, feet, gyro bias, accelerometer bias)."""

    def __init__(self, quat: Array, num_feet: int, noise: FilterNoise) -> None:
        self.rotation: Array = quat_to_matrix(np.asarray(quat, float))
        self.velocity: Array = np.zeros(3)
        self.position: Array = np.zeros(3)
        self.gyro_bias: Array = np.zeros(3)
        self.accel_bias: Array = np.zeros(3)
        self._feet = np.zeros((num_feet, 3))
        self._standing = [False] * num_feet
        self._noise = noise
        self._size = 9 + 3 * num_feet + 6
        self._bg, self._ba = slice(self._size - 6, self._size - 3), slice(self._size - 3, self._size)
        start = np.zeros(self._size)
        start[:2], start[3:6] = noise.start_tilt, noise.start_velocity
        start[self._bg], start[self._ba] = noise.start_gyro_bias, noise.start_accel_bias
        self._cov = np.diag(start**2)

    def carry(self, ang_vel: Array, lin_acc: Array, dt: float) -> None:
        """One step of the IMU, mean rates over `dt` s."""
        turn, v, p = self.rotation, self.velocity, self.position
        rates, force = ang_vel - self.gyro_bias, lin_acc - self.accel_bias
        middle = turn @ _turn(rates * dt / 2)
        acc = middle @ force + GRAVITY
        self._spread(dt)
        self.position = p + v * dt + acc * dt**2 / 2
        self.velocity = v + acc * dt
        self.rotation = turn @ _turn(rates * dt)

    def _spread(self, dt: float) -> None:
        """The covariance over a step, by the state at its start."""
        n, size = self._noise, self._size
        lever = np.zeros((size, 6))
        lever[:3, :3] = self.rotation
        lever[3:6, :3], lever[3:6, 3:] = _cross(self.velocity) @ self.rotation, self.rotation
        lever[6:9, :3] = _cross(self.position) @ self.rotation
        for k, foot in enumerate(self._feet):
            lever[9 + 3 * k : 12 + 3 * k, :3] = _cross(foot) @ self.rotation
        step = np.eye(size)
        step[3:6, :3] = _cross(GRAVITY) * dt
        step[6:9, :3] = _cross(GRAVITY) * dt**2 / 2
        step[6:9, 3:6] = np.eye(3) * dt
        step[:, size - 6 :] -= lever * dt
        added = (lever * np.repeat([n.gyro**2, n.accel**2], 3)) @ lever.T * dt**2
        place = np.arange(9, size - 6)
        added[place, place] += (n.foot_slip * dt) ** 2
        bias = np.arange(size - 6, size)
        added[bias, bias] += np.repeat([n.gyro_bias**2, n.accel_bias**2], 3)
        self._cov = step @ self._cov @ step.T + added

    def stand(self, reach: Array, contact: Array) -> None:
        """Feet (F, 3) from the IMU in its frame: who stands corrects the state, who touches down is placed."""
        for k, stands in enumerate(contact.tolist()):
            if stands and not self._standing[k]:
                self._place(k, reach[k])
            elif stands:
                self._correct(k, reach[k])
            self._standing[k] = stands

    def _place(self, foot: int, reach: Array) -> None:
        at = slice(9 + 3 * foot, 12 + 3 * foot)
        self._feet[foot] = self.position + self.rotation @ reach
        self._cov[at, :] = self._cov[6:9, :]
        self._cov[:, at] = self._cov[:, 6:9]
        self._cov[at, at] = self._cov[6:9, 6:9] + np.eye(3) * self._noise.foot_place**2

    def _correct(self, foot: int, reach: Array) -> None:
        at = slice(9 + 3 * foot, 12 + 3 * foot)
        innovation = self.rotation @ reach + self.position - self._feet[foot]
        seen = self._cov[6:9, :] - self._cov[at, :]
        size = seen[:, 6:9] - seen[:, at] + np.eye(3) * self._noise.foot_place**2
        gain = np.linalg.solve(size, seen).T
        self._apply(-gain @ innovation)
        self._cov = self._cov - gain @ seen
        self._cov = (self._cov + self._cov.T) / 2

    def _apply(self, change: Array) -> None:
        """X ← exp(change) X, biases added."""
        turn, left = _turn(change[:3]), _left_jacobian(change[:3])
        self.rotation = turn @ self.rotation
        self.velocity = turn @ self.velocity + left @ change[3:6]
        self.position = turn @ self.position + left @ change[6:9]
        self._feet = self._feet @ turn.T + change[9 : self._size - 6].reshape(-1, 3) @ left.T
        self.gyro_bias = self.gyro_bias + change[self._bg]
        self.accel_bias = self.accel_bias + change[self._ba]


def _turn(rotvec: Array) -> Array:
    """(3, 3)."""
    angle = float(np.sqrt(rotvec @ rotvec))
    k = _cross(rotvec)
    if angle < 1e-8:
        return np.eye(3) + k
    out: Array = np.eye(3) + np.sin(angle) / angle * k + (1 - np.cos(angle)) / angle**2 * (k @ k)
    return out


def _left_jacobian(rotvec: Array) -> Array:
    """(3, 3) of SO(3)."""
    angle = float(np.sqrt(rotvec @ rotvec))
    k = _cross(rotvec)
    if angle < 1e-6:
        return np.eye(3) + k / 2
    out: Array = np.eye(3) + (1 - np.cos(angle)) / angle**2 * k + (angle - np.sin(angle)) / angle**3 * (k @ k)
    return out


def _cross(v: Array) -> Array:
    x, y, z = v.tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _quats(rotation: Array) -> Array:
    """(N, 4) wxyz of matrices (N, 3, 3)."""
    from scipy.spatial.transform import Rotation

    out: Array = Rotation.from_matrix(rotation).as_quat(scalar_first=True)
    return out
