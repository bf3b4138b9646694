"""The yardstick: splits without overlap, shares with intervals, rollouts that the target itself replays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asap_core.alignment.corrected import Corrected, ZeroRival
from asap_core.errors import InputFileError, UnknownNameError
from asap_core.evaluation.alignment_bench.cells import kept_cells
from asap_core.evaluation.alignment_bench.collect import EPISODES, collect_motion
from asap_core.evaluation.alignment_bench.score import SegmentErrors, closed_share, figures_of, segment_errors
from asap_core.evaluation.alignment_bench.splits import MOTIONS, NUM_FOLDS, fold, in_sample
from asap_core.evaluation.alignment_bench.table import open_loop_table, shown
from asap_core.evaluation.alignment_bench.targets import TARGETS, target_engine, target_physics
from asap_core.evaluation.alignment_bench.yardstick import Yardstick
from asap_core.evaluation.published import POLICY_NAMES
from asap_core.files import write_json
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.rollouts import Rollout
from asap_core.simulators.settings import SimulationSettings
from tests.alignment.conftest import standing_state

PROFILE = get_profile("g1_23dof")
SIMULATION = SimulationSettings(threads=1)


def test_every_motion_is_held_out_once_and_never_seen_before() -> None:
    heldout: list[str] = []
    for index in range(NUM_FOLDS):
        parts = fold(index)
        assert sorted(parts.fit + parts.validation + parts.heldout) == sorted(POLICY_NAMES)
        assert len(parts.validation) == 2
        heldout += parts.heldout
    assert sorted(heldout) == sorted(POLICY_NAMES)
    assert {m.level for m in MOTIONS} == {"easy", "medium", "hard"}
    assert len(in_sample().heldout) == 10


def test_the_altered_target_is_its_single_causes_together() -> None:
    together: dict[str, Any] = {}
    for name in ("strength", "frictionloss", "mass", "armature"):
        together |= target_physics(name).model_dump(exclude_unset=True)
    assert PhysicsSettings.model_validate(together) == TARGETS["altered"]
    assert target_physics("altered_delay").delay_s == pytest.approx(0.02)
    assert (target_engine("mass"), target_engine("physx")) == ("mujoco", "physx")
    assert target_physics("physx").added_mass == {}
    with pytest.raises(UnknownNameError, match="altered"):
        target_physics("alterd")


def test_share_is_of_sums_and_its_interval_of_episodes() -> None:
    episode = ("a", "a", "b", "c")
    distance = np.array([[1.0, 2.0, 10.0], [1.0, 2.0, 20.0], [1.0, 2.0, 40.0], [1.0, 2.0, 30.0]])
    zero = SegmentErrors(np.repeat(distance[..., None], 4, axis=-1), episode)
    half = SegmentErrors(zero.figures * 0.5, episode)
    for interval in closed_share(half, zero):
        assert (interval.mean, interval.low, interval.high, interval.n) == pytest.approx((0.5, 0.5, 0.5, 3))
    uneven = SegmentErrors(zero.figures * np.array([0.0, 0.0, 1.0, 1.0])[:, None, None], episode)
    one = closed_share(uneven, zero)[2]
    assert one.mean == pytest.approx(0.3)
    assert one.low < 0.05
    assert one.high > 0.9
    with pytest.raises(ValueError, match="different segments"):
        closed_share(half, SegmentErrors(zero.figures, ("a", "b", "b", "c")))


def test_rollouts_of_published_policies_replay_in_their_target(shared_dir: Path, tmp_path: Path) -> None:
    target = TARGETS["altered_delay"]
    rollout = collect_motion(shared_dir, "kick_level2", target, PROFILE, SIMULATION, tmp_path, "code")
    assert len(np.unique(rollout.episode)) == EPISODES
    truth = segment_errors(Corrected("truth", target), rollout, PROFILE, SIMULATION)
    zero = segment_errors(Corrected("zero", PhysicsSettings()), rollout, PROFILE, SIMULATION)
    assert truth.error_mm.max() < 1e-3
    assert zero.error_mm[:, 2].mean() > 10.0
    assert len(set(zero.episode)) == EPISODES
    kept = list(tmp_path.iterdir())
    assert len(kept) == 1
    collect_motion(shared_dir, "kick_level2", target, PROFILE, SIMULATION, tmp_path, "code")
    assert list(tmp_path.iterdir()) == kept


class Truth(ZeroRival):
    """Knows the target; counts its fits."""

    fits = 0

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"rival": "truth"}

    def fit(self, fit: Rollout, validation: Rollout, seed: int, cache: Path) -> Corrected:
        Truth.fits += 1
        assert not set(fit.motion) & set(validation.motion)
        return Corrected("truth", self.physics)


def test_a_cell_is_kept_and_the_table_needs_no_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On made rollouts: the truth closes everything, a second run fits nothing, and a lost fold is said."""
    yardstick = Yardstick("strength", PROFILE, SIMULATION, tmp_path, tmp_path, "code")
    made = {m.name: _swaying(m.name, i) for i, m in enumerate(MOTIONS)}
    monkeypatch.setattr(Yardstick, "rollouts", property(lambda self: made))
    truth = Truth(TARGETS["strength"], "delta")
    first = [yardstick.cell(truth, name) for name in ("0", "2")]
    assert Truth.fits == 2
    again = yardstick.cell(truth, "2")
    assert Truth.fits == 2
    assert np.array_equal(again.errors.figures, first[1].errors.figures)
    table = open_loop_table(kept_cells(tmp_path), "other")
    assert table["rival"].tolist() == ["zero", "delta"] * 3
    assert table["closed"].tolist() == pytest.approx([0.0, 1.0] * 3, abs=1e-3)
    assert table["horizon_s"].tolist() == [0.25, 0.25, 0.5, 0.5, 1.0, 1.0]
    row = table.iloc[5]
    assert (row["folds"], row["of_folds"], row["episodes"], row["other_code"]) == ("0 2", 4, 5, "0 2")
    assert (row["must"], row["verdict"]) == (0.75, "met")
    assert row["paper_IsaacSim_closed"] == pytest.approx(0.53, abs=0.005)
    text = shown(table)
    assert text["strength 1s delta/folds"] == "2 of 4"
    assert text["strength 1s delta/paper: IsaacSim"] == "37.9 · 22.9 · 4.38 · 5.26"


