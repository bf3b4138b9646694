"""Ablations: what is altered is what is said, and the table is of cells that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from asap_core.alignment.corrected import Corrected, ZeroRival
from asap_core.alignment.settings import AlignSettings
from asap_core.errors import UnknownNameError
from asap_core.evaluation.ablation_bench import bench as ablation
from asap_core.evaluation.ablation_bench.altered_data import BLOCK, AlteredDataRival, with_noise, with_samples
from asap_core.evaluation.ablation_bench.bench import Places, bench, shown
from asap_core.evaluation.ablation_bench.variants import ABLATIONS, Ablation, Variant
from asap_core.evaluation.alignment_bench.splits import MOTIONS
from asap_core.evaluation.alignment_bench.targets import TARGETS
from asap_core.evaluation.alignment_bench.yardstick import Yardstick
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts import Rollout
from asap_core.simulators.settings import SimulationSettings
from tests.alignment.conftest import MakeRollout
from tests.alignment.conftest import make_rollout as make_rollout
from tests.alignment.conftest import profile as profile
from tests.evaluation.test_alignment_bench import _swaying

PROFILE = get_profile("g1_23dof")
SIMULATION = SimulationSettings(threads=1)


@pytest.fixture(scope="module")
def rollout(make_rollout: MakeRollout) -> Rollout:
    """Three episodes of 160 transitions: nine pieces."""
    return make_rollout(PhysicsSettings(), 3, 160, 0)


@pytest.mark.parametrize(("asked", "given"), [(10, 50), (50, 50), (160, 150), (450, 450), (4000, 450)])
def test_samples_are_whole_pieces_that_can_be_replayed(rollout: Rollout, asked: int, given: int) -> None:
    fewer = with_samples(rollout, asked)
    assert len(fewer.transitions()) == given
    assert len(fewer.segment_starts(BLOCK)) == given // BLOCK
    assert fewer.num_rows == rollout.num_rows


def test_few_samples_are_spread_over_the_episodes(rollout: Rollout) -> None:
    rows = with_samples(rollout, 150).transitions()
    assert set(rollout.episode[rows]) == {0, 1, 2}


def test_noise_has_the_size_that_is_said_and_spares_commands(rollout: Rollout) -> None:
    noisy = with_noise(rollout, 0.003, seed=1)
    assert (noisy.state.joint_pos - rollout.state.joint_pos).std() == pytest.approx(0.003, rel=0.05)
    assert (noisy.state.joint_vel - rollout.state.joint_vel).std() == pytest.approx(0.03, rel=0.05)
    np.testing.assert_array_equal(noisy.joint_target, rollout.joint_target)
    np.testing.assert_array_equal(with_noise(rollout, 0.0, 1).state.joint_pos, rollout.state.joint_pos)


class Counts(ZeroRival):
    """Notes how many transitions it is fitted on."""

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"rival": "counts"}

    def fit(self, fit: Rollout, validation: Rollout, seed: int, cache: Path) -> Corrected:
        found = (len(fit.transitions()), len(validation.transitions()))
        return Corrected(f"{found[0]} and {found[1]}", self.physics)


def test_the_rival_sees_altered_data_and_its_identity_says_so(rollout: Rollout, tmp_path: Path) -> None:
    made = AlteredDataRival(Counts(PhysicsSettings()), "few", 100, lambda r: with_samples(r, 100))
    assert made.fit(rollout, rollout, 0, tmp_path).name == "100 and 480"
    other = AlteredDataRival(Counts(PhysicsSettings()), "few", 150, lambda r: with_samples(r, 150))
    assert dict(made.identity) != dict(other.identity)


def test_variants_differ_in_the_quantity_alone() -> None:
    align = AlignSettings()
    for name, entry in ABLATIONS.items():
        variants = entry.make(PROFILE, SIMULATION, align)
        assert len({v.rival.name for v in variants}) == len({v.value for v in variants}) == len(variants) >= 4, name
    horizons = {v.value: v.rival.identity["settings"] for v in ABLATIONS["horizon"].make(PROFILE, SIMULATION, align)}
    assert list(horizons[0.5]["refine"]["horizons_s"]) == [0.1, 0.25, 0.5]
    priors = [v.rival.identity["settings"] for v in ABLATIONS["norm"].make(PROFILE, SIMULATION, align)]
    assert {str(p | {"refine": p["refine"] | {"prior": 0}}) for p in priors} == {
        str(priors[0] | {"refine": priors[0]["refine"] | {"prior": 0}})
    }


def test_a_table_with_intervals_from_kept_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two variants on made rollouts: one knows the target, one changes nothing."""
    variants = [Variant(0.0, ZeroRival(PhysicsSettings(), "none")), Variant(1.0, ZeroRival(TARGETS["strength"], "all"))]
    monkeypatch.setattr(ZeroRival, "fit", lambda self, *rest: Corrected(self.name, self.physics))
    monkeypatch.setitem(ablation.ABLATIONS, "data", Ablation("knowledge", lambda *given: variants, "nothing"))
    made = {m.name: _swaying(m.name, i) for i, m in enumerate(MOTIONS)}
    monkeypatch.setattr(Yardstick, "rollouts", property(lambda self: made))
    places = Places(tmp_path, tmp_path / "cache", "code", tmp_path / "out")
    given = ("data", ["strength"], ["0"], PROFILE, SIMULATION, AlignSettings(), places)
    table = bench(*given)
    assert list(table["closed_1s"]) == pytest.approx([0.0, 1.0], abs=1e-3)
    assert list(table["folds"]) == ["0", "0"]
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"data.csv", "data.png"}
    assert shown(table)["strength 1/closed % at 1 s"] == "100 [100, 100]"
    monkeypatch.setattr(Yardstick, "fitted", lambda *args: pytest.fail("fitted again"))
    pd.testing.assert_frame_equal(bench(*given), table)


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    places = Places(tmp_path, tmp_path, "code", tmp_path)
    profile: RobotProfile = PROFILE
    for name, target, fold, message in (
        ("dat", "altered", "0", "data"),
        ("data", "alter", "0", "altered"),
        ("data", "altered", "7", "0"),
    ):
        with pytest.raises(UnknownNameError, match=message):
            bench(name, [target], [fold], profile, SIMULATION, AlignSettings(), places)
