"""Exports of a rollout: read back by the log readers, every field that the format holds is what it was."""

from __future__ import annotations

import json
import pickletools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from asap_core.errors import StageError, UnknownNameError
from asap_core.restricted_pickle import load_restricted
from asap_core.robots import get_profile
from asap_core.rollouts import Rollout
from asap_core.rollouts.export import FORMATS, export_rollout
from asap_core.rollouts.export.runs import runs
from asap_core.rollouts.ingest.readers import read_log
from asap_core.rollouts.ingest.streams import Kind, Log
from asap_core.rotations import quat_to_rotvec
from asap_core.simulators.protocol import RobotState

PROFILE = get_profile("g1_23dof")
LENGTHS = (9, 6)
RUNS = [np.arange(0, 4), np.arange(5, 8), np.arange(9, 14)]
"""Rows 4, 8 and 14 lead nowhere: a mask and two ends of episodes."""


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    rng = np.random.default_rng(3)
    rows, joints = sum(LENGTHS), PROFILE.num_joints
    quat = rng.normal(size=(rows, 4))
    valid = np.ones(rows, bool)
    valid[[4, 8, 14]] = False
    done = {name: rng.normal(size=(rows, joints)) for name in ("action", "joint_target", "joint_torque")}
    for values in done.values():
        values[[8, 14]] = np.nan
    three = {name: rng.normal(size=(rows, 3)) for name in ("root_pos", "root_lin_vel", "root_ang_vel")}
    joint = {name: rng.normal(size=(rows, joints)) for name in ("joint_pos", "joint_vel")}
    return Rollout(
        robot=PROFILE.name,
        joint_names=tuple(PROFILE.joint_names),
        control_dt=0.02,
        source={"kind": "twin"},
        state=RobotState(root_quat=quat / np.linalg.norm(quat, axis=1, keepdims=True), **three, **joint),
        valid=valid,
        episode=np.repeat([0, 1], LENGTHS),
        frame=np.append(np.arange(9), 100 + np.arange(6)),
        start_phase=np.repeat([0.0, 0.25], LENGTHS),
        motion=np.repeat(["squat", "kick"], LENGTHS),
        policy=np.full(rows, "policy_1"),
        policy_sha256=np.full(rows, "a" * 64),
        masks={"fall": np.arange(rows) == 4},
        **done,
    )


@pytest.fixture
def exported(rollout: Rollout, tmp_path: Path) -> Callable[[str, str], Path]:
    def export(format: str, name: str) -> Path:
        export_rollout(rollout, PROFILE, tmp_path / name, format)
        return tmp_path / name

    return export


def value(log: Log, kind: Kind, field: str) -> np.ndarray[Any, Any]:
    (stream,) = log.of_kind(kind)
    return stream.values[field]


def test_runs_are_the_unbroken_transitions(rollout: Rollout) -> None:
    found = runs(rollout)
    assert [rows.tolist() for rows in found] == [rows.tolist() for rows in RUNS]
    with pytest.raises(StageError, match="no usable transition"):
        runs(replace(rollout, valid=np.zeros(15, bool)))


def test_asap_pkl_is_one_row_later(rollout: Rollout, exported: Callable[[str, str], Path]) -> None:
    log = read_log(exported("asap_pkl", "delta.pkl"))
    before = np.concatenate(RUNS)
    after, state = before + 1, rollout.state
    np.testing.assert_array_equal(value(log, "joint_command", "action"), rollout.action[before])
    np.testing.assert_array_equal(value(log, "joint_state", "joint_pos"), state.joint_pos[after])
    np.testing.assert_array_equal(value(log, "joint_state", "joint_vel"), state.joint_vel[after])
    np.testing.assert_array_equal(value(log, "odometry", "pos"), state.root_pos[after])
    np.testing.assert_array_equal(value(log, "odometry", "quat")[:, [3, 0, 1, 2]], state.root_quat[after])
    np.testing.assert_array_equal(value(log, "odometry", "lin_vel"), state.root_lin_vel[after])
    np.testing.assert_array_equal(value(log, "odometry", "ang_vel"), state.root_ang_vel[after])
    np.testing.assert_array_equal(value(log, "joint_state", "episode"), np.repeat([0, 1, 2], [4, 3, 5]))
    np.testing.assert_array_equal(np.flatnonzero(value(log, "joint_state", "valid") == 0), [3, 6, 11])
    assert log.metadata["episodes"] == ["squat_0", "squat_1", "kick_2"]
    assert log.metadata["fps"] == [50.0, 50.0, 50.0]
    (command,) = log.of_kind("joint_command")
    assert command.declared["action_timing"] == "post_step"


