"""The delta means the same in open and closed loop: equal targets from equal states, and no memory after a reset."""

from __future__ import annotations

import numpy as np
import torch

from asap_core.alignment.delta_model import DeltaActionModel, DeltaCorrection
from asap_core.environments.tracking import TrackingEnv
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.simulators.protocol import Array, RobotState
from tests.environments.test_tracking import make_env

PROFILE = get_profile("g1_23dof")
N = 4


def a_model() -> DeltaActionModel:
    """Every weight random, so that state, target and history all count."""
    model = DeltaActionModel(PROFILE, 0.5)
    torch.nn.init.normal_(model.linear, std=0.02, generator=torch.Generator().manual_seed(0))
    return model


class Told(DeltaCorrection):
    """Notes what it is asked and what it answers."""

    def __init__(self) -> None:
        super().__init__(a_model().predict, 0.02)
        self.asked: list[tuple[RobotState, Array, float]] = []
        self.answered: list[Array] = []

    def __call__(self, state: RobotState, joint_target: Array, time_s: float) -> Array:
        delta = super().__call__(state, joint_target, time_s)
        self.asked.append((state, joint_target.copy(), time_s))
        self.answered.append(delta)
        return delta


def env_with(told: Told) -> TrackingEnv:
    return make_env(N, correction=told)


def test_same_weights_give_the_same_joint_targets_in_both_loops() -> None:
    """The closed loop's nominal targets, replayed from the same state as open loop does, are corrected alike."""
    closed = Told()
    env = env_with(closed)
    start, rng = env.simulator.state, np.random.default_rng(0)
    targets = []
    for _ in range(3):
        env.begin(rng.normal(0.0, 0.3, (N, 23)))
        targets.append(env._target.copy())
        env.simulate(targets[-1])
        env.finish()
    opened = Told()
    simulator = MujocoSimulator(PROFILE, PhysicsSettings(), N)
    simulator.set_state(np.arange(N), start)
    opened.reset(np.arange(N))
    for target in targets:
        simulator.step(target, opened)
    assert len(closed.answered) == len(opened.answered) == 12
    for one, other in zip(closed.answered, opened.answered, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    assert max(np.abs(delta).max() for delta in closed.answered) > 0.01


def test_an_episode_that_begins_knows_nothing_of_the_one_before() -> None:
    told = Told()
    env = env_with(told)
    rng = np.random.default_rng(1)
    for _ in range(4):
        env.step(rng.normal(0.0, 1.0, (N, 23)))
    env.reset(np.arange(N))
    told.asked.clear()
    told.answered.clear()
    env.simulate(env.begin(np.zeros((N, 23))))
    state, target, time_s = told.asked[0]
    assert time_s == 0.0
    fresh = DeltaCorrection(a_model().predict, 0.02)
    np.testing.assert_array_equal(told.answered[0], fresh(state, target, 0.0))
