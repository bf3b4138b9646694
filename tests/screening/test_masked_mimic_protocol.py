"""The protocol with a fake executable; MaskedMimic itself is not installed and not tested here."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from asap_core.errors import ConfigError, StageError
from asap_core.motions.formats.amass import read_amass
from asap_core.motions.human import HumanMotion
from asap_core.screening.masked_mimic import run_masked_mimic
from asap_core.screening.settings import MaskedMimicSettings


@pytest.fixture
def motion(repo_root: Path) -> HumanMotion:
    return read_amass(repo_root / "data/human/squat.npz")


def _fake(tmp_path: Path, body: str, timeout_s: float = 30.0) -> MaskedMimicSettings:
    """Settings that run a script; it has `motion` and `result` paths and `report(success, frames, failed)`."""
    script = tmp_path / "fake_masked_mimic.py"
    head = "import json, os, sys, time, subprocess\nmotion, result = sys.argv[1:]\n"
    head += "def report(success, frames, failed=()):\n"
    head += "    json.dump(dict(success=success, frames=frames, failed_frames=list(failed)), open(result, 'w'))\n"
    script.write_text(head + body)
    return MaskedMimicSettings(command=f"{sys.executable} {script} {{motion}} {{result}}", timeout_s=timeout_s)


def test_it_gets_the_clip_and_its_manifest_is_read(tmp_path: Path, motion: HumanMotion) -> None:
    settings = _fake(tmp_path, "print('hello')\nreport(False, 103, [3, 4])\n")
    result = run_masked_mimic(motion, settings, tmp_path / "run")
    assert (result.success, result.frames, result.failed_frames) == (False, 103, (3, 4))
    assert result.log.read_text() == "hello\n"
    written = read_amass(tmp_path / "run/motion.npz")
    np.testing.assert_allclose(written.joint_rotations, motion.joint_rotations, atol=1e-6)
    verdict = result.verdict()
    assert not verdict.accepted
    assert verdict.reasons[0].frames == [[3, 3], [4, 4]]
    assert verdict.figures["imitation_failed_share"] == pytest.approx(2 / 103)


def test_a_crash_after_success_is_a_success(tmp_path: Path, motion: HumanMotion) -> None:
    result = run_masked_mimic(motion, _fake(tmp_path, "report(True, 103)\nos._exit(139)\n"), tmp_path / "run")
    assert result.success
    assert result.verdict().accepted


def test_exit_status_zero_without_a_manifest_is_a_failure(tmp_path: Path, motion: HumanMotion) -> None:
    settings = _fake(tmp_path, "print('Traceback: out of memory')\n")
    with pytest.raises(StageError, match=r"(?s)exit status 0 and left no manifest .*Traceback: out of memory"):
        run_masked_mimic(motion, settings, tmp_path / "run")


def test_an_old_manifest_does_not_count(tmp_path: Path, motion: HumanMotion) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/result.json").write_text('{"success": true, "frames": 103, "failed_frames": []}')
    with pytest.raises(StageError, match="left no manifest"):
        run_masked_mimic(motion, _fake(tmp_path, "pass\n"), tmp_path / "run")


def test_a_hang_is_stopped_with_its_children(tmp_path: Path, motion: HumanMotion) -> None:
    body = "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    body += "open(result + '.pid', 'w').write(str(child.pid))\ntime.sleep(600)\n"
    with pytest.raises(StageError, match="stopped after 2 s and left no manifest"):
        run_masked_mimic(motion, _fake(tmp_path, body, timeout_s=2.0), tmp_path / "run")
    assert _ends(int((tmp_path / "run/result.json.pid").read_text()))


def _ends(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("report", "text"),
    [
        ("report(True, 50)", "claims success after 50 of 103 frames"),
        ("report(False, 103, [200])", "expected frames 0 to 102"),
        ("report('yes', 103)", r"expected success \(bool\)"),
    ],
)
def test_a_manifest_that_cannot_be_true_is_refused(report: str, text: str, tmp_path: Path, motion: HumanMotion) -> None:
    with pytest.raises(StageError, match=text):
        run_masked_mimic(motion, _fake(tmp_path, report), tmp_path / "run")


@pytest.mark.parametrize("command", ["", "protomotions {motion}"])
def test_command_must_be_configured(command: str, tmp_path: Path, motion: HumanMotion) -> None:
    with pytest.raises(ConfigError, match=r"screen\.masked_mimic\.command"):
        run_masked_mimic(motion, MaskedMimicSettings(command=command), tmp_path / "run")


def test_a_missing_executable_is_a_message(tmp_path: Path, motion: HumanMotion) -> None:
    settings = MaskedMimicSettings(command="/nowhere/masked_mimic {motion} {result}")
    with pytest.raises(StageError, match="/nowhere/masked_mimic: cannot be started: No such file"):
        run_masked_mimic(motion, settings, tmp_path / "run")
