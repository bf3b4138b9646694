"""The observation layout of the paper's release, slice by slice, and its history."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from asap_core.environments.observations import (
    ObservationBuilder,
    ObservationContext,
    ObservationLayout,
    ObservationSettings,
)
from asap_core.robots import get_profile
from asap_core.simulators.protocol import RobotState

PROFILE = get_profile("g1_23dof")
PROPRIOCEPTION = ("actions", "base_ang_vel", "dof_pos", "dof_vel", "projected_gravity", "ref_motion_phase")
SCALES = {"base_ang_vel": 0.25, "dof_vel": 0.05}
ACTOR = ObservationSettings(terms=PROPRIOCEPTION, history_terms=PROPRIOCEPTION, scales=SCALES)
CRITIC = ObservationSettings(
    terms=(*PROPRIOCEPTION, "base_lin_vel", "dif_local_rigid_body_pos", "local_ref_rigid_body_pos"),
    history_terms=(*PROPRIOCEPTION, "base_lin_vel"),
    scales={**SCALES, "base_lin_vel": 2.0},
)


def context(mark: float) -> ObservationContext:
    """A state in which every field holds multiples of `mark`."""
    state = RobotState(
        root_pos=np.array([[0.0, 0, 0.8]]),
        root_quat=np.array([[1.0, 0, 0, 0]]),
        root_lin_vel=np.full((1, 3), mark),
        root_ang_vel=np.full((1, 3), 4 * mark),
        joint_pos=PROFILE.default_joint_pos[None] + mark,
        joint_vel=np.full((1, 23), 20 * mark),
    )
    return ObservationContext(
        PROFILE, state, None, np.full((1, 23), 10 * mark), np.array([mark]), np.zeros((1, 23)), None
    )


def test_actor_is_380_wide_with_the_published_slices():
    layout = ObservationLayout(ACTOR, PROFILE)
    assert layout.width == 380
    assert {k: (v.start, v.stop) for k, v in layout.slices.items()} == {
        "actions": (0, 23),
        "base_ang_vel": (23, 26),
        "dof_pos": (26, 49),
        "dof_vel": (49, 72),
        "history": (72, 376),
        "projected_gravity": (376, 379),
        "ref_motion_phase": (379, 380),
    }


def test_critic_is_557_wide():
    layout = ObservationLayout(CRITIC, PROFILE)
    assert layout.width == 557
    assert layout.slices["history"] == slice(156, 472)


def test_history_is_newest_first_field_by_field_and_never_holds_the_present():
    builder = ObservationBuilder(ObservationLayout(ACTOR, PROFILE), 1)
    for step in range(1, 7):
        obs = builder(context(float(step) / 10))[0]
    assert obs[0] == pytest.approx(10 * 0.6)
    history = obs[72:376]
    for lag in range(4):
        past = (5 - lag) / 10
        assert history[23 * lag] == pytest.approx(10 * past), "actions"
        assert history[92 + 3 * lag] == pytest.approx(past), "base_ang_vel, 4 · mark · 0.25"
        assert history[104 + 23 * lag] == pytest.approx(past), "dof_pos"
        assert history[196 + 23 * lag] == pytest.approx(past), "dof_vel, 20 · mark · 0.05"
        assert history[288 + 3 * lag + 2] == pytest.approx(-1.0), "projected_gravity"
        assert history[300 + lag] == pytest.approx(past), "ref_motion_phase"


def test_first_observation_after_a_reset_has_no_past():
    builder = ObservationBuilder(ObservationLayout(ACTOR, PROFILE), 1)
    builder(context(0.5))
    builder.reset(np.arange(1))
    assert not builder(context(0.1))[0, 72:376].any()


def test_noise_is_uniform_within_its_level_and_absent_without_a_generator():
    settings = ObservationSettings(terms=("dof_vel",), history_terms=(), scales={"dof_vel": 0.05},
                                   noise={"dof_vel": 1.0})  # fmt: skip
    builder = ObservationBuilder(ObservationLayout(settings, PROFILE), 1)
    clean = builder(context(0.0))
    noisy = np.concatenate([builder(context(0.0), np.random.default_rng(i)) for i in range(200)])
    assert not clean.any()
    assert np.abs(noisy).max() <= 0.05
    assert noisy.std() == pytest.approx(0.05 / np.sqrt(3), rel=0.05)


def test_unknown_term_and_stray_scale_are_refused_by_name():
    with pytest.raises(ValidationError, match="Did you mean 'dof_vel'"):
        ObservationSettings(terms=("dof_vell",), history_terms=())
    with pytest.raises(ValidationError, match="base_lin_vel"):
        ObservationSettings(terms=("dof_vel",), history_terms=(), scales={"base_lin_vel": 2.0})
