"""ASAP's published policies in our environment: their errors are those that an independent deployment measured."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.evaluation import published
from asap_core.evaluation.published import EXPECTED, FIGURES, POLICY_NAMES, bench, run_published
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.settings import SimulationSettings
from asap_core.training.published import published_contract

SETTINGS = SimulationSettings(threads=1)


def test_one_policy_gives_the_measured_errors(shared_dir):
    found = run_published(shared_dir, "side_jump_level1", SETTINGS, PhysicsSettings())
    assert found["success"] == 1.0
    for figure in FIGURES:
        assert found[figure] == pytest.approx(EXPECTED["side_jump_level1"][figure], rel=0.02), figure


def test_a_wrong_phase_shows_in_the_error_though_the_robot_survives(shared_dir, monkeypatch):
    """The deployment's own rule, a clip of T instead of T - 1 frames, costs CR7 a third: 119 / 30 s for 118 / 30 s."""

    def as_deployed(profile, reference):
        return published_contract(profile, reference).model_copy(update={"phase_length_s": 3.967})

    monkeypatch.setattr(published, "published_contract", as_deployed)
    found = run_published(shared_dir, "CR7_level1", SETTINGS, PhysicsSettings())
    assert found["success"] == 1.0
    assert found["E_g_mpjpe"] / EXPECTED["CR7_level1"]["E_g_mpjpe"] == pytest.approx(1.32, abs=0.03)


@pytest.mark.slow
def test_all_ten_with_both_drives(shared_dir):
    table = bench(shared_dir, SETTINGS)
    explicit = []
    for name in POLICY_NAMES:
        assert table[f"{name}/success"] == table[f"{name}/explicit_success"] == 1.0, name
        for figure in FIGURES:
            assert table[f"{name}/{figure}"] == pytest.approx(EXPECTED[name][figure], rel=0.02), (name, figure)
        explicit.append(table[f"{name}/explicit_E_g"] / EXPECTED[name]["E_g_mpjpe"] - 1)
    assert np.abs(explicit).max() <= 0.15
    mean = np.mean([EXPECTED[name]["E_g_mpjpe"] for name in POLICY_NAMES])
    assert table["mean/explicit_E_g"] == pytest.approx(mean, rel=0.05)
