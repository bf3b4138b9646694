"""The whole fit: it closes a known gap on rollouts it has not seen, and corrects nothing where there is no gap."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from asap_core.alignment.fit import DeltaFit, DeltaFitter
from asap_core.alignment.settings import AlignSettings, RefineSettings
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts import Rollout, Split
from asap_core.simulators.settings import SimulationSettings
from tests.alignment.conftest import MakeRollout

QUICK = AlignSettings(ridge=(1.0,), residual_epochs=0, label_envs=480, refine=RefineSettings(iterations=0))


def _splits(make: MakeRollout, physics: PhysicsSettings) -> dict[Split, Rollout]:
    return {"fit": make(physics, 6, 50, 1), "validation": make(physics, 3, 50, 2), "heldout": make(physics, 3, 50, 3)}


def _fit(profile: RobotProfile, rollouts: dict[Split, Rollout], settings: AlignSettings, cache: Path) -> DeltaFit:
    return DeltaFitter(profile, SimulationSettings(), rollouts, settings, 0, cache).run()


def test_closes_a_strength_gap_on_unseen_rollouts(
    profile: RobotProfile, make_rollout: MakeRollout, tmp_path: Path
) -> None:
    weak = PhysicsSettings(strength={"knee": 0.8, "ankle": 0.8})
    fit = _fit(profile, _splits(make_rollout, weak), QUICK, tmp_path)
    assert fit.chosen.name == "linear_ridge_1"
    assert fit.ratio < 0.6
    assert fit.acceptance.verdict == "accepted", fit.acceptance.reasons
    strong = {"knee", "ankle"}
    weakened = np.array([any(part in name for part in strong) for name in profile.joint_names])
    assert fit.mean_abs_delta[weakened].mean() > 5 * fit.mean_abs_delta[~weakened].mean()


def test_no_gap_chooses_zero(profile: RobotProfile, make_rollout: MakeRollout, tmp_path: Path) -> None:
    fit = _fit(profile, _splits(make_rollout, PhysicsSettings()), QUICK, tmp_path)
    assert fit.chosen.name == "zero"
    assert fit.acceptance.verdict == "rejected"
    assert fit.heldout[1.0] < 1e-3
    assert fit.mean_abs_delta.max() == 0.0


@pytest.mark.slow
def test_a_resumed_fit_equals_an_undisturbed_one(
    profile: RobotProfile, make_rollout: MakeRollout, tmp_path: Path
) -> None:
    settings = QUICK.model_copy(
        update={"residual_epochs": 2, "refine": RefineSettings(iterations=2, horizons_s=(0.2,), seconds=1.2)}
    )
    rollouts = _splits(make_rollout, PhysicsSettings(armature=0.03, strength={"knee": 0.8}))
    whole = _fit(profile, rollouts, settings, tmp_path)
    sorted(tmp_path.glob("labels_*.npy"))[-1].unlink()
    refined = [path for path in tmp_path.glob("*.npy") if not path.name.startswith("labels_")]
    sorted(refined)[-1].unlink()
    again = _fit(profile, rollouts, settings, tmp_path)
    assert again.chosen.name == whole.chosen.name
    assert again.heldout == whole.heldout
    assert [c.validation for c in again.candidates] == [c.validation for c in whole.candidates]