def test_asap_pkl_holds_what_asaps_loader_consumes(rollout: Rollout, exported: Callable[[str, str], Path]) -> None:
    clip = load_restricted(exported("asap_pkl", "delta.pkl"))["kick_2"]
    after = RUNS[2] + 1
    assert clip["pose_aa"].shape == (5, 1 + 23 + 3, 3)
    np.testing.assert_allclose(clip["pose_aa"][:, 0], quat_to_rotvec(rollout.state.root_quat[after]), atol=1e-15)
    np.testing.assert_allclose(clip["pose_aa"][:, 1:24].sum(axis=2), rollout.state.joint_pos[after], atol=1e-15)
    assert not clip["pose_aa"][:, 24:].any()
    assert clip["fps"] == 50.0
    np.testing.assert_allclose(clip["motion_times"], (100 + np.arange(1, 6)) * 0.02)


def test_asap_pkl_names_no_module_that_numpy_1_lacks(exported: Callable[[str, str], Path]) -> None:
    data = exported("asap_pkl", "delta.pkl").read_bytes()
    modules = {str(argument) for code, argument, _ in pickletools.genops(data) if code.name == "GLOBAL"}
    assert modules == {"numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype"}


def test_pace_has_a_file_per_run(rollout: Rollout, exported: Callable[[str, str], Path]) -> None:
    folder = exported("pace", "pace")
    files = [folder / f"{name}.pt" for name in ("squat_0", "squat_1", "kick_2")]
    assert sorted(folder.iterdir()) == sorted(files)
    for file, rows in zip(files, RUNS, strict=True):
        log = read_log(file)
        np.testing.assert_array_equal(value(log, "joint_state", "joint_pos"), rollout.state.joint_pos[rows])
        np.testing.assert_array_equal(value(log, "joint_command", "joint_target"), rollout.joint_target[rows])
        np.testing.assert_array_equal(log.streams[0].receive_time, np.arange(len(rows)) * 0.02)


def test_lerobot_is_read_back(rollout: Rollout, exported: Callable[[str, str], Path]) -> None:
    log = read_log(exported("lerobot", "set"))
    rows, state = np.concatenate(RUNS), rollout.state
    assert log.notes == ()
    for kind, field, expected in (
        ("joint_state", "joint_pos", state.joint_pos),
        ("joint_state", "joint_vel", state.joint_vel),
        ("joint_state", "joint_torque", rollout.joint_torque),
        ("joint_command", "action", rollout.action),
        ("joint_command", "joint_target", rollout.joint_target),
        ("odometry", "pos", state.root_pos),
        ("odometry", "quat", state.root_quat),
        ("odometry", "lin_vel", state.root_lin_vel),
        ("odometry", "ang_vel", state.root_ang_vel),
    ):
        np.testing.assert_array_equal(value(log, kind, field), expected[rows])  # type: ignore[arg-type]
    (joints,), (base,) = log.of_kind("joint_state"), log.of_kind("odometry")
    assert joints.labels == rollout.joint_names
    assert base.declared["quat_order"] == "wxyz"
    np.testing.assert_array_equal(joints.values["episode"], np.repeat([0, 1, 2], [4, 3, 5]))
    np.testing.assert_array_equal(joints.source_time, (joints.values["frame"] * 0.02).astype(np.float32))
    assert (log.metadata["fps"], log.metadata["robot_type"]) == (50, "g1_23dof")


