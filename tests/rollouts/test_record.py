"""The rollout record: what is written is read back bit by bit, and damaged files are refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from asap_core.errors import InputFileError
from asap_core.robots import get_profile
from asap_core.rollouts import Rollout, check_disjoint, concatenate, load_split, split_folder
from asap_core.simulators.protocol import RobotState

PROFILE = get_profile("g1_23dof")


def make_rollout(seed: int = 0, lengths: tuple[int, ...] = (6, 4), policy: str = "policy_1") -> Rollout:
    rng = np.random.default_rng(seed)
    rows, joints = sum(lengths), len(PROFILE.joint_names)
    quat = rng.normal(size=(rows, 4))
    last = np.zeros(rows, bool)
    last[np.cumsum(lengths) - 1] = True
    done = {name: rng.normal(size=(rows, joints)) for name in ("action", "joint_target", "joint_torque")}
    for values in done.values():
        values[last] = np.nan
    return Rollout(
        robot=PROFILE.name,
        joint_names=tuple(PROFILE.joint_names),
        control_dt=0.02,
        source={"kind": "twin"},
        state=RobotState(
            root_pos=rng.normal(size=(rows, 3)),
            root_quat=quat / np.linalg.norm(quat, axis=1, keepdims=True),
            root_lin_vel=rng.normal(size=(rows, 3)),
            root_ang_vel=rng.normal(size=(rows, 3)),
            joint_pos=rng.normal(size=(rows, joints)),
            joint_vel=rng.normal(size=(rows, joints)),
        ),
        valid=~last,
        episode=np.repeat(np.arange(len(lengths)), lengths),
        frame=np.concatenate([np.arange(n) for n in lengths]),
        start_phase=np.zeros(rows),
        motion=np.full(rows, "squat"),
        policy=np.full(rows, policy),
        policy_sha256=np.full(rows, f"sha-{policy}"),
        **done,
    )


def test_round_trip_is_exact(tmp_path: Path) -> None:
    rollout = make_rollout()
    rollout.save(tmp_path / "r.parquet")
    again = Rollout.load(tmp_path / "r.parquet", PROFILE)
    for name in RobotState.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(again.state, name), getattr(rollout.state, name))
    for name in ("action", "joint_target", "joint_torque", "valid", "episode", "frame", "start_phase", "motion"):
        np.testing.assert_array_equal(getattr(again, name), getattr(rollout, name))
    assert (again.source, again.control_dt, again.fps) == ({"kind": "twin"}, 0.02, 50.0)


def test_pandas_reads_it_with_named_columns(tmp_path: Path) -> None:
    rollout = make_rollout()
    rollout.save(tmp_path / "r.parquet")
    frame = pd.read_parquet(tmp_path / "r.parquet")
    column = PROFILE.joint_names.index("left_knee_joint")
    np.testing.assert_array_equal(frame["joint_pos.left_knee_joint"], rollout.state.joint_pos[:, column])
    assert {"root_quat.w", "root_ang_vel.z", "joint_target.left_knee_joint", "policy_sha256"} <= set(frame.columns)


def test_transitions_stay_within_episodes() -> None:
    rollout = make_rollout()
    assert rollout.transitions().tolist() == [0, 1, 2, 3, 4, 6, 7, 8]
    masked = replace(rollout, valid=rollout.valid & (np.arange(10) != 2))
    assert masked.transitions().tolist() == [0, 1, 3, 4, 6, 7, 8]


def test_segments_stay_within_episodes_and_masks() -> None:
    rollout = make_rollout()
    assert rollout.segment_starts(2).tolist() == [0, 2, 6]
    assert rollout.segment_starts(2, 1).tolist() == [0, 1, 2, 3, 6, 7]
    assert rollout.segment_starts(6).tolist() == []
    masked = replace(rollout, valid=rollout.valid & (np.arange(10) != 2))
    assert masked.segment_starts(2, 1).tolist() == [0, 3, 6, 7]


def test_joined_episodes_stay_apart() -> None:
    joined = concatenate([make_rollout(0), make_rollout(1)])
    assert joined.num_rows == 20
    assert len(np.unique(joined.episode)) == 4
    assert len(joined.transitions()) == 16


def test_missing_and_truncated_files(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="missing"):
        Rollout.load(tmp_path / "none.parquet")
    make_rollout().save(tmp_path / "r.parquet")
    content = (tmp_path / "r.parquet").read_bytes()
    (tmp_path / "half.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputFileError, match="half-written"):
        Rollout.load(tmp_path / "half.parquet")


def test_nan_in_a_used_row_is_refused_by_field_and_row(tmp_path: Path) -> None:
    rollout = make_rollout()
    rollout.joint_target[3, 5] = np.nan
    rollout.save(tmp_path / "r.parquet")
    with pytest.raises(InputFileError, match=r"field joint_target: not finite in row 3"):
        Rollout.load(tmp_path / "r.parquet")


def test_missing_column_wrong_version_and_other_robot(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    make_rollout().save(path)
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["joint_vel.left_knee_joint"]), tmp_path / "column.parquet")
    with pytest.raises(InputFileError, match=r"field joint_vel\.left_knee_joint: column missing"):
        Rollout.load(tmp_path / "column.parquet")
    header = json.loads(table.schema.metadata[b"asap"]) | {"version": 99}
    pq.write_table(table.replace_schema_metadata({b"asap": json.dumps(header)}), tmp_path / "version.parquet")
    with pytest.raises(InputFileError, match="format/version"):
        Rollout.load(tmp_path / "version.parquet")
    replace(make_rollout(), robot="h1").save(tmp_path / "robot.parquet")
    with pytest.raises(InputFileError, match="found 'h1'"):
        Rollout.load(tmp_path / "robot.parquet", PROFILE)


def test_degrees_and_unnormalised_quaternions_are_refused(tmp_path: Path) -> None:
    rollout = make_rollout()
    rollout.state.joint_vel[:] *= 180
    rollout.save(tmp_path / "deg.parquet")
    with pytest.raises(InputFileError, match="degrees"):
        Rollout.load(tmp_path / "deg.parquet")
    rollout = make_rollout()
    rollout.state.root_quat[4] *= 1.1
    rollout.save(tmp_path / "quat.parquet")
    with pytest.raises(InputFileError, match=r"root_quat: norm 1.1000 in row 4"):
        Rollout.load(tmp_path / "quat.parquet")


def test_splits(tmp_path: Path) -> None:
    for seed, split in enumerate(("fit", "validation", "heldout")):
        make_rollout(seed, policy=f"policy_{seed}").save(split_folder(tmp_path, split) / "a.parquet")
    loaded = {split: load_split(tmp_path, split, PROFILE) for split in ("fit", "validation", "heldout")}
    check_disjoint(loaded, tmp_path)
    with pytest.raises(InputFileError, match="share policy"):
        check_disjoint({**loaded, "heldout": loaded["fit"]}, tmp_path)
    same_start = replace(loaded["fit"], policy_sha256=np.full(10, "another"))
    with pytest.raises(InputFileError, match="share a start state"):
        check_disjoint({**loaded, "validation": same_start}, tmp_path)
    with pytest.raises(InputFileError, match="asap run collect"):
        load_split(tmp_path / "nothing", "fit")


def test_rollouts_at_another_rate_are_refused(tmp_path: Path) -> None:
    folder = split_folder(tmp_path, "fit")
    folder.mkdir()
    make_rollout().save(folder / "r.parquet")
    with pytest.raises(InputFileError, match=r"r\.parquet: field control_dt: found 0.02 s, expected 0.01 s"):
        load_split(tmp_path, "fit", PROFILE, 0.01)
    replace(make_rollout(), control_dt=0.01).save(folder / "s.parquet")
    with pytest.raises(InputFileError, match="different robots or rates"):
        load_split(tmp_path, "fit", PROFILE)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"[1]", "field header"),
        (b"\xff", "field header"),
        ({"joint_names": 3}, "field joint_names: found 3, expected a list"),
    ],
)
def test_damaged_header_is_refused(tmp_path: Path, header: bytes | dict, message: str) -> None:
    make_rollout().save(tmp_path / "r.parquet")
    table = pq.read_table(tmp_path / "r.parquet")
    if isinstance(header, dict):
        header = json.dumps(json.loads(table.schema.metadata[b"asap"]) | header).encode()
    pq.write_table(table.replace_schema_metadata({b"asap": header}), tmp_path / "r.parquet")
    with pytest.raises(InputFileError, match=message):
        Rollout.load(tmp_path / "r.parquet")


def test_column_of_text_is_refused(tmp_path: Path) -> None:
    make_rollout().save(tmp_path / "r.parquet")
    table = pq.read_table(tmp_path / "r.parquet")
    place = table.column_names.index("root_pos.x")
    text = table.set_column(place, "root_pos.x", [["far"] * len(table)])
    pq.write_table(text, tmp_path / "r.parquet")
    with pytest.raises(InputFileError, match="of a wrong type"):
        Rollout.load(tmp_path / "r.parquet")
