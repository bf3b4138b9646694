"""The data set of ingested logs and the command that fills it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from asap_core.errors import InputFileError, StageError
from asap_core.robots import get_profile
from asap_core.rollouts.dataset import load_split
from asap_core.rollouts.ingest import robot_dataset
from asap_core.rollouts.ingest.ingest import IngestSettings
from asap_core.rollouts.ingest.twin_log import SensorSettings, TwinRecord, write_twin_npz
from asap_core.rollouts.record import Rollout
from flows.cli import app
from tasks.ingest import ActionSource, LogResult, Request, ingest_logs

PROFILE = get_profile("g1_23dof")
ACTIONS = ActionSource(default="profile", scale=0.25)
runner = CliRunner()
pytestmark = pytest.mark.usefixtures("plain_pages")


@pytest.fixture(scope="module")
def short_npz(short_twin: TwinRecord, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "motion_0.npz"
    write_twin_npz(path, short_twin, seed=0)
    return path


def _ingest(path: Path, output: Path | None, **changes: Any) -> list[LogResult]:
    split = changes.pop("split", "fit")
    return ingest_logs(Request((path,), output, split, PROFILE, changes.pop("actions", ACTIONS), **changes))


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def _loads(folder: Path) -> None:
    """Every Parquet file is whole, every rollout valid, nothing half-written lies about."""
    for path in folder.rglob("*"):
        if path.suffix == ".parquet":
            pq.read_table(path)
            if path.parent.name.startswith("split="):
                Rollout.load(path, PROFILE)
        elif path.suffix == ".json":
            json.loads(path.read_text())
        else:
            assert path.is_dir() or path.suffix == ".png", path


@pytest.fixture(scope="module")
def dataset(short_npz: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One log, its page with it."""
    folder = tmp_path_factory.mktemp("set") / "kind=twin"
    assert [result.outcome for result in _ingest(short_npz, folder)] == ["added"]
    return folder


