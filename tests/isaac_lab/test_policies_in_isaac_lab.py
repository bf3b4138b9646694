"""The ten published policies in Isaac Lab, under the drive that the paper's simulators have."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.evaluation.published import EXPECTED, POLICY_NAMES, run_published
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.settings import SimulationSettings


@pytest.mark.slow
def test_all_survive_with_errors_near_those_in_mujoco(shared_dir):
    """The mean within 10 %, none off by more than 30 % (found: 107.2 mm beside 106.8, the farthest lebron, +17 %)."""
    pytest.importorskip("isaaclab", reason="Isaac Lab absent")
    settings, physics = SimulationSettings(backend="isaaclab"), PhysicsSettings(drive="explicit")
    found = {name: run_published(shared_dir, name, settings, physics) for name in POLICY_NAMES}
    assert all(row["success"] == 1.0 for row in found.values())
    ratios = [found[name]["E_g_mpjpe"] / EXPECTED[name]["E_g_mpjpe"] for name in POLICY_NAMES]
    assert max(abs(ratio - 1) for ratio in ratios) < 0.3
    means = [np.mean([row[name]["E_g_mpjpe"] for name in POLICY_NAMES]) for row in (found, EXPECTED)]
    assert means[0] == pytest.approx(means[1], rel=0.1)
