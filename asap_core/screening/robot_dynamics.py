"""What a robot's motion asks of the ground and of its drives, by MuJoCo's inverse dynamics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from asap_core.motions.robot import RobotMotion
from asap_core.robots.inverse_dynamics import inverse_dynamics, robot_mass
from asap_core.robots.kinematics import Kinematics, LinkPoses
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array, quat_to_matrix, rotate_inverse
from asap_core.screening.dynamics import SMOOTHING, Demand, angular_velocity


@dataclass(frozen=True)
class RobotDemand:
    """In T frames."""

    contact: Demand
    """Per kg: what the contacts must give."""
    mass: float
    """kg."""
    free_torque: Array
    """(T, J) N m that the drives must give if no contact pushes."""
    sole_jacobian: Array
    """(T, P, 3, J) of the sole points by the joints, m/rad."""

    def torque(self, force: Array) -> Array:
        """(T, J) N m that the drives must give under contact forces `force` (T, P, 3), N per kg of the robot."""
        return np.asarray(self.free_torque - self.mass * np.einsum("tpij,tpi->tj", self.sole_jacobian, force))


def robot_demand(motion: RobotMotion, profile: RobotProfile, physics: PhysicsSettings) -> RobotDemand:
    """Inverse dynamics of the filtered motion, without contacts and limits; soles from the motion as it is."""
    qpos, qvel, qacc = trajectory(motion)
    wrench, com = inverse_dynamics(profile, physics, qpos, qvel, qacc)
    mass = robot_mass(profile, physics)
    kinematics = Kinematics(profile)
    poses = kinematics.forward(motion.root_pos, motion.root_quat, motion.joint_pos)
    force = wrench[:, :3]
    moment = wrench[:, 3:6] - np.cross(com - qpos[:, :3], force)
    contact = _contact_demand(motion.fps, kinematics, poses, com, force / mass, moment / mass)
    links, offsets = _sole_places(profile)
    jacobian = kinematics.jacobian(poses, links, offsets)[..., 6:]
    return RobotDemand(contact, mass, wrench[:, 6:], jacobian)


def _contact_demand(
    fps: float, kinematics: Kinematics, poses: LinkPoses, com: Array, force: Array, moment: Array
) -> Demand:
    soles = kinematics.sole_points(poses).reshape(len(com), -1, 3)
    velocity = np.gradient(gaussian_filter1d(soles, _sigma(fps), axis=0), 1 / fps, axis=0)
    com_velocity = np.gradient(com, 1 / fps, axis=0)
    return Demand(
        com=com,
        com_speed=np.linalg.norm(com_velocity[:, :2], axis=1),
        force=force,
        moment=moment,
        soles=soles,
        sole_speed=np.linalg.norm(velocity, axis=-1),
    )


def _sole_places(profile: RobotProfile) -> tuple[NDArray[np.intp], Array]:
    """Link index (P,) and offset (P, 3) of the sole points, foot by foot."""
    return np.repeat(profile.foot_index, profile.sole_points.shape[1]), profile.sole_points.reshape(-1, 3)


def _sigma(fps: float) -> float:
    return SMOOTHING * fps / 30.0


def trajectory(motion: RobotMotion) -> tuple[Array, Array, Array]:
    """MuJoCo's qpos (T, 7 + J), qvel and qacc (T, 6 + J); its root's angular velocity is in the root's frame."""
    step, sigma = 1 / motion.fps, _sigma(motion.fps)
    root, joints = (gaussian_filter1d(x, sigma, axis=0) for x in (motion.root_pos, motion.joint_pos))
    spin = angular_velocity(quat_to_matrix(motion.root_quat)[:, None], motion.fps)[:, 0]
    spin[0], spin[-1] = spin[1], spin[-2]
    spin = rotate_inverse(motion.root_quat, gaussian_filter1d(spin, sigma, axis=0))
    velocity = np.concatenate([np.gradient(root, step, axis=0), spin, np.gradient(joints, step, axis=0)], axis=1)
    qpos = np.concatenate([root, motion.root_quat, joints], axis=1)
    return qpos, velocity, np.gradient(velocity, step, axis=0)