def test_all_parts_are_there(dataset: Path, short_twin: TwinRecord) -> None:
    stem = next((dataset / "split=fit").glob("*.parquet")).stem
    assert set(_bytes(dataset)) == {
        "manifest.json", f"reports/{stem}.json", f"reports/{stem}.png", f"split=fit/{stem}.parquet",
        f"streams/{stem}.parquet",
    }  # fmt: skip
    assert (dataset / "reports" / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
    report = json.loads((dataset / "reports" / f"{stem}.json").read_text())
    assert len(report["gaps"]) == 23
    assert all(decision["text"] for decision in report["decisions"])
    streams = pq.read_table(dataset / "streams" / f"{stem}.parquet")
    assert streams.num_rows == len(short_twin.command_time)
    assert streams.column("time").type == "double"
    assert "command.joint_target.left_knee_joint" in streams.column_names


def test_masks_and_marks_are_in_the_rollouts(dataset: Path) -> None:
    rollout = load_split(dataset, "fit", PROFILE, 0.02, "twin")
    table = pq.read_table(next((dataset / "split=fit").glob("*.parquet")))
    assert "mask.action_saturated" in table.column_names
    assert set(rollout.masks) >= {"action_saturated", "fall", "frozen", "torque_saturated", "state_gap", "base_gap"}
    assert rollout.source["kind"] == "twin"


def test_the_same_log_again_changes_no_byte(dataset: Path, short_npz: Path) -> None:
    before = _bytes(dataset)
    assert [result.outcome for result in _ingest(short_npz, dataset)] == ["already there"]
    assert _bytes(dataset) == before


def test_other_settings_are_refused_without_replace(short_npz: Path, tmp_path: Path) -> None:
    _ingest(short_npz, tmp_path / "set")
    before = _bytes(tmp_path / "set")
    other = IngestSettings.model_validate({"quality": {"min_run_s": 2.0}})
    refused = _ingest(short_npz, tmp_path / "set", settings=other)[0]
    assert refused.outcome == "left out"
    assert "--replace" in str(refused.problem)
    assert _bytes(tmp_path / "set") == before
    assert _ingest(short_npz, tmp_path / "set", settings=other, replace=True)[0].outcome == "replaced"


def test_a_log_is_in_one_split_only(short_npz: Path, tmp_path: Path) -> None:
    _ingest(short_npz, tmp_path / "set")
    assert _ingest(short_npz, tmp_path / "set", split="heldout")[0].outcome == "left out"
    _ingest(short_npz, tmp_path / "set", split="heldout", replace=True)
    assert not list((tmp_path / "set" / "split=fit").glob("*.parquet"))
    assert len(list((tmp_path / "set" / "split=heldout").glob("*.parquet"))) == 1


@pytest.mark.parametrize("step", ["_write_columns", "write_json", "split_folder", "write_manifest"])
def test_a_kill_between_writes_leaves_a_set_that_loads_and_can_be_completed(
    step: str, short_twin: TwinRecord, short_npz: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second, folder, whole = tmp_path / "motion_1.npz", tmp_path / "set", tmp_path / "whole"
    write_twin_npz(second, short_twin, seed=1)
    for path in (short_npz, second):
        _ingest(path, whole)
    _ingest(short_npz, folder)
    before = load_split(folder, "fit", PROFILE, 0.02, "twin")

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(robot_dataset, step, killed)
        with pytest.raises(KeyboardInterrupt):
            _ingest(second, folder)
    _loads(folder)
    assert load_split(folder, "fit", PROFILE, 0.02, "twin").num_rows >= before.num_rows
    _ingest(second, folder)
    assert _bytes(folder) == _bytes(whole)


def test_a_twin_is_never_taken_for_a_robot(dataset: Path) -> None:
    with pytest.raises(InputFileError, match="never mixed"):
        load_split(dataset, "fit", PROFILE, 0.02, "robot")


def test_robot_and_twin_are_refused_in_one_set(short_twin: TwinRecord, short_npz: Path, tmp_path: Path) -> None:
    with np.load(short_npz) as content:
        real = {name: content[name] for name in content.files if name != "is_twin"}
    np.savez(tmp_path / "motion_9.npz", allow_pickle=False, **real)
    _ingest(short_npz, tmp_path / "set")
    result = _ingest(tmp_path / "motion_9.npz", tmp_path / "set")[0]
    assert result.outcome == "left out"
    assert "never mixed" in str(result.problem)
    assert _ingest(tmp_path / "motion_9.npz", tmp_path / "robots")[0].outcome == "added"
    assert load_split(tmp_path / "robots", "fit", PROFILE, 0.02, "robot").source["kind"] == "robot"


def test_measured_and_estimated_base_velocities_are_refused_in_one_set(short_npz: Path, tmp_path: Path) -> None:
    with np.load(short_npz) as content:
        blind = {name: content[name] for name in content.files if name not in ("pos", "quat", "lin_vel", "ang_vel")}
    np.savez(tmp_path / "motion_7.npz", allow_pickle=False, **blind)
    assert _ingest(tmp_path / "motion_7.npz", tmp_path / "set")[0].outcome == "added"
    before = _bytes(tmp_path / "set")
    result = _ingest(short_npz, tmp_path / "set")[0]
    assert result.outcome == "left out"
    assert "estimated" in str(result.problem)
    assert _bytes(tmp_path / "set") == before


def test_a_folder_of_collect_is_refused(short_npz: Path, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "manifest.json").write_text('{"source": {"kind": "twin"}, "files": []}')
    assert "manifest.json" in str(_ingest(short_npz, tmp_path / "set")[0].problem)


def test_two_logs_of_one_run_have_rows_of_their_own(dataset: Path, short_twin: TwinRecord, tmp_path: Path) -> None:
    second = tmp_path / "motion_1.npz"
    write_twin_npz(second, short_twin, 1, SensorSettings(encoder_noise=2e-4))
    _ingest(second, tmp_path / "set")
    _ingest(second, tmp_path / "set")
    assert len(json.loads((tmp_path / "set" / "manifest.json").read_text())["logs"]) == 1


def test_the_folder_can_be_kept_under_dvc(dataset: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    dvc = [sys.executable, "-m", "dvc"]
    subprocess.run([*dvc, "init", "-q"], cwd=tmp_path, check=True)
    target = tmp_path / "data" / "rollouts" / "kind=twin"
    target.parent.mkdir(parents=True)
    for name, content in _bytes(dataset).items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(content)
    subprocess.run([*dvc, "add", "-q", str(target)], cwd=tmp_path, check=True)
    assert target.with_suffix(target.suffix + ".dvc").exists() or (target.parent / "kind=twin.dvc").exists()


def _cli(*arguments: str) -> Any:
    return runner.invoke(app, ["ingest", *arguments])


def test_the_command_looks_without_an_output(short_npz: Path) -> None:
    result = _cli(str(short_npz))
    assert result.exit_code == 0, result.output
    for expected in ("looked at", "joint order", "quaternion order", "time unit", "50.0 Hz", "rmse_rad", "usable: "):
        assert expected in result.output


def test_json_is_one_object_with_evidence(short_npz: Path, tmp_path: Path) -> None:
    result = _cli(str(short_npz), "-o", str(tmp_path / "set"), "--action-default", "profile", "--action-scale", "0.25",
                  "--json")  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found[0]["outcome"] == "added"
    assert found[0]["usable_s"] > 5.5
    assert found[0]["format"] == "asap_npz"


def test_a_log_with_an_error_gives_1_and_one_left_out_gives_2(short_npz: Path, tmp_path: Path) -> None:
    with np.load(short_npz) as content:
        arrays = dict(content)
    arrays["joint_pos"] = np.degrees(arrays["joint_pos"])
    arrays["joint_vel"] = np.degrees(arrays["joint_vel"])
    np.savez(tmp_path / "motion_2.npz", allow_pickle=False, **arrays)
    assert _cli(str(tmp_path / "motion_2.npz")).exit_code == 1
    (tmp_path / "motion_3.npz").write_bytes(b"PK\x03\x04 nothing")
    both = _cli(str(tmp_path))
    assert both.exit_code == 2
    assert "motion_3.npz" in both.output
    assert "motion_2.npz" in both.output


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--split", "test"], "split"),
        (["--up-axis", "w"], "--up-axis"),
        (["--imu-quat-order", "xwyz"], "--imu-quat-order"),
        (["--control-dt", "-1"], "--control-dt"),
        (["--robot", "g1_24dof"], "g1_24dof"),
        (["-o", "OUT"], "--action-default and --action-scale"),
        (["-o", "OUT", "--action-scale", "0.25"], "--action-default"),
        (["-o", "OUT", "--action-default", "zero", "--action-scale", "0.25"], "--action-default"),
        (["-o", "OUT", "--action-default", "profile", "--action-scale", "0"], "--action-scale"),
    ],
)
def test_bad_options_are_named(short_npz: Path, tmp_path: Path, arguments: list[str], named: str) -> None:
    output = str(tmp_path / "set")
    result = _cli(str(short_npz), *[output if a == "OUT" else a for a in arguments])
    assert result.exit_code != 0
    assert named in (result.output + str(result.exception or ""))
    assert not isinstance(result.exception, (ValueError, KeyError, TypeError))
    assert not Path(output).exists()


def test_an_unreadable_report_is_said(short_npz: Path, tmp_path: Path) -> None:
    _ingest(short_npz, tmp_path / "set")
    report = next((tmp_path / "set" / "reports").glob("*.json"))
    report.write_text("{")
    result = _ingest(short_npz, tmp_path / "set")[0]
    assert result.outcome == "left out"
    assert report.name in str(result.problem)


def test_append_refuses_a_second_kind_directly(dataset: Path) -> None:
    stem = next((dataset / "split=fit").glob("*.parquet")).stem
    entry = robot_dataset.Entry("f" * 64, "key", None, {"time": np.arange(3.0)}, {"kind": "robot"})
    with pytest.raises(StageError, match="never mixed"):
        robot_dataset.append(dataset, "fit", entry)
    assert stem in _bytes(dataset)["manifest.json"].decode()
