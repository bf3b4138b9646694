"""`asap screen` on files: exit codes, JSON, pictures; and its parts that only the command uses."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from asap_core.errors import InputFileError
from asap_core.motions.formats.amass import read_amass, write_amass
from asap_core.motions.human import HumanMotion
from asap_core.retargeting.settings import RetargetSettings
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.screening.bench import bench, suffers
from asap_core.screening.calibration import read_clips
from asap_core.screening.faults import FAULTS
from asap_core.screening.plots import verdict_figure
from asap_core.screening.screen import screen
from asap_core.screening.settings import ScreenSettings
from flows.cli import app


@pytest.fixture
def folder(tmp_path: Path, repo_root: Path) -> Path:
    """A good clip, one that floats and one that is no motion."""
    shutil.copy(repo_root / "data/human/squat.npz", tmp_path / "squat.npz")
    _write(FAULTS["float"].make(read_amass(repo_root / "data/human/kick.npz")), tmp_path / "floats.npz")
    return tmp_path


def _write(motion: HumanMotion, path: Path) -> None:
    write_amass(path, motion.joint_rotations.reshape(motion.num_frames, -1), motion.root_translation, motion.fps)


def _run(repo_root: Path, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["screen", "--root", str(repo_root), *arguments])
    return result.exit_code, result.stdout


def test_exit_codes_and_rejected_clips_stay_listed(folder: Path, repo_root: Path) -> None:
    assert _run(repo_root, str(folder / "squat.npz"))[0] == 0
    code, text = _run(repo_root, str(folder))
    assert code == 1
    assert "squat" in text
    assert "float: found 1.00, limit 0.15 of the frames" in text
    (folder / "broken.npz").write_bytes((folder / "squat.npz").read_bytes()[:1500])
    code, text = _run(repo_root, str(folder))
    assert code == 2
    assert "rejected" in text
    assert "unreadable" in text


def test_json_has_verdict_score_reasons_and_frames(folder: Path, repo_root: Path) -> None:
    code, text = _run(repo_root, str(folder), "--json")
    assert code == 1
    files = json.loads(text)["files"]
    floats = files[str(folder / "floats.npz")][0]
    assert floats["accepted"] is False
    reason = next(r for r in floats["reasons"] if r["rule"] == "float")
    assert reason["frames"] == [[0, 138]]
    assert floats["score"] < 0.1
    assert files[str(folder / "squat.npz")][0]["accepted"] is True


def test_robot_motion_and_imitator_are_judged_too(folder: Path, repo_root: Path) -> None:
    code, text = _run(repo_root, str(folder / "squat.npz"), "--json", "--robot-motion", "--imitate")
    judged = json.loads(text)["files"][str(folder / "squat.npz")]
    assert [one["screen"] for one in judged] == ["person", "robot", "imitator"]
    assert [one["accepted"] for one in judged] == [True, True, True], text
    assert judged[2]["figures"]["imitation_share"] == 1.0
    assert code == 0


def test_picture_of_each_clip(folder: Path, repo_root: Path) -> None:
    _run(repo_root, str(folder), "--plot", str(folder / "plots"))
    pictures = sorted(path.name for path in (folder / "plots").iterdir())
    assert pictures == ["floats_person.png", "squat_person.png"]
    assert (folder / "plots/floats_person.png").read_bytes().startswith(b"\x89PNG")


def test_picture_shows_the_residual_and_a_band_for_each_reason(repo_root: Path) -> None:
    motion = FAULTS["float"].make(read_amass(repo_root / "data/human/kick.npz"))
    verdict = screen(motion, ScreenSettings())
    upper, lower = verdict_figure(verdict, motion.fps, "kick").axes
    np.testing.assert_array_equal(upper.lines[0].get_ydata(), verdict.per_frame["infeasible"])
    assert [label.get_text() for label in lower.get_yticklabels()] == [reason.rule for reason in verdict.reasons]


def test_masked_mimic_without_a_command_is_a_message(folder: Path, repo_root: Path) -> None:
    arguments = (str(folder / "squat.npz"), "--imitate", "--imitator", "masked_mimic")
    code, text = _run(repo_root, *arguments)
    assert code == 2
    assert "screen.masked_mimic.command: found nothing" in text


def test_masked_mimic_protocol_through_the_command_with_a_fake(folder: Path, repo_root: Path, tmp_path: Path) -> None:
    fake = tmp_path / "fake.py"
    fake.write_text(
        'import sys\nopen(sys.argv[2], \'w\').write(\'{"success": true, "frames": 103, "failed_frames": []}\')'
    )
    root = tmp_path / "project"
    root.mkdir()
    params = (repo_root / "params.yaml").read_text()
    command = f"{sys.executable} {fake} {{motion}} {{result}}"
    setting = f"screen:\n  masked_mimic:\n    command: {json.dumps(command)}"
    assert "screen: {}" in params
    (root / "params.yaml").write_text(params.replace("screen: {}", setting))
    arguments = (str(folder / "squat.npz"), "--imitate", "--imitator", "masked_mimic", "--json")
    code, text = _run(root, *arguments)
    assert code == 0, text
    assert json.loads(text)["files"][str(folder / "squat.npz")][1]["screen"] == "imitator"
    assert (root / ".asap/masked_mimic/squat/motion.npz").exists()


def test_faults_are_scored_on_the_clips_that_suffer_them(repo_root: Path) -> None:
    motion = read_amass(repo_root / "data/human/kick.npz")
    assert suffers("float", "kick_level1", motion)
    assert suffers("swap", "kick_level1", motion)
    assert not suffers("speed_up", "kick_level1", motion)
    assert suffers("speed_up", "walk_level1", motion)


def test_missing_shared_clips_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"video_walk_level1_\*\.npz: found 0 files, expected one"):
        read_clips(tmp_path, ("walk_level1",))


@pytest.mark.slow
def test_bench_of_one_clip_tells_clean_from_spoilt(shared_dir: Path) -> None:
    profile = get_profile("g1_23dof")
    names = ("shoot_level2",)
    figures = bench(shared_dir, profile, ScreenSettings(), RetargetSettings(), PhysicsSettings(), names)
    assert figures["clean_rejected"] == figures["robot_clean_rejected"] == 0.0
    assert figures["imitator_clean_passed"] == 1.0
    assert figures["imitator_float_passed"] == figures["imitator_slide_passed"] == 0.0
    assert figures["imitator_gap_points"] >= 30.0
    assert figures["skate_right_reason"] == figures["robot_skate_right_reason"] == 1.0
    assert figures["frames_per_second"] > 0.0
