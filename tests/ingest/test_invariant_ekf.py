"""The contact-aided invariant filter: a standing robot, a walking one, and the error's own dynamics."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.robots import get_profile
from asap_core.rollouts.ingest.foot_contact import Feet, feel_feet
from asap_core.rollouts.ingest.invariant_ekf import FilterNoise, _Filter, estimate_base
from asap_core.rollouts.ingest.walking_twin import walk
from asap_core.rotations import Array, projected_gravity, rotate_inverse, rotvec_to_quat

_UP = np.array([0.0, 0.0, 9.81])


def _standing(seconds: float, tilt: Array) -> tuple[Array, Array, Array, Feet]:
    """A robot that stands still, its base tilted by a rotation vector (3,)."""
    time = np.arange(0.0, seconds, 2e-3)
    quat = np.tile(rotvec_to_quat(tilt), (len(time), 1))
    places = rotate_inverse(quat[:, None], np.tile([[0.0, 0.1, -0.7], [0.0, -0.1, -0.7]], (len(time), 1, 1)))
    feet = Feet(places, np.full((len(time), 2), 170.0), np.ones((len(time), 2), dtype=bool))
    return time, rotate_inverse(quat, np.tile(_UP, (len(time), 1))), quat, feet


def test_a_standing_robot_stands_and_its_gyro_bias_is_found() -> None:
    time, acc, quat, feet = _standing(6.0, np.array([0.05, -0.08, 0.0]))
    bias = np.array([0.02, -0.01, 0.0])
    base = estimate_base(time, np.tile(bias, (len(time), 1)), acc, quat[0], feet)
    assert base.kind == "estimated"
    late = time > 4.0
    assert np.abs(base.lin_vel[late]).max() < 2e-3
    assert np.abs(base.ang_vel[late, :2]).max() < 2e-3
    assert np.degrees(np.abs(projected_gravity(base.quat[late]) - projected_gravity(quat[late]))).max() < 0.3


def test_a_wrong_start_tilt_is_corrected_by_standing() -> None:
    time, acc, quat, feet = _standing(6.0, np.zeros(3))
    base = estimate_base(time, np.zeros((len(time), 3)), acc, rotvec_to_quat(np.array([0.05, 0.03, 0.0])), feet)
    away = np.abs(projected_gravity(base.quat) - projected_gravity(quat)).max(axis=1)
    assert away[0] > 0.04
    assert away[-1] < 5e-3


def test_free_flight_is_ballistic() -> None:
    """No foot stands and the accelerometer reads nothing: the filter falls as Newton says."""
    time = np.arange(0.0, 0.5, 2e-3)
    feet = Feet(np.zeros((len(time), 2, 3)), np.zeros((len(time), 2)), np.zeros((len(time), 2), dtype=bool))
    zero = np.zeros((len(time), 3))
    base = estimate_base(time, zero, zero, np.array([1.0, 0.0, 0.0, 0.0]), feet)
    np.testing.assert_allclose(base.lin_vel[:, 2], -9.81 * time, atol=1e-9)
    np.testing.assert_allclose(base.pos[:, 2], -0.5 * 9.81 * time**2, atol=1e-9)


def test_the_error_dynamics_are_those_of_the_state() -> None:
    """The covariance of a step, started from one direction, is the outer product of that error after the step."""
    rng = np.random.default_rng(0)
    quiet = FilterNoise(gyro=0, accel=0, gyro_bias=0, accel_bias=0, foot_slip=0)
    rates, force, dt, size = rng.normal(0, 1, 3), rng.normal(0, 3, 3) + _UP, 2e-3, 1e-5

    def started() -> _Filter:
        made = _Filter(rotvec_to_quat(np.array([0.3, -0.2, 0.5])), 2, quiet)
        made.velocity, made.position = np.array([0.4, 0.1, -0.2]), np.array([0.2, 0.3, 0.7])
        made._feet = np.array([[0.1, 0.4, 0.0], [0.3, 0.1, 0.0]])
        return made

    for direction in range(21):
        change = np.zeros(21)
        change[direction] = size
        plain, moved = started(), started()
        moved._apply(change)
        moved._cov = np.outer(change, change)
        expected = moved
        plain.carry(rates, force, dt)
        expected.carry(rates, force, dt)
        error = _error(expected, plain)
        np.testing.assert_allclose(expected._cov, np.outer(error, error), atol=2e-2 * size**2)


def _error(estimate: _Filter, truth: _Filter) -> Array:
    """ξ (21,) of η = X̂ X⁻¹ to first order, and the biases' difference."""
    turn = estimate.rotation @ truth.rotation.T
    xi = [np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2]
    pairs = [(estimate.velocity, truth.velocity), (estimate.position, truth.position)]
    pairs += list(zip(estimate._feet, truth._feet, strict=True))
    xi += [a - turn @ b for a, b in pairs]
    return np.concatenate([*xi, estimate.gyro_bias - truth.gyro_bias, estimate.accel_bias - truth.accel_bias])


@pytest.mark.slow
def test_a_walking_twin_is_estimated() -> None:
    profile = get_profile("g1_23dof")
    w, rng = walk(profile, 12.0, seed=0), np.random.default_rng(0)
    joint_pos = w.joint_pos + rng.normal(0.0, 1e-3, w.joint_pos.shape)
    feet = feel_feet(profile, w.time, w.root_quat, joint_pos, w.joint_torque)
    assert (feet.contact & ~(w.foot_force > 5.0)).mean() < 0.01
    assert feet.contact.mean() > 0.4
    gyro = w.ang_vel + rng.normal(0.0, 5e-3, w.ang_vel.shape) + [0.01, -0.01, 0.005]
    acc = w.lin_acc + rng.normal(0.0, 0.1, w.ang_vel.shape) + [0.05, -0.03, 0.04]
    base = estimate_base(w.time, gyro, acc, w.root_quat[0], feet)
    late = w.time > 2.0
    away = rotate_inverse(base.quat, base.lin_vel) - rotate_inverse(w.root_quat, w.root_lin_vel)
    assert np.sqrt((away[late] ** 2).mean()) < 0.035
    tilt = np.abs(projected_gravity(base.quat) - projected_gravity(w.root_quat))[late]
    assert np.degrees(tilt).max() < 2.0


def test_the_load_of_a_standing_robot_is_its_weight() -> None:
    """Torques that hold two feet at half the weight each, by the transposed Jacobian."""
    profile = get_profile("g1_23dof")
    from asap_core.robots.kinematics import Kinematics

    kinematics = Kinematics(profile)
    pos = profile.default_joint_pos[None]
    quat = np.array([[1.0, 0.0, 0.0, 0.0]])
    poses = kinematics.forward(np.zeros((1, 3)), quat, pos)
    slope = kinematics.jacobian(poses, profile.foot_index, profile.sole_points.mean(axis=1))[0, :, :, 6:]
    # The drives balance the ground's push of 170 N on each foot.
    torque = -(slope[:, 2, :] * 170.0).sum(axis=0)[None]
    time = np.arange(20) * 2e-3
    feet = feel_feet(profile, time, np.tile(quat, (20, 1)), np.tile(pos, (20, 1)), np.tile(torque, (20, 1)))
    np.testing.assert_allclose(feet.load, 170.0, rtol=1e-3)
    assert feet.contact[5:].all()
    assert not feet.contact[:4].any()
    np.testing.assert_allclose(feet.place[0, :, 1], [0.118, -0.118], atol=0.01)
