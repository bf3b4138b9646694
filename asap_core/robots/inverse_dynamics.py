"""The generalised forces of a motion, by MuJoCo."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import rotate

Array = NDArray[np.floating]


def inverse_dynamics(
    profile: RobotProfile, physics: PhysicsSettings, qpos: Array, qvel: Array, qacc: Array
) -> tuple[Array, Array]:
    """Inverse dynamics without contacts and limits.

    Args:
        qpos, qvel, qacc: MuJoCo's, (T, 7 + J) and (T, 6 + J); the root's angular velocity is in the root's frame.

    Returns:
        (T, 6 + J) force (N) and moment about the root's origin (N m) on the root, both in the world frame, and the
        joints' torques (N m); (T, 3) centre of mass, m.
    """
    import mujoco

    model = build_model(profile, physics)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_ACTUATION
    force, com = np.zeros((len(qpos), model.nv)), np.zeros((len(qpos), 3))
    data = mujoco.MjData(model)
    for frame in range(len(qpos)):
        data.qpos[:], data.qvel[:], data.qacc[:] = qpos[frame], qvel[frame], qacc[frame]
        mujoco.mj_inverse(model, data)
        force[frame], com[frame] = data.qfrc_inverse, data.subtree_com[1]
    force[:, 3:6] = rotate(qpos[:, 3:7], force[:, 3:6])
    return force, com


def robot_mass(profile: RobotProfile, physics: PhysicsSettings) -> float:
    """kg, welded bodies included."""
    return float(build_model(profile, physics).body_subtreemass[1])
