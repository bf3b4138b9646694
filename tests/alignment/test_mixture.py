"""How a delta is met in fine-tuning, and the noise that is its control."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from asap_core.alignment.action_noise import ActionNoise
from asap_core.alignment.mixture import MixedCorrection, mixed
from asap_core.robots import get_profile
from asap_core.simulators.protocol import Array, Ids, RobotState
from asap_core.training.settings import FinetuneSettings
from tests.alignment.conftest import standing_state

PROFILE = get_profile("g1_23dof")
N, J = 40, 23
STATE, TARGET = standing_state(PROFILE, N, 0), np.zeros((N, J))


class Ones:
    """Corrects by 1 rad; knows which robots were reset."""

    def __init__(self) -> None:
        self.was_reset: list[int] = []

    def __call__(self, state: RobotState, joint_target: Array, time_s: float) -> Array:
        return np.ones_like(joint_target)

    def reset(self, ids: Ids) -> None:
        self.was_reset += ids.tolist()

    def recall(self, state: RobotState, joint_target: Array) -> None: ...


def test_a_share_does_without_and_the_rest_differ_within_bounds() -> None:
    inner = Ones()
    correction = MixedCorrection(inner, N, J, without=0.25, scale=(0.8, 1.2), seed=3)
    delta = correction(STATE, TARGET, 0.0)
    none = (delta == 0).all(axis=1)
    assert none.sum() == 10
    assert delta[~none].min() >= 0.8
    assert delta[~none].max() <= 1.2
    assert np.unique(delta[~none]).size == 30 * J
    correction.reset(np.array([2, 5]))
    assert inner.was_reset == [2, 5]
    np.testing.assert_array_equal(correction(STATE, TARGET, 0.005), delta)


def test_nothing_to_mix_is_the_delta_itself() -> None:
    inner = Ones()
    assert mixed(inner, FinetuneSettings(), N, J, 0) is inner
    other = mixed(inner, FinetuneSettings(without_delta=0.5), N, J, 0)
    assert (other(STATE, TARGET, 0.0) == 0).all(axis=1).sum() == 20


def test_a_scale_out_of_order_is_refused() -> None:
    with pytest.raises(ValidationError, match="smaller first"):
        FinetuneSettings(delta_scale=(1.2, 0.8))


def test_noise_holds_for_a_control_step_and_is_uniform() -> None:
    noise = ActionNoise(0.1, seed=0)
    first = noise(STATE, TARGET, 0.0)
    np.testing.assert_array_equal(noise(STATE, TARGET, 0.005), first)
    steps = np.stack([noise(STATE, TARGET, 0.0).copy() for _ in range(50)])
    assert not np.array_equal(steps[0], first)
    assert np.abs(steps).max() <= 0.1
    assert abs(steps.mean()) < 1e-3
    assert steps.std() == pytest.approx(0.1 / np.sqrt(3), rel=0.01)
