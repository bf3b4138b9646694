from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import human_fixtures as made
import numpy as np
import pytest

from asap_core.errors import InputFileError
from asap_core.motions.formats.clip import HumanClip
from asap_core.motions.formats.table import read_any
from asap_core.motions.frame_gaps import bridge_gaps, gaps, split_at_gaps
from asap_core.motions.ground_frame import to_human_motion
from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import INDEX
from asap_core.rotations import Array

SECONDS, SWING = 10.0, 0.8
RATES = [20.0, 25.0, 50.0, 59.94, 100.0, 120.0, 150.0]
SHOULDER = INDEX["L_Shoulder"]


def _swinging(path: Path, fps: float) -> HumanClip:
    """A person who stands for 10 s and swings the left arm by ± 0.8 rad, once a second."""
    times = np.arange(round(SECONDS * fps)) / fps
    poses = np.zeros((len(times), 24, 3))
    poses[:, 0] = [2 * np.pi / 3 / np.sqrt(3)] * 3  # the rest frame's y onto z
    poses[:, SHOULDER, 1] = SWING * np.sin(2 * np.pi * times)
    np.savez(path, poses=poses.reshape(-1, 72), trans=np.tile([0.0, 0, 0.9], (len(times), 1)), mocap_framerate=fps)
    (clip,) = read_any(path)
    assert isinstance(clip, HumanClip)
    return clip


def _frequency(motion: HumanMotion) -> float:
    """Hz, from the times at which the swing passes zero upwards."""
    angle = motion.joint_rotations[:, SHOULDER, 1]
    before = np.flatnonzero((angle[:-1] < 0) & (angle[1:] >= 0))
    crossing = (before - angle[before] / (angle[before + 1] - angle[before])) / motion.fps
    return (len(crossing) - 1) / (crossing[-1] - crossing[0])


@pytest.mark.parametrize("fps", RATES)
def test_c3_duration_and_frequency_survive_resampling(fps: float, tmp_path: Path) -> None:
    motion = to_human_motion(_swinging(tmp_path / "clip.npz", fps))
    assert motion.fps == fps
    assert _frequency(motion) == pytest.approx(1.0, abs=0.01)
    resampled = motion.resample(30.0)
    assert resampled.fps == 30.0
    assert abs(resampled.num_frames / 30.0 - SECONDS) <= 1 / 30.0 + 1e-9
    assert _frequency(resampled) == pytest.approx(1.0, abs=0.01)


def test_c4_20_fps_is_kept_or_resampled_and_never_relabelled(tmp_path: Path) -> None:
    motion = to_human_motion(_swinging(tmp_path / "clip.npz", 20.0))
    assert (motion.fps, motion.num_frames) == (20.0, 200)
    assert motion.resample(20.0) is motion
    assert motion.resample(30.0).num_frames == 299


def test_resampling_to_a_multiple_keeps_every_frame(tmp_path: Path) -> None:
    motion = to_human_motion(_swinging(tmp_path / "clip.npz", 25.0))
    finer = motion.resample(100.0)
    np.testing.assert_allclose(finer.joint_rotations[::4], motion.joint_rotations, atol=1e-12)
    np.testing.assert_allclose(finer.root_translation[::4], motion.root_translation, atol=1e-12)


def test_rotations_go_the_short_way_through_half_a_turn() -> None:
    """A root that turns on steadily: its rotation vector flips sign at half a turn, its speed does not change."""
    sample, turns = made.sample(), np.linspace(3.0, 3.4, made.FRAMES)
    rotations = np.zeros_like(sample.joint_rotations)
    rotations[:, 0, 2] = np.where(turns > np.pi, turns - 2 * np.pi, turns)
    motion = replace(sample, joint_rotations=rotations).resample(77.0)
    heading = np.unwrap(motion.joint_rotations[:, 0, 2])
    np.testing.assert_allclose(np.diff(heading), (turns[1] - turns[0]) * 30 / 77, atol=1e-9)


@pytest.mark.parametrize("fps", [0.0, -30.0, float("nan"), 5000.0])
def test_impossible_rates_are_refused(fps: float) -> None:
    with pytest.raises(InputFileError, match="fps: found"):
        made.sample().resample(fps)


def _with_gaps(rows: Array) -> HumanClip:
    sample = made.sample()
    return HumanClip(
        path=Path("clip"),
        name="clip",
        format="wham",
        sha256="",
        joint_rotations=sample.joint_rotations[rows],
        root_translation=sample.root_translation[rows],
        frame_index=rows.astype(float),
    )


def test_clip_is_cut_at_missing_frames() -> None:
    clip = _with_gaps(np.r_[0:10, 15:16, 20:60])
    assert gaps(clip) == [(10, 14), (16, 19)]
    first, second = split_at_gaps(clip)
    assert (first.name, len(first.root_translation)) == ("clip_f0", 10)
    assert (second.name, len(second.root_translation)) == ("clip_f20", 40)
    assert "into 2 clips, 1 single frames left out" in first.notes[-1]


def test_clip_with_gaps_is_not_taken_for_a_whole_one() -> None:
    with pytest.raises(InputFileError, match="1 gaps, the first of frames 10 to 14; cut the clip there, or bridge"):
        to_human_motion(_with_gaps(np.r_[0:10, 15:60]), fps=30.0)


def test_gaps_are_bridged_when_asked_and_named() -> None:
    sample = made.sample()
    bridged = bridge_gaps(_with_gaps(np.r_[0:10, 12:60]))
    assert gaps(bridged) == []
    assert "interpolated frames, which the file lacks: 10-11" in bridged.notes[-1]
    np.testing.assert_allclose(bridged.root_translation, sample.root_translation, atol=2e-3)
    straight = np.linspace(sample.root_translation[9], sample.root_translation[12], 4)
    np.testing.assert_allclose(bridged.root_translation[9:13], straight, atol=1e-12)
    kept = np.r_[0:10, 12:60]
    np.testing.assert_allclose(bridged.joint_rotations[kept], sample.joint_rotations[kept], atol=1e-12)
