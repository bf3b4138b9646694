from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap_core.motions.formats.amass import read_amass
from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import INDEX
from asap_core.screening.calibration import CALIBRATION, SCORED, is_walk_or_jump, read_clips
from asap_core.screening.faults import FAULTS, asymmetry
from asap_core.screening.screen import root_acceleration, screen
from asap_core.screening.settings import ScreenSettings

SETTINGS = ScreenSettings()
NAMES = ("squat", "side_step", "kick")


def _own(repo_root: Path, name: str) -> HumanMotion:
    return read_amass(repo_root / f"data/human/{name}.npz")


def _moved(motion: HumanMotion, by: np.ndarray) -> HumanMotion:
    return replace(motion, root_translation=motion.root_translation + by)


@pytest.mark.parametrize("name", NAMES)
def test_own_motions_are_accepted(name: str, repo_root: Path) -> None:
    verdict = screen(_own(repo_root, name), SETTINGS)
    assert verdict.accepted, [reason.text() for reason in verdict.reasons]
    assert verdict.figures["infeasible_share"] == 0.0
    assert verdict.score > 0.95


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", ["float", "penetration", "slide", "teleport", "lean", "swap"])
def test_fault_is_rejected_for_its_own_reason(name: str, fault: str, repo_root: Path) -> None:
    verdict = screen(FAULTS[fault].make(_own(repo_root, name)), SETTINGS)
    assert not verdict.accepted
    assert verdict.rules & FAULTS[fault].rules, [reason.text() for reason in verdict.reasons]


def test_stance_feet_that_slide_with_20_cm_per_second_are_found(repo_root: Path) -> None:
    """C15: what a video estimator makes of a still person."""
    motion = _own(repo_root, "squat")
    sliding = _moved(motion, np.arange(motion.num_frames)[:, None] / motion.fps * [0.0, 0.2, 0.0])
    reason = next(r for r in screen(sliding, SETTINGS).reasons if r.rule == "slide")
    assert reason.found == 1.0
    assert "m/s in frame" in reason.detail


def test_float_for_a_part_of_the_clip_names_its_frames(repo_root: Path) -> None:
    motion = _own(repo_root, "squat")
    later = (np.arange(motion.num_frames) >= 40)[:, None]
    reasons = {r.rule: r for r in screen(_moved(motion, later * [0.0, 0.0, 0.3]), SETTINGS).reasons}
    assert reasons["float"].frames[-1][1] == motion.num_frames - 1
    assert abs(reasons["float"].frames[0][0] - 40) <= 4


def test_teleport_names_its_frame_and_acceleration(repo_root: Path) -> None:
    motion = _own(repo_root, "squat")
    reasons = {r.rule: r for r in screen(FAULTS["teleport"].make(motion), SETTINGS).reasons}
    middle = motion.num_frames // 2
    assert reasons["jump"].frames == [[middle - 1, middle]]
    assert reasons["jump"].found == pytest.approx(0.7 * 30**2, rel=0.01)
    assert reasons["speed"].found == pytest.approx(21.0, rel=0.01)
    assert reasons["speed"].text().startswith("speed: found 21.0")


def test_root_acceleration_is_that_of_the_path_at_any_rate() -> None:
    for fps in (30.0, 50.0, 120.0):
        times = np.arange(60) / fps
        path = np.stack([1.5 * times**2, 0.3 * times, 0 * times], axis=1)
        inner = root_acceleration(path, fps)[5:-5]
        np.testing.assert_allclose(inner, 3.0, rtol=1e-6)


def test_noise_of_a_high_rate_is_no_jump() -> None:
    """1 mm at 240 Hz: a second difference from frame to frame would be some 140 m/s²."""
    noise = np.random.default_rng(0).normal(0.0, 1e-3, (240, 3))
    assert root_acceleration(noise, 240.0).max() < 10.0


def test_a_joint_faster_than_its_limit_is_found(repo_root: Path) -> None:
    """The right shoulder swings with 0.8 sin(2π 5 t) rad: 25 rad/s at most."""
    motion = _own(repo_root, "squat")
    rotations = motion.joint_rotations.copy()
    times = np.arange(motion.num_frames) / motion.fps
    rotations[:, INDEX["R_Shoulder"], 2] += 0.8 * np.sin(2 * np.pi * 5 * times)
    reason = next(r for r in screen(replace(motion, joint_rotations=rotations), SETTINGS).reasons if "joint" in r.rule)
    assert reason.rule == "joint_speed"
    assert "rad/s" in reason.detail