def test_a_damaged_cell_is_named(tmp_path: Path) -> None:
    path = tmp_path / "scores" / "mass" / "delta_0_ab.json"
    write_json(path, {"target": "mass"})
    with pytest.raises(InputFileError, match=r"delta_0_ab\.json.*rival"):
        kept_cells(tmp_path)


def test_figures_of_a_rollout_that_drifts() -> None:
    """All links 1 mm further each step: 2 mm mean distance after 3 steps, none relative to the root, 1 mm/frame."""
    error = np.zeros((1, 3, 24, 3))
    error[..., 0] = np.array([1.0, 2.0, 3.0])[None, :, None]
    assert figures_of(error)[0] == pytest.approx([2.0, 0.0, 0.0, 1.0])


def _swaying(motion: str, seed: int) -> Rollout:
    from asap_core.simulators.mujoco import MujocoSimulator
    from tests.alignment.conftest import assemble

    simulator = MujocoSimulator(PROFILE, TARGETS["strength"], 1)
    simulator.set_state(np.arange(1), standing_state(PROFILE, 1, seed))
    states, targets = [simulator.state], []
    for k in range(52):
        targets.append(PROFILE.default_joint_pos + np.full((1, 23), 0.1 * np.sin(0.1 * k + seed)))
        simulator.step(targets[-1])
        states.append(simulator.state)
    rollout = assemble(PROFILE, TARGETS["strength"], states, np.stack(targets, axis=1), seed)
    return replace(rollout, motion=np.full(rollout.num_rows, motion))
