"""Open-loop replay of a log in the nominal simulator, and its floor."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from asap_core.evaluation.replay_gap import ReplayGapRow, errors_of, replay_gap
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.rollouts.ingest.actions import ActionRule
from asap_core.rollouts.ingest.ingest import ingest
from asap_core.rollouts.ingest.readers import read_log
from asap_core.rollouts.ingest.standing_twin import fell, stand
from asap_core.rollouts.ingest.twin_log import write_twin_log
from asap_core.rollouts.settings import TwinSettings
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.settings import SimulationSettings
from flows.cli import app

PROFILE = get_profile("g1_23dof")
NOMINAL = PhysicsSettings(physics_dt=0.002)
RULE = ActionRule.from_values(
    PROFILE, dict(zip(PROFILE.joint_names, PROFILE.default_joint_pos.tolist(), strict=True)), 0.25
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A twin of nominal physics and one of altered, 10 s each."""
    folder = tmp_path_factory.mktemp("logs")
    for name, physics in (("nominal", NOMINAL), ("altered", TwinSettings().physics(NOMINAL))):
        record = stand(PROFILE, 10.0, physics)
        assert not fell(record)
        write_twin_log(folder / f"{name}.mcap", record, seed=0)
    return {name: folder / f"{name}.mcap" for name in ("nominal", "altered")}


def _gap(path: Path) -> tuple[ReplayGapRow, ...]:
    rollout = ingest(read_log(path), PROFILE, RULE).rollout
    assert rollout is not None
    return replay_gap(rollout, PROFILE, make_simulator(PROFILE, SimulationSettings(physics=NOMINAL), 20))


def test_a_twin_of_nominal_physics_is_not_above_the_floor(logs: dict[str, Path]) -> None:
    for row in _gap(logs["nominal"]):
        assert row.error.high < row.floor.low
        assert row.floor.mean < 5.0  # mm; more, and it would hide what it is to show


def test_a_twin_of_other_physics_is_above_the_floor(logs: dict[str, Path]) -> None:
    rows = _gap(logs["altered"])
    assert [row.horizon_s for row in rows] == [0.25, 0.5, 1.0]
    for row in rows:
        assert row.error.low > 2 * row.floor.high


def test_a_set_has_the_errors_of_its_least_exact_logs() -> None:
    fused, alone, guessed = (errors_of(bases) for bases in ({"mocap+imu"}, {"mocap", "mocap+imu"}, {"estimated"}))
    assert fused.root_lin_vel < alone.root_lin_vel < guessed.root_lin_vel
    assert errors_of(set()) == guessed


def test_the_command_prints_both_tables(logs: dict[str, Path], tmp_path: Path) -> None:
    runner, folder = CliRunner(), str(tmp_path / "set")
    made = runner.invoke(app, ["ingest", str(logs["altered"]), "-o", folder, "--split", "heldout", "--action-default",
                               "profile", "--action-scale", "0.25"])  # fmt: skip
    assert made.exit_code == 0, made.output
    result = runner.invoke(app, ["gaps", folder])
    assert result.exit_code == 0, result.output
    for expected in ("left_knee_joint", "pd_r2", "1 logs of a twin", "horizon", "floor"):
        assert expected in result.output
    assert runner.invoke(app, ["gaps", folder, "--split", "fit"]).exit_code != 0