def test_lerobot_metadata_are_those_of_version_3(rollout: Rollout, exported: Callable[[str, str], Path]) -> None:
    folder = exported("lerobot", "set")
    info = json.loads((folder / "meta/info.json").read_text())
    assert (info["codebase_version"], info["total_episodes"], info["total_frames"]) == ("v3.0", 3, 12)
    assert info["features"]["action"] == {"dtype": "float64", "shape": [23], "names": list(rollout.joint_names)}
    episodes = pd.read_parquet(folder / "meta/episodes/chunk-000/file-000.parquet")
    assert episodes["dataset_from_index"].tolist() == [0, 4, 7]
    assert episodes["dataset_to_index"].tolist() == [4, 7, 12]
    tasks = pd.read_parquet(folder / "meta/tasks.parquet")
    assert tasks["task_index"].to_dict() == {"kick": 0, "squat": 1}
    data = pd.read_parquet(folder / "data/chunk-000/file-000.parquet")
    assert data["task_index"].tolist() == [1] * 7 + [0] * 5
    stats = json.loads((folder / "meta/stats.json").read_text())
    np.testing.assert_allclose(stats["action"]["mean"], rollout.action[np.concatenate(RUNS)].mean(axis=0))


def test_csv_holds_every_row(rollout: Rollout, exported: Callable[[str, str], Path]) -> None:
    path = exported("csv", "rollout.csv")
    log = read_log(path)
    state = rollout.state
    for kind, field, expected in (
        ("joint_state", "joint_pos", state.joint_pos),
        ("joint_state", "joint_vel", state.joint_vel),
        ("joint_state", "joint_torque", rollout.joint_torque),
        ("joint_command", "action", rollout.action),
        ("joint_command", "joint_target", rollout.joint_target),
        ("odometry", "pos", state.root_pos),
        ("odometry", "quat", state.root_quat),
        ("odometry", "lin_vel", state.root_lin_vel),
        ("odometry", "ang_vel", state.root_ang_vel),
        ("odometry", "valid", rollout.valid),
        ("odometry", "episode", rollout.episode),
        ("odometry", "frame", rollout.frame),
    ):
        np.testing.assert_array_equal(value(log, kind, field), expected)  # type: ignore[arg-type]
    (joints,) = log.of_kind("joint_state")
    assert joints.labels == rollout.joint_names
    np.testing.assert_allclose(joints.receive_time, np.append(np.arange(9), np.arange(6)) * 0.02, rtol=0, atol=1e-15)
    assert joints.declared["time_unit"] == "s"
    assert log.notes == (
        "not read, no known meaning or a second name for a field: columns start_phase, motion, policy, policy_sha256, "
        "mask.fall",
    )
    table = pd.read_csv(path)
    assert table["motion"].tolist() == rollout.motion.tolist()
    np.testing.assert_array_equal(table["start_phase"], rollout.start_phase)
    np.testing.assert_array_equal(table["mask.fall"], rollout.masks["fall"])


def test_unknown_format_and_another_robot_are_refused(rollout: Rollout, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'lerobot'"):
        export_rollout(rollout, PROFILE, tmp_path / "x", "lerobott")
    with pytest.raises(StageError, match="of h1 with 23 joints, not g1_23dof"):
        export_rollout(replace(rollout, robot="h1"), PROFILE, tmp_path / "x", "csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", list(FORMATS))
def test_an_export_replaces_what_was_there(rollout: Rollout, tmp_path: Path, format: str) -> None:
    for _ in range(2):
        export_rollout(rollout, PROFILE, tmp_path / "out", format)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
