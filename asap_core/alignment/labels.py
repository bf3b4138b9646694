"""One-step labels: the Δq that makes one nominal control step end in the recorded next state.

Gauss-Newton on the inertia-weighted state difference, derivatives by finite differences over a batch of robots. Labels
are what the linear and network fits learn; which fit is used is decided by multi-step replay, never by their residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.files import atomic_file, make_folder
from asap_core.progress import track
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.rotations import quat_conj, quat_mul, quat_to_rotvec
from asap_core.simulators.protocol import RobotState, Simulator

Array = NDArray[np.floating]

_STEP_RAD = 0.05
"""Finite-difference step of a joint target."""
_VELOCITY_WEIGHT_S = 0.05
"""Turns a velocity difference into an angle or a length."""


@dataclass(frozen=True)
class StateWeights:
    """Weight of each state coordinate: (6 + J,) for positions, and the same times 0.05 s for velocities."""

    position: Array

    def difference(self, reached: RobotState, recorded: RobotState) -> Array:
        """Weighted `recorded − reached`, (N, 12 + 2J): root, rotation vector, joints, then their velocities."""
        turn = quat_to_rotvec(quat_mul(recorded.root_quat, quat_conj(reached.root_quat)))
        position = [recorded.root_pos - reached.root_pos, turn, recorded.joint_pos - reached.joint_pos]
        velocity = [
            recorded.root_lin_vel - reached.root_lin_vel,
            recorded.root_ang_vel - reached.root_ang_vel,
            recorded.joint_vel - reached.joint_vel,
        ]
        weighted = [np.hstack(position) * self.position, np.hstack(velocity) * (_VELOCITY_WEIGHT_S * self.position)]
        return np.hstack(weighted)


def inertia_weights(inertia_diagonal: Array) -> StateWeights:
    """Weights √(M_ii / mass) of the diagonal (6 + J,) of a joint-space inertia whose first entry is the mass."""
    return StateWeights(np.sqrt(inertia_diagonal / inertia_diagonal[0]))


def inertia_diagonal(profile: RobotProfile, physics: PhysicsSettings) -> Array:
    """Diagonal (6 + J,) of the joint-space inertia in the default pose: mass thrice, root rotation, joints."""
    import mujoco

    model = build_model(profile, physics)
    data = mujoco.MjData(model)
    data.qpos[3:7] = (1.0, 0.0, 0.0, 0.0)
    data.qpos[7:] = profile.default_joint_pos
    mujoco.mj_forward(model, data)
    column = np.zeros(model.nv)
    diagonal = np.zeros(model.nv)
    for i, unit in enumerate(np.eye(model.nv)):
        mujoco.mj_mulM(model, data, column, unit)
        diagonal[i] = column[i]
    return diagonal


class Labeller:
    """Labels transitions in batches of robots.

    Args:
        simulator: the nominal one; N ≥ J + 1.
        weights: of the state difference.
        regularisation: weight of |Δq|².
        limit: labels are clipped to ± this, rad.
    """

    def __init__(self, simulator: Simulator, weights: StateWeights, regularisation: float, limit: float) -> None:
        self._simulator = simulator
        self._weights = weights
        self._regularisation = regularisation
        self._limit = limit

    def chunk_size(self, num_joints: int) -> int:
        """Transitions that are labelled at once."""
        return self._simulator.num_envs // (num_joints + 1)

    def __call__(self, state: RobotState, joint_target: Array, after: RobotState) -> Array:
        """Δq (n, J) rad for n ≤ `chunk_size` transitions from `state` under `joint_target` to `after`."""
        n, joints = joint_target.shape
        copies = joints + 1
        targets = np.repeat(joint_target[:, None], copies, axis=1)
        targets[:, 1:] += _STEP_RAD * np.eye(joints)
        index = np.repeat(np.arange(n), copies)
        reached = self._step(state.take(index), targets.reshape(n * copies, joints))
        error = self._weights.difference(reached, after.take(index)).reshape(n, copies, -1)
        jacobian = -(error[:, 1:] - error[:, :1]).transpose(0, 2, 1) / _STEP_RAD
        normal = jacobian.transpose(0, 2, 1) @ jacobian + self._regularisation * np.eye(joints)
        gradient = jacobian.transpose(0, 2, 1) @ error[:, 0, :, None]
        return np.clip(np.linalg.solve(normal, gradient)[..., 0], -self._limit, self._limit)

    def _step(self, state: RobotState, joint_target: Array) -> RobotState:
        """Step M ≤ N robots; the rest of the batch repeats them."""
        fill = np.resize(np.arange(len(joint_target)), self._simulator.num_envs)
        self._simulator.set_state(np.arange(self._simulator.num_envs), state.take(fill))
        self._simulator.step(joint_target[fill])
        return self._simulator.state.take(np.arange(len(joint_target)))


def label_transitions(labeller: Labeller, rollout: Rollout, rows: NDArray[np.int64], cache: Path) -> Array:
    """Labels (n, J) rad of transitions `rows`; finished chunks are kept under `cache` and not computed again."""
    size = labeller.chunk_size(len(rollout.joint_names))
    chunks = [rows[i : i + size] for i in range(0, len(rows), size)]
    files = [cache / f"labels_{i:05d}.npy" for i in range(len(chunks))]
    make_folder(cache)
    done = sum(file.exists() for file in files)
    with track("align: labels", len(chunks), done) as tracker:
        for chunk, file in zip(chunks, files, strict=True):
            if file.exists():
                continue
            labels = labeller(rollout.state.take(chunk), rollout.joint_target[chunk], rollout.state.take(chunk + 1))
            write_array(file, labels)
            tracker.advance()
    return np.concatenate([read_array(file) for file in files])


def write_array(path: Path, values: Array) -> None:
    """Keep an array, atomically."""
    with atomic_file(path) as partial, open(partial, "wb") as stream:
        np.save(stream, values)


def read_array(path: Path) -> Array:
    """An array that `write_array` kept.

    Raises:
        InputFileError: damaged.
    """
    try:
        values: Array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputFileError(path, f"not a whole npy file: {error}; delete it to compute it anew") from None
    return values