def test_force_of_a_person_shaken_up_and_down_is_found(repo_root: Path) -> None:
    """0.08 m at 4 Hz: 0.08 (2π 4)² = 50 m/s², of which the filter leaves 60 %: four weights at the lowest point."""
    motion = _own(repo_root, "squat")
    fine = 4
    times = np.arange(motion.num_frames * fine) / (motion.fps * fine)
    rotations = np.repeat(motion.joint_rotations[:1], len(times), axis=0)
    root = np.repeat(motion.root_translation[:1], len(times), axis=0)
    root[:, 2] += 0.08 * np.sin(2 * np.pi * 4 * times)
    shaken = replace(motion, fps=motion.fps * fine, joint_rotations=rotations, root_translation=root)
    reasons = {r.rule: r for r in screen(shaken, SETTINGS).reasons}
    assert reasons["force"].found > 0.2


@pytest.mark.parametrize(("by", "rule"), [(0.1, None), (0.13, "float"), (-0.07, None), (-0.1, "penetration")])
def test_small_ground_error_is_no_fault(by: float, rule: str | None, repo_root: Path) -> None:
    motion = _own(repo_root, "kick")
    verdict = screen(_moved(motion, np.array([0.0, 0.0, by])), SETTINGS)
    assert verdict.figures["ground_level"] == pytest.approx(by, abs=1e-3)
    assert verdict.accepted if rule is None else rule in verdict.rules


def test_short_clip_is_rejected(repo_root: Path) -> None:
    motion = _own(repo_root, "kick")
    few = replace(motion, joint_rotations=motion.joint_rotations[:5], root_translation=motion.root_translation[:5])
    assert screen(few, SETTINGS).rules == {"short"}


def test_verdict_is_plain_json_and_has_values_per_frame(repo_root: Path) -> None:
    motion = _own(repo_root, "squat")
    verdict = screen(FAULTS["float"].make(motion), SETTINGS)
    header = verdict.to_header()
    assert json.loads(json.dumps(header, allow_nan=False)) == header
    assert "per_frame" not in header
    assert all(values.shape == (motion.num_frames,) for values in verdict.per_frame.values())
    assert verdict.per_frame["float"].min() > 0.4


def test_published_clips_are_split_once_and_evenly(shared_dir: Path) -> None:
    assert (len(CALIBRATION), len(SCORED)) == (20, 19)
    files = {path.name for path in (shared_dir / "data/asap/smpl").glob("*.npz")}
    clips = read_clips(shared_dir, CALIBRATION + SCORED)
    assert len({clip.source.path for clip in clips.values()}) == len(files) == 39
    for part in (CALIBRATION, SCORED):
        assert sum("jump" in name for name in part) >= 4
        assert sum(name.startswith(("walk", "step")) for name in part) >= 4
        assert sum(name.startswith("single_foot") for name in part) >= 2
        assert sum(is_walk_or_jump(name) for name in part) >= 10


def test_scored_clips_are_accepted_and_their_faults_found(shared_dir: Path) -> None:
    """The yardsticks, on the 19 clips that no threshold was set on."""
    clips = read_clips(shared_dir, SCORED)
    rejected = [name for name, clip in clips.items() if not screen(clip, SETTINGS).accepted]
    assert len(rejected) <= 1, rejected
    assert min(asymmetry(clip) for clip in clips.values()) > 0.3
    for fault, wanted in {
        "float": 1.0,
        "penetration": 1.0,
        "slide": 1.0,
        "teleport": 1.0,
        "lean": 0.9,
        "swap": 0.9,
    }.items():
        right = [
            bool(screen(FAULTS[fault].make(clip), SETTINGS).rules & FAULTS[fault].rules) for clip in clips.values()
        ]
        assert np.mean(right) >= wanted, fault
    fast = [screen(FAULTS["speed_up"].make(clip), SETTINGS) for name, clip in clips.items() if is_walk_or_jump(name)]
    assert np.mean([not verdict.accepted for verdict in fast]) >= 0.8
