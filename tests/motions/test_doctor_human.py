"""The doctor on people: up axis, camera frames, units, rate and gaps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from human_fixtures import gvhmr_content, human_fixtures, sample, write_asap_smpl, y_up

from asap_core.errors import AsapError, InputFileError
from asap_core.motions.doctor.examine import examine
from asap_core.motions.doctor.faults import human_faults
from asap_core.motions.doctor.human import HumanDiagnosis, examine_human
from asap_core.motions.doctor.options import Options
from asap_core.motions.formats.clip import HumanClip
from asap_core.motions.formats.table import read_any
from asap_core.rotations import quat_mul, quat_to_rotvec, rotvec_to_quat

NONE = Options()
NO_RATE = ("gvhmr", "wham", "tram")


def codes(found: HumanDiagnosis) -> set[str]:
    return {problem.code for problem in found.problems if problem.severity != "note"}


def clip_of(path: Path) -> HumanClip:
    clip = read_any(path)[0]
    assert isinstance(clip, HumanClip)
    return clip


def test_every_human_format_is_understood(tmp_path: Path) -> None:
    for key, path in human_fixtures(tmp_path).items():
        report = examine(path, Options(fps=30 if key in NO_RATE else None))
        assert report.format.answer == key
        found = report.clips[0]
        assert isinstance(found, HumanDiagnosis)
        assert codes(found) <= ({"frame_gaps"} if key == "tram" else set()), key
        assert found.motion is not None
        joints = found.motion.joint_positions()
        assert (joints[:, 15, 2] - joints[:, 7, 2] > 1.0).all(), key  # the head is above the ankle


def test_c11_y_up_smpl_is_turned_and_said(tmp_path: Path) -> None:
    motion = sample()
    rotations, pelvis = y_up(motion)
    write_asap_smpl(tmp_path / "y.npz", motion, poses=rotations.reshape(-1, 72), trans=pelvis)
    found = examine(tmp_path / "y.npz", NONE).clips[0]
    assert isinstance(found, HumanDiagnosis)
    assert codes(found) == {"up_axis"}
    assert found.motion is not None
    travel = found.motion.root_translation - found.motion.root_translation[0]
    np.testing.assert_allclose(travel, motion.root_translation - motion.root_translation[0], atol=1e-6)


def test_c11_a_pitched_camera_frame_is_refused(tmp_path: Path) -> None:
    paths = human_fixtures(tmp_path)
    _, make = human_faults(clip_of(paths["asap_smpl"]))["camera_pitch"]
    found = examine_human(make(), NONE)
    assert "camera_frame" in codes(found)
    assert found.motion is None
    assert "smpl_params_global" in next(p.mend for p in found.problems if p.code == "camera_frame")


def test_own_motion_of_a_person_who_leans_is_in_the_world(tmp_path: Path) -> None:
    """As one who trains on a treadmill does; the same motion in a file that anybody writes is refused."""
    motion = sample()
    lean = np.array([1.0, 0.0, 0.0]) * np.radians(20.0)
    rotations = motion.joint_rotations.copy()
    turned = quat_mul(rotvec_to_quat(lean), rotvec_to_quat(rotations[:, 0]))
    rotations[:, 0] = quat_to_rotvec(turned)
    leaning = replace(motion, joint_rotations=rotations)
    leaning.save(tmp_path / "own.parquet")
    write_asap_smpl(tmp_path / "other.npz", leaning)
    own, other = (examine(tmp_path / name, NONE).clips[0] for name in ("own.parquet", "other.npz"))
    assert isinstance(own, HumanDiagnosis)
    assert "camera_frame" not in codes(own)
    assert own.motion is not None
    assert isinstance(other, HumanDiagnosis)
    assert "camera_frame" in codes(other)


def test_c11_gvhmr_incam_alone_is_refused(tmp_path: Path) -> None:
    import torch

    content = gvhmr_content(sample())
    del content["smpl_params_global"]
    torch.save(content, tmp_path / "hmr4d_results.pt")
    with pytest.raises(InputFileError, match="smpl_params_global"):
        examine(tmp_path / "hmr4d_results.pt", NONE)


def test_c12_shape_only_file_is_refused_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "female_stagei.npz", betas=np.zeros(16), gender="female")
    with pytest.raises(AsapError, match="female_stagei"):
        examine(tmp_path / "female_stagei.npz", NONE)


def test_degrees_are_told_from_radians(tmp_path: Path) -> None:
    clip = clip_of(human_fixtures(tmp_path)["asap_smpl"])
    found = examine_human(human_faults(clip)["degrees"][1](), NONE)
    assert "angle_unit" in codes(found)
    assert found.motion is not None
    np.testing.assert_allclose(found.motion.joint_rotations, clip.joint_rotations, atol=1e-6)


def test_missing_frames_are_named(tmp_path: Path) -> None:
    found = examine(human_fixtures(tmp_path)["tram"], Options(fps=30)).clips[0]
    text = next(p.text for p in found.problems if p.code == "frame_gaps")
    assert "7 frames" in text
    assert "30-36" in text


def test_a_rate_is_required(tmp_path: Path) -> None:
    found = examine(human_fixtures(tmp_path)["wham"], NONE).clips[0]
    assert [decision.question for decision in found.open_questions] == ["fps"]
    assert found.motion is None


def test_published_people_raise_no_alarm_and_their_faults_are_named(shared_dir: Path) -> None:
    paths = sorted((shared_dir / "data" / "asap" / "smpl").glob("*.npz"))
    assert len(paths) == 39
    missed = []
    for path in paths:
        report = examine(path, NONE)
        assert report.format.answer == "asap_smpl"
        assert report.clean, (path.name, [problem.text for clip in report.clips for problem in clip.problems])
        assert {d.question: d.answer for d in report.clips[0].decisions}["fps"] == "30"
    for path in paths[::6]:
        for fault, (code, make) in human_faults(clip_of(path)).items():
            if code not in codes(examine_human(make(), NONE)):
                missed.append((path.name, fault))
    assert missed == []


def test_gravity_names_a_rate_off_by_two(shared_dir: Path) -> None:
    path = shared_dir / "data" / "asap" / "smpl" / "video_jump_degree_level1_filter_amass.npz"
    clip = clip_of(path)
    for factor in (2.0, 0.5):
        problem = next(p for p in examine_human(replace(clip, fps=30 * factor), NONE).problems if p.code == "wrong_fps")
        assert float(problem.mend.rsplit(" ", 1)[1]) == pytest.approx(30, rel=0.15)
