"""What the video bench draws, and that its scorer gives known errors for known differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from asap_core.errors import InputFileError
from asap_core.reconstruction.camera import Camera
from asap_core.reconstruction.landmarks import LandmarkTrack

pytest.importorskip("cv2", reason="extra video absent")
from asap_core.evaluation.video_bench.draws import HELD_OUT, SIDE, TUNED_ON, bench_motions, draw_shot, made_motion
from asap_core.evaluation.video_bench.pose2sim import read_qca
from asap_core.evaluation.video_bench.raw import raw_landmarks
from asap_core.evaluation.video_bench.score import SCORED, of_keypoints, of_landmarks, of_skeleton, score

FRAMES = 150
HIPS = [SCORED.index("left_hip"), SCORED.index("right_hip")]


@pytest.fixture(scope="module")
def true() -> np.ndarray:
    rng = np.random.default_rng(3)
    shape = rng.normal(0.0, 0.4, (12, 3))
    sway = np.sin(np.arange(FRAMES)[:, None, None] / 9.0 + rng.normal(size=(12, 3)))
    path = np.linspace([3.0, 0.0, 1.0], [4.0, 0.5, 1.0], FRAMES)[:, None]
    return shape + 0.1 * sway + path


def test_the_truth_has_no_error(true: np.ndarray) -> None:
    figures = score(true, true, 30.0)
    assert max(figures.values()) < 1e-9
    assert set(figures) == {"mpjpe_mm", "pa_mpjpe_mm", "drift_mm", "acceleration_mm"}


def test_another_place_is_no_error(true: np.ndarray) -> None:
    assert max(score(true + np.array([0.3, -0.2, 0.1]), true, 30.0).values()) < 1e-9


def test_one_joint_off_counts_by_its_share(true: np.ndarray) -> None:
    found = true.copy()
    found[:, SCORED.index("left_wrist"), 0] += 0.12
    figures = score(found, true, 30.0)
    assert figures["mpjpe_mm"] == pytest.approx(120.0 / 12)
    assert figures["drift_mm"] == pytest.approx(0.0, abs=1e-9)


def test_size_and_heading_count_only_before_the_best_similarity(true: np.ndarray) -> None:
    turn = Rotation.from_euler("z", 20, degrees=True).as_matrix()
    figures = score(1.1 * true @ turn.T, true, 30.0)
    assert figures["pa_mpjpe_mm"] < 1e-9
    assert figures["mpjpe_mm"] > 50


def test_a_mirrored_person_is_no_similar_one(true: np.ndarray) -> None:
    assert score(true * (1.0, -1.0, 1.0), true, 30.0)["pa_mpjpe_mm"] > 50


def test_drift_is_that_of_the_first_four_seconds(true: np.ndarray) -> None:
    away = 0.05 * np.arange(FRAMES) / 30.0  # 5 cm/s: 0 to 20 cm
    found = true + away[:, None, None] * [1.0, 0.0, 0.0]
    assert score(found, true, 30.0)["drift_mm"] == pytest.approx(100.0)
    assert score(found, true, 30.0)["mpjpe_mm"] < 1e-9


@pytest.mark.parametrize("fps", [30.0, 60.0])
def test_acceleration_is_per_frame_at_thirty(true: np.ndarray, fps: float) -> None:
    time = np.arange(FRAMES) / fps
    found = true + (0.5 * 4.5 * time**2)[:, None, None] * [0.0, 0.6, 0.8]  # 4.5 m/s² = 5 mm/frame² at 30
    assert score(found, true, fps)["acceleration_mm"] == pytest.approx(5.0)


def test_joints_of_the_same_name_are_compared() -> None:
    shot = draw_shot(made_motion("squat"), 0)
    skeleton, keypoints = of_skeleton(shot.joints()), of_keypoints(shot.keypoints())
    assert skeleton.shape == keypoints.shape == (shot.motion.num_frames, 12, 3)
    assert np.linalg.norm(skeleton - keypoints, axis=-1).max() < 0.08
    named = np.tile(np.arange(33.0)[:, None], (2, 1, 3))
    np.testing.assert_array_equal(of_landmarks(named)[0, :, 0], [11, 12, 13, 14, 15, 16, 23, 24, 25, 26, 27, 28])


def test_raw_places_exact_landmarks_exactly(true: np.ndarray) -> None:
    camera = Camera(650.0, 0.15, 0.0, 1.4, (320.0, 320.0))
    points = np.repeat(true, 3, axis=1)[:, :33]
    seen = camera.seen(points)
    metric = seen - seen[:, :1]
    found = np.ones(FRAMES, bool)
    found[7] = False
    pixels = np.where(found[:, None, None], camera.project(seen), np.nan)
    times = np.arange(FRAMES) / 30.0
    track = LandmarkTrack(times, pixels, metric, np.ones((FRAMES, 33)), found, SIDE, SIDE)
    placed = raw_landmarks(track, camera)
    np.testing.assert_allclose(placed[found], points[found], atol=1e-9)
    assert np.isnan(placed[7]).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_draws_stay_in_their_ranges_and_the_person_in_the_picture(seed: int) -> None:
    shots = [draw_shot(made_motion(name), seed) for name in ("squat", "kick")]
    for shot in shots:
        assert 1.5 <= shot.body.stature <= 1.95
        assert 525.0 <= shot.camera.focal <= 875.0
        pixels = shot.camera.project(shot.camera.seen(shot.keypoints()))
        assert pixels.min() > 0
        assert pixels.max() < SIDE
    again = draw_shot(made_motion("kick"), seed)
    np.testing.assert_array_equal(again.joints(), shots[1].joints())
    assert shots[0].camera != shots[1].camera


def test_nothing_is_scored_that_was_tuned_on() -> None:
    assert len(HELD_OUT) >= 4
    assert not set(HELD_OUT) & set(TUNED_ON)


def test_the_bench_runs_without_the_release(tmp_path: Path) -> None:
    assert [motion.name for motion in bench_motions(tmp_path)] == ["squat", "side_step", "kick"]


def test_the_release_gives_its_held_out_clips(shared_dir: Path) -> None:
    motions = bench_motions(shared_dir)
    assert [motion.name for motion in motions] == [*HELD_OUT, "side_step", "kick"]
    assert max(motion.num_frames for motion in motions) == 150


QCA = """<?xml version='1.0' encoding='ASCII'?>
<calibration><cameras>{cameras}</cameras></calibration>
"""
QCA_CAMERA = """<camera model="none" serial="{name}"><fov_video bottom="1919" left="0" right="1087" top="0"/>
<transform r11="0" r12="-1" r13="0" r21="0" r22="0" r23="1" r31="-1" r32="0" r33="0" x="{x}" y="200" z="1500"/>
<intrinsic centerPointU="34816" centerPointV="61440" focalLengthU="64000" focalLengthV="64000"
 radialDistortion1="-6.4" radialDistortion2="3.2" radialDistortion3="0" tangentalDistortion1="0.64"
 tangentalDistortion2="0.32"/></camera>"""


def test_qualisys_camera_sees_what_is_before_it(tmp_path: Path) -> None:
    path = tmp_path / "Calib.qca.txt"
    cameras = "".join(QCA_CAMERA.format(name=name, x=x) for name, x in (("cam02", 9000), ("cam01", -3000)))
    path.write_text(QCA.format(cameras=cameras))
    first, second = read_qca(path)
    assert (first.name, second.name) == ("cam01", "cam02")
    np.testing.assert_allclose(first.centre(), [-3.0, 0.2, 1.5], atol=1e-12)
    assert first.size == (1088, 1920)
    np.testing.assert_allclose(first.distortion[:4], [-0.1, 0.05, 0.01, 0.005])
    assert np.linalg.det(first.rotation) == pytest.approx(1.0)
    # At (-3, 0.2, 1.5), looking along x with z up: one metre to the left is to the left in the picture, lower is lower.
    np.testing.assert_allclose(first.seen(np.array([1.0, 1.2, 1.0])), [-1.0, 0.5, 4.0], atol=1e-12)
    np.testing.assert_allclose(first.project(np.array([1.0, 0.2, 1.5])), [544.0, 960.0], atol=1e-9)


def test_another_file_is_no_qualisys_calibration(tmp_path: Path) -> None:
    path = tmp_path / "Calib.qca.txt"
    path.write_text("[cam01]\nname = 'cam01'\n")
    with pytest.raises(InputFileError, match="no Qualisys calibration"):
        read_qca(path)
