from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap_core.errors import InputFileError
from asap_core.motions.human import HumanMotion
from asap_core.motions.robot import RobotMotion
from asap_core.motions.skeleton import INDEX, NUM_JOINTS, body_offsets
from asap_core.motions.tables import Source
from asap_core.rotations import rotvec_to_quat

SOURCE = Source("clip.npz", "00ff", "test")


@pytest.fixture
def human() -> HumanMotion:
    rng = np.random.default_rng(0)
    return HumanMotion("clip", 29.97, rng.normal(size=(7, 24, 3)), rng.normal(size=(7, 3)), body_offsets(), SOURCE)


@pytest.fixture
def robot() -> RobotMotion:
    rng = np.random.default_rng(1)
    quat = rotvec_to_quat(rng.normal(size=(16, 3)) * 0.2)
    return RobotMotion("clip", "r", 30.0, rng.normal(size=(16, 3)), quat, ("a", "b"), rng.normal(size=(16, 2)), SOURCE)


def test_human_joint_positions_follow_an_elbow_by_hand(human: HumanMotion) -> None:
    rotations = np.zeros((2, NUM_JOINTS, 3))
    rotations[1, INDEX["L_Elbow"]] = [0.0, -np.pi / 2, 0.0]
    motion = replace(human, joint_rotations=rotations, root_translation=np.ones((2, 3)))
    positions = motion.joint_positions()
    forearm = np.linalg.norm(motion.skeleton[INDEX["L_Wrist"]])
    bent = positions[1, INDEX["L_Wrist"]] - positions[1, INDEX["L_Elbow"]]
    np.testing.assert_allclose(positions[0, 0], 1.0)
    np.testing.assert_allclose(bent, [0.0, 0.0, forearm], atol=1e-12)


def test_human_file_round_trip_is_exact(human: HumanMotion, tmp_path: Path) -> None:
    judged = human.with_screening({"accepted": True, "reasons": []})
    judged.save(tmp_path / "a.parquet")
    back = HumanMotion.load(tmp_path / "a.parquet")
    np.testing.assert_array_equal(back.joint_rotations, human.joint_rotations)
    np.testing.assert_array_equal(back.root_translation, human.root_translation)
    np.testing.assert_array_equal(back.skeleton, human.skeleton)
    assert (back.name, back.fps, back.source, back.screening) == ("clip", 29.97, SOURCE, judged.screening)


def test_confidence_is_kept_by_file_screen_and_resampling(human: HumanMotion, tmp_path: Path) -> None:
    ramp = np.linspace(0.0, 1.0, 7)[:, None] * np.linspace(0.1, 1.0, NUM_JOINTS)
    sure = replace(human, confidence=ramp).with_screening({"accepted": True})
    sure.save(tmp_path / "a.parquet")
    back = HumanMotion.load(tmp_path / "a.parquet")
    np.testing.assert_array_equal(back.confidence, ramp)
    twice = back.resample(2 * 29.97)
    assert twice.confidence is not None
    np.testing.assert_allclose(twice.confidence[::2], ramp, atol=1e-12)
    np.testing.assert_allclose(twice.confidence[1], ramp[:2].mean(axis=0), atol=1e-12)


def test_a_file_without_confidence_loads(human: HumanMotion, tmp_path: Path) -> None:
    human.save(tmp_path / "a.parquet")
    assert HumanMotion.load(tmp_path / "a.parquet").confidence is None


def test_confidence_beyond_one_is_refused(human: HumanMotion) -> None:
    with pytest.raises(InputFileError, match=r"clip.npz: confidence: found 0 to 1.5, expected 0 to 1"):
        replace(human, confidence=np.linspace(0.0, 1.5, 7 * NUM_JOINTS).reshape(7, NUM_JOINTS))


def test_robot_file_round_trip_is_exact_and_has_named_columns(robot: RobotMotion, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    robot.save(tmp_path / "a.parquet")
    back = RobotMotion.load(tmp_path / "a.parquet")
    for field in ("root_pos", "root_quat", "joint_pos"):
        np.testing.assert_array_equal(getattr(back, field), getattr(robot, field))
    assert (back.robot, back.fps, back.joint_names, back.source) == ("r", 30.0, ("a", "b"), SOURCE)
    assert pq.read_schema(tmp_path / "a.parquet").names[-3:] == ["root_quat_z", "a", "b"]


def test_equal_records_give_equal_bytes(robot: RobotMotion, tmp_path: Path) -> None:
    robot.save(tmp_path / "a.parquet")
    robot.save(tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_resampling_keeps_the_frames_that_fall_together(robot: RobotMotion) -> None:
    fast = robot.resample(50.0)
    assert fast.duration == pytest.approx(robot.duration)
    np.testing.assert_allclose(fast.joint_pos[::5], robot.joint_pos[::3], atol=1e-12)
    np.testing.assert_allclose(np.abs((fast.root_quat[::5] * robot.root_quat[::3]).sum(1)), 1.0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(fast.root_quat, axis=1), 1.0, atol=1e-12)


def test_resampling_interpolates_the_orientation_on_the_arc(robot: RobotMotion) -> None:
    half = RobotMotion(
        "turn",
        "r",
        1.0,
        np.zeros((2, 3)),
        rotvec_to_quat(np.array([[0, 0, 0], [0, 0, 1.0]])),
        ("a",),
        np.zeros((2, 1)),
        SOURCE,
    ).resample(2.0)
    np.testing.assert_allclose(half.root_quat[1], rotvec_to_quat(np.array([0, 0, 0.5])), atol=1e-12)


def test_resampling_never_runs_past_the_end(robot: RobotMotion) -> None:
    odd = robot.resample(44.0)
    assert robot.duration - 1 / 44.0 < odd.duration <= robot.duration


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"root_pos": np.zeros((16, 2))}, r"root_pos: found shape \(16, 2\), expected \(T, 3\)"),
        ({"joint_pos": np.zeros((16, 3))}, r"joint_pos: found shape \(16, 3\), expected \(16, 2\)"),
        ({"root_quat": np.full((16, 4), 0.6)}, "root_quat: found length 1.2000 in frame 0"),
        ({"root_pos": np.full((16, 3), np.nan)}, "root_pos: found 48 NaN or infinite values, the first in frame 0"),
        ({"fps": 0.0}, "fps: found 0.0"),
    ],
)
def test_impossible_robot_motion_is_refused(robot: RobotMotion, change: dict, words: str) -> None:
    with pytest.raises(InputFileError, match=words):
        replace(robot, **change)


def test_nan_in_a_file_names_file_field_and_frame(robot: RobotMotion, tmp_path: Path) -> None:
    object.__setattr__(robot, "joint_pos", np.where(np.arange(32).reshape(16, 2) == 20, np.nan, robot.joint_pos))
    robot.save(tmp_path / "bad.parquet")
    with pytest.raises(InputFileError, match=r"bad\.parquet: joint_pos: found 1 NaN .* frame 10"):
        RobotMotion.load(tmp_path / "bad.parquet")


def test_files_that_are_not_ours_are_refused(robot: RobotMotion, human: HumanMotion, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with pytest.raises(InputFileError, match="missing"):
        RobotMotion.load(path)
    human.save(path)
    with pytest.raises(InputFileError, match="found 'asap-human-motion' version 1, expected 'asap-robot-motion'"):
        RobotMotion.load(path)
    robot.save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputFileError, match="not a whole Parquet file"):
        RobotMotion.load(path)
