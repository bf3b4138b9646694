"""Batched kinematics against MuJoCo and finite differences."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics, LinkPoses
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.rotations import quat_mul, quat_to_matrix, rotvec_to_quat

PROFILE = get_profile("g1_23dof")
KINEMATICS = Kinematics(PROFILE)
LEVEL = np.array([[1.0, 0, 0, 0]])


def random_state(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    quat = rng.normal(size=(n, 4))
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    return rng.normal(size=(n, 3)), quat, rng.uniform(PROFILE.joint_lower, PROFILE.joint_upper, (n, 23))


def random_velocity(n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.normal(size=(n, 3)), rng.normal(size=(n, 23))


def test_poses_and_velocities_equal_mujoco() -> None:
    model = build_model(PROFILE, PhysicsSettings())
    data = mujoco.MjData(model)
    pos, quat, joint_pos = random_state(20)
    lin, ang, joint_vel = random_velocity(20)
    states = KINEMATICS.forward_with_velocities(pos, quat, joint_pos, lin, ang, joint_vel)
    velocity = np.zeros(6)
    for i in range(20):
        data.qpos[:] = np.r_[pos[i], quat[i], joint_pos[i]]
        data.qvel[:] = np.r_[lin[i], quat_to_matrix(quat[i]).T @ ang[i], joint_vel[i]]
        mujoco.mj_forward(model, data)
        for j, name in enumerate(PROFILE.link_names):
            virtual = j >= len(PROFILE.links)
            found = data.site(name) if virtual else data.body(name)
            kind = mujoco.mjtObj.mjOBJ_SITE if virtual else mujoco.mjtObj.mjOBJ_XBODY
            mujoco.mj_objectVelocity(model, data, kind, found.id, velocity, 0)
            np.testing.assert_allclose(states.pos[i, j], found.xpos, atol=1e-9)
            np.testing.assert_allclose(states.rot[i, j], found.xmat.reshape(3, 3), atol=1e-9)
            np.testing.assert_allclose(states.ang_vel[i, j], velocity[:3], atol=1e-9)
            np.testing.assert_allclose(states.lin_vel[i, j], velocity[3:], atol=1e-9)


def test_quaternions_agree_with_matrices() -> None:
    poses = KINEMATICS.forward(*random_state(5))
    assert poses.quat.shape == (5, 27, 4)
    np.testing.assert_allclose(quat_to_matrix(poses.quat), poses.rot, atol=1e-12)


def test_head_stands_above_the_torso_of_a_leaning_robot() -> None:
    """A virtual link's offset turns with its parent: lying on the face, the head is 0.42 m ahead of the torso."""
    face_down = rotvec_to_quat(np.array([[0.0, np.pi / 2, 0.0]]))
    spin = np.array([[0.0, 2.0, 0.0]])
    states = KINEMATICS.forward_with_velocities(
        np.zeros((1, 3)), face_down, np.zeros((1, 23)), np.zeros((1, 3)), spin, np.zeros((1, 23))
    )
    torso, head = PROFILE.link_index("torso_link"), PROFILE.link_index("head_link")
    np.testing.assert_allclose(states.pos[0, head] - states.pos[0, torso], [0.42, 0, 0], atol=1e-12)
    np.testing.assert_allclose(states.lin_vel[0, head] - states.lin_vel[0, torso], [0, 0, -0.84], atol=1e-12)


def test_velocities_are_time_derivatives_of_poses() -> None:
    pos, quat, joint_pos = random_state(8)
    lin, ang, joint_vel = random_velocity(8)
    states = KINEMATICS.forward_with_velocities(pos, quat, joint_pos, lin, ang, joint_vel)
    h = 1e-6

    def at(t: float) -> LinkPoses:
        return KINEMATICS.forward(pos + t * lin, quat_mul(rotvec_to_quat(t * ang), quat), joint_pos + t * joint_vel)

    before, after = at(-h), at(h)
    np.testing.assert_allclose(states.lin_vel, (after.pos - before.pos) / (2 * h), atol=1e-7)
    skew = (after.rot - before.rot) / (2 * h) @ states.rot.swapaxes(-1, -2)
    found = np.stack([skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]], axis=-1)
    np.testing.assert_allclose(states.ang_vel, found, atol=1e-7)


def test_jacobian_is_the_derivative_of_points() -> None:
    pos, quat, joint_pos = random_state(3)
    link_index = PROFILE.link_indices(["left_ankle_roll_link", "torso_link", "pelvis", "right_hand_link", "head_link"])
    offset = np.random.default_rng(4).normal(scale=0.1, size=(5, 3))
    jacobian = KINEMATICS.jacobian(KINEMATICS.forward(pos, quat, joint_pos), link_index, offset)
    assert jacobian.shape == (3, 5, 3, 29)
    h = 1e-6
    for column in range(29):
        step = np.zeros(29)
        step[column] = h
        ends = []
        for sign in (1, -1):
            v = sign * step
            moved = (pos + v[:3], quat_mul(rotvec_to_quat(v[3:6])[None], quat), joint_pos + v[6:])
            ends.append(KINEMATICS.points(KINEMATICS.forward(*moved), link_index, offset))
        np.testing.assert_allclose(jacobian[..., column], (ends[0] - ends[1]) / (2 * h), atol=1e-7)


def test_sole_points_are_the_lowest_points_of_the_foot_spheres() -> None:
    poses = KINEMATICS.forward(np.zeros((1, 3)), LEVEL, PROFILE.default_joint_pos[None])
    soles = KINEMATICS.sole_points(poses)
    assert soles.shape == (1, 2, 4, 3)
    feet = poses.pos[:, PROFILE.foot_index]
    np.testing.assert_allclose(soles[..., 2] - feet[..., None, 2], -0.035, atol=1e-12)
    np.testing.assert_allclose(soles[0, 0, :, 0] - feet[0, 0, 0], [-0.05, -0.05, 0.12, 0.12], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_kept_and_arrays_are_contiguous(dtype: type) -> None:
    inputs = [a.astype(dtype) for a in (*random_state(7), *random_velocity(7))]
    states = KINEMATICS.forward_with_velocities(*inputs)
    exact = KINEMATICS.forward_with_velocities(*(a.astype(np.float64) for a in inputs))
    for field in ("pos", "rot", "quat", "lin_vel", "ang_vel"):
        found = getattr(states, field)
        assert found.dtype == dtype
        assert found.flags.c_contiguous
        np.testing.assert_allclose(found, getattr(exact, field), atol=2e-5)
    assert KINEMATICS.jacobian(states, np.array([0, 5]), np.zeros((2, 3), dtype)).dtype == dtype


def test_batch_equals_single_states() -> None:
    pos, quat, joint_pos = random_state(6)
    together = KINEMATICS.forward(pos, quat, joint_pos)
    for i in range(6):
        alone = KINEMATICS.forward(pos[i : i + 1], quat[i : i + 1], joint_pos[i : i + 1])
        np.testing.assert_allclose(alone.pos[0], together.pos[i], atol=1e-13)
