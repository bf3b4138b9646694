"""Short rollouts of targets with known physics: a robot that moves its joints about the default pose."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts import Rollout
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.simulators.protocol import RobotState

MakeRollout = Callable[[PhysicsSettings, int, int, int], Rollout]


@pytest.fixture(scope="session")
def profile() -> RobotProfile:
    return get_profile("g1_23dof")


def standing_state(profile: RobotProfile, num: int, seed: int) -> RobotState:
    """`num` robots that stand in the default pose, joints disturbed."""
    rng = np.random.default_rng(seed)
    joints = len(profile.joint_names)
    return RobotState(
        root_pos=np.tile([0.0, 0.0, 0.79], (num, 1)),
        root_quat=np.tile([1.0, 0.0, 0.0, 0.0], (num, 1)),
        root_lin_vel=np.zeros((num, 3)),
        root_ang_vel=np.zeros((num, 3)),
        joint_pos=profile.default_joint_pos + rng.normal(0.0, 0.02, (num, joints)),
        joint_vel=rng.normal(0.0, 0.1, (num, joints)),
    )


@pytest.fixture(scope="session")
def make_rollout(profile: RobotProfile) -> MakeRollout:
    """`make_rollout(physics, episodes, steps, seed)`: sine targets of random phase, recorded under `physics`."""

    def make(physics: PhysicsSettings, episodes: int, steps: int, seed: int) -> Rollout:
        rng = np.random.default_rng(seed)
        joints = len(profile.joint_names)
        phase = rng.uniform(0, 2 * np.pi, (episodes, joints))
        rate = rng.uniform(4.0, 9.0, (episodes, joints))
        simulator = MujocoSimulator(profile, physics, episodes)
        simulator.set_state(np.arange(episodes), standing_state(profile, episodes, seed))
        states, targets = [simulator.state], []
        for k in range(steps):
            targets.append(profile.default_joint_pos + 0.12 * np.sin(phase + rate * k * physics.control_dt))
            simulator.step(targets[-1])
            states.append(simulator.state)
        return assemble(profile, physics, states, np.stack(targets, axis=1), seed)

    return make


def assemble(
    profile: RobotProfile, physics: PhysicsSettings, states: list[RobotState], targets: np.ndarray, seed: int
) -> Rollout:
    """A rollout of E episodes: K + 1 `states` of E robots each, `targets` (E, K, J)."""
    episodes, steps, joints = targets.shape
    rows = episodes * (steps + 1)
    target = np.full((episodes, steps + 1, joints), np.nan)
    target[:, :-1] = targets
    flat = {
        name: np.stack([getattr(s, name) for s in states], axis=1).reshape(rows, -1)
        for name in RobotState.__dataclass_fields__
    }
    return Rollout(
        robot=profile.name,
        joint_names=tuple(profile.joint_names),
        control_dt=physics.control_dt,
        source={"kind": "twin"},
        state=RobotState(**flat),
        action=target.reshape(rows, joints),
        joint_target=target.reshape(rows, joints),
        joint_torque=target.reshape(rows, joints),
        valid=np.tile(np.arange(steps + 1) < steps, episodes),
        episode=np.repeat(np.arange(episodes), steps + 1),
        frame=np.tile(np.arange(steps + 1), episodes),
        start_phase=np.zeros(rows),
        motion=np.full(rows, "sway"),
        policy=np.full(rows, f"sine_{seed}"),
        policy_sha256=np.full(rows, f"sha_{seed}"),
    )
