"""Conversion: round trips, resampling, robots by joint name, folders with a manifest, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from human_fixtures import human_fixtures, sample, write_asap_smpl
from motion_fixtures import robot_fixtures, swaying_motion
from typer.testing import CliRunner

from asap_core.errors import AsapError, ConfigError, InputFileError, UnknownNameError
from asap_core.motions.convert import Target, convert, writable
from asap_core.motions.convert_files import MANIFEST, convert_file, convert_folder
from asap_core.motions.doctor.examine import examine
from asap_core.motions.doctor.options import Options
from asap_core.motions.formats.amass import read_amass
from asap_core.motions.formats.table import FORMATS
from asap_core.motions.human import HumanMotion
from asap_core.motions.robot import RobotMotion
from asap_core.rotations import quat_conj, quat_mul, quat_to_rotvec
from flows.cli import app

NONE = Options()
ROBOT_TARGETS = [name for name, form in FORMATS.items() if form.write is not None]


def understood(path: Path, fps: float | None = None) -> RobotMotion:
    motion = examine(path, Options(fps=fps)).clips[0].motion
    assert isinstance(motion, RobotMotion)
    return motion


def test_writers_are_those_of_the_issue() -> None:
    wanted = {"asap_pkl", "lafan_csv", "beyondmimic_npz", "mjlab_npz", "gmr_pkl", "amp_npz", "robot_parquet"}
    assert wanted <= set(ROBOT_TARGETS)


@pytest.mark.parametrize("name", ROBOT_TARGETS)
def test_round_trip_is_exact_to_float32(name: str, tmp_path: Path) -> None:
    source = robot_fixtures(tmp_path / "in")["robot_parquet"]
    path = tmp_path / f"out{FORMATS[name].suffixes[0]}"
    convert_file(source, path, NONE, Target(format=name))
    made, motion = understood(path, 50 if name == "lafan_csv" else None), swaying_motion()
    assert made.joint_names == motion.joint_names
    assert made.fps == 50
    np.testing.assert_array_equal(made.joint_pos.astype(np.float32), motion.joint_pos.astype(np.float32))
    np.testing.assert_array_equal(made.root_pos.astype(np.float32), motion.root_pos.astype(np.float32))
    turn = quat_to_rotvec(quat_mul(quat_conj(made.root_quat), motion.root_quat))
    assert np.linalg.norm(turn, axis=1).max() < 5e-7


@pytest.mark.parametrize("fps", [24.0, 30.0, 59.94, 120.0])
def test_resampling_keeps_duration_and_course(fps: float, tmp_path: Path) -> None:
    source = robot_fixtures(tmp_path / "in")["robot_parquet"]
    convert_file(source, tmp_path / "out.parquet", NONE, Target(fps=fps))
    made, motion = RobotMotion.load(tmp_path / "out.parquet"), swaying_motion()
    assert made.fps == fps
    assert 0 <= motion.duration - made.duration < 1 / fps
    at = np.arange(made.num_frames) / fps
    knee = motion.joint_names.index("left_knee_joint")
    expected = np.interp(at, np.arange(motion.num_frames) / motion.fps, motion.joint_pos[:, knee])
    np.testing.assert_allclose(made.joint_pos[:, knee], expected, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(made.root_quat, axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("fps", [20.0, 25.0, 50.0, 59.94, 100.0, 120.0, 150.0])
def test_c3_c4_human_clips_keep_time_at_any_rate(fps: float, tmp_path: Path) -> None:
    """A 1 Hz arm swing of 10 s: the duration within one frame, the frequency within 1 %, the rate true."""
    motion = sample()
    count = round(10 * fps) + 1
    poses = np.zeros((count, 24, 3))
    poses[:, 0] = motion.joint_rotations[0, 0]
    poses[:, 16, 2] = 0.8 * np.sin(2 * np.pi * np.arange(count) / fps)
    trans = np.tile(motion.root_translation[0], (count, 1))
    path = tmp_path / "swing.npz"
    write_asap_smpl(path, motion, poses=poses.reshape(count, 72), trans=trans, mocap_framerate=np.array(fps))
    convert_file(path, tmp_path / "swing.parquet", NONE, Target(fps=30))
    made = HumanMotion.load(tmp_path / "swing.parquet")
    assert made.fps == 30
    assert abs((made.num_frames - 1) / 30 - 10) <= 1 / 30
    swing = made.joint_rotations[:, 16, 2]
    crossings = np.flatnonzero((swing[:-1] < 0) & (swing[1:] >= 0))
    exact = crossings - swing[crossings] / (swing[crossings + 1] - swing[crossings])
    assert 30 / np.diff(exact).mean() == pytest.approx(1.0, rel=0.01)


def test_joints_go_over_to_another_robot_by_name(tmp_path: Path) -> None:
    source = robot_fixtures(tmp_path / "in")["robot_parquet"]
    result = convert_file(source, tmp_path / "a.parquet", NONE, Target(robot="g1_23dof"))
    assert any("left out" in note and "left_wrist_yaw_joint" in note for note in result.notes)
    small, motion = RobotMotion.load(tmp_path / "a.parquet"), swaying_motion()
    assert small.robot == "g1_23dof"
    for column, name in enumerate(small.joint_names):
        np.testing.assert_array_equal(small.joint_pos[:, column], motion.joint_pos[:, motion.joint_names.index(name)])
    with pytest.raises(InputFileError, match=r"left_wrist_roll_joint.*--fill-default"):
        convert_file(tmp_path / "a.parquet", tmp_path / "b.parquet", NONE, Target(robot="g1_29dof"))
    convert_file(tmp_path / "a.parquet", tmp_path / "b.parquet", NONE, Target(robot="g1_29dof", fill_default=True))
    back = RobotMotion.load(tmp_path / "b.parquet")
    wrist = back.joint_pos[:, back.joint_names.index("left_wrist_roll_joint")]
    np.testing.assert_array_equal(wrist, 0)


def test_people_go_to_parquet_and_amass(tmp_path: Path) -> None:
    source = human_fixtures(tmp_path)["bvh"]
    convert_file(source, tmp_path / "a.parquet", NONE, Target())
    convert_file(source, tmp_path / "a.npz", NONE, Target())
    table, amass = HumanMotion.load(tmp_path / "a.parquet"), read_amass(tmp_path / "a.npz")
    np.testing.assert_allclose(amass.joint_rotations, table.joint_rotations, atol=1e-6)
    assert table.root_translation[:, 2].min() > 0.5  # metres, z up, from centimetres with y up
    with pytest.raises(ConfigError, match="holds no human motion"):
        convert_file(source, tmp_path / "a.pkl", NONE, Target(format="gmr_pkl"))


def test_gaps_are_bridged_only_when_asked(tmp_path: Path) -> None:
    source = human_fixtures(tmp_path)["tram"]
    with pytest.raises(InputFileError, match="--bridge"):
        convert_file(source, tmp_path / "a.parquet", Options(fps=30), Target())
    convert_file(source, tmp_path / "a.parquet", Options(fps=30), Target(bridge=True))
    assert HumanMotion.load(tmp_path / "a.parquet").num_frames == sample().num_frames


def test_c8_wrong_velocities_need_consent_and_come_out_right(tmp_path: Path) -> None:
    path = robot_fixtures(tmp_path / "in")["mjlab_npz"]
    arrays = dict(np.load(path))
    arrays["body_ang_vel_w"] = np.einsum("tbij,tbj->tbi", _matrices(arrays["body_quat_w"]), arrays["body_ang_vel_w"])
    np.savez(tmp_path / "bad.npz", **arrays)
    target = Target(format="mjlab_npz")
    with pytest.raises(InputFileError, match="--recompute-velocities"):
        convert_file(tmp_path / "bad.npz", tmp_path / "good.npz", NONE, target)
    convert_file(
        tmp_path / "bad.npz", tmp_path / "good.npz", NONE, Target(format="mjlab_npz", recompute_velocities=True)
    )
    assert examine(tmp_path / "good.npz", NONE).clean
    np.testing.assert_allclose(
        np.load(tmp_path / "good.npz")["body_ang_vel_w"], np.load(path)["body_ang_vel_w"], atol=1e-4
    )


def _matrices(quat: np.ndarray) -> np.ndarray:
    from asap_core.rotations import quat_to_matrix

    return quat_to_matrix(quat)


def test_an_open_question_stops_the_conversion(tmp_path: Path) -> None:
    path = robot_fixtures(tmp_path)["lafan_csv"]
    with pytest.raises(InputFileError, match="--fps"):
        convert(examine(path, NONE).clips[0], Target())


def test_targets_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'mjlab_npz'"):
        Target(format="mjlab_npy")
    with pytest.raises(UnknownNameError, match="g1_29dof"):
        Target(robot="g2")
    with pytest.raises(AsapError, match="fps"):
        Target(fps=-1)
    assert {"amass", "human_parquet"} <= set(writable())


def test_c12_a_folder_is_converted_and_nothing_vanishes(tmp_path: Path) -> None:
    robot_fixtures(tmp_path / "in")
    (tmp_path / "in" / "broken.npz").write_bytes(b"PK\x03\x04 no archive")
    (tmp_path / "in" / "LICENSE").write_text("text")
    np.savez(tmp_path / "in" / "female_stagei.npz", betas=np.zeros(16), gender="female")
    results = convert_folder(tmp_path / "in", tmp_path / "out", NONE, Target())
    listed = json.loads((tmp_path / "out" / MANIFEST).read_text())["clips"]
    assert len(listed) == len(results)
    reasons = {Path(item["source"]).name: item["reason"] for item in listed if item["output"] is None}
    assert set(reasons) == {"broken.npz", "LICENSE", "female_stagei.npz", "lafan_csv.csv", "kimodo_csv.csv"}
    assert "--fps" in reasons["lafan_csv.csv"]
    written = [item for item in listed if item["output"]]
    assert len({item["output"] for item in written}) == len(written) >= 15
    assert all(RobotMotion.load(item["output"]).num_frames > 1 for item in written)


@pytest.mark.parametrize("slash", ["", "/"])
def test_c29_paths_with_and_without_trailing_slash_are_the_same(slash: str, tmp_path: Path) -> None:
    robot_fixtures(tmp_path / "in")
    arguments = ["convert", f"{tmp_path}/in{slash}", f"{tmp_path}/out{slash}", "--to", "gmr_pkl"]
    assert CliRunner().invoke(app, arguments).exit_code == 1  # the two without rate are left out
    assert (tmp_path / "out" / "gmr_pkl.pkl").is_file()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out"]


def test_c29_flags_are_real_booleans(tmp_path: Path) -> None:
    source = robot_fixtures(tmp_path)["robot_parquet"]
    runner = CliRunner()
    result = runner.invoke(app, ["convert", str(source), str(tmp_path / "x.parquet"), "--fill-default", "False"])
    assert result.exit_code == 2
    assert not (tmp_path / "x.parquet").exists()
    assert runner.invoke(app, ["convert", str(source), str(tmp_path / "x.parquet")]).exit_code == 0


def test_doctor_exit_codes_and_json(tmp_path: Path) -> None:
    paths = robot_fixtures(tmp_path / "in")
    runner = CliRunner()
    clean = runner.invoke(app, ["doctor", str(paths["mjlab_npz"]), "--json"])
    assert clean.exit_code == 0
    found = json.loads(clean.stdout)["files"][str(paths["mjlab_npz"])]
    assert found["format"]["answer"] == "mjlab_npz"
    assert {d["question"]: d["answer"] for d in found["clips"][0]["decisions"]}["joint order"] == "unitree29"
    assert runner.invoke(app, ["doctor", str(paths["lafan_csv"])]).exit_code == 1
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04")
    both = runner.invoke(app, ["doctor", str(tmp_path / "broken.npz"), str(paths["mjlab_npz"])])
    assert both.exit_code == 2
    assert "unreadable" in both.stdout
    assert "mjlab_npz" in both.stdout
