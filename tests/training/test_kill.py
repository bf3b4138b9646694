"""A training that is killed in the middle ends, after a second start, with the same bytes as an undisturbed one."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asap_core.training.checkpoint import load_checkpoint
from tests.training.killable import CHECKPOINT_EVERY, ITERATIONS

_PATIENCE_S = 600.0


def start(folder: Path, root: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.training.killable", str(folder)], cwd=root)


@pytest.mark.slow
def test_a_killed_training_ends_with_the_same_bytes(repo_root: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    process, begin = start(killed, repo_root), time.monotonic()
    while not (killed / "checkpoint.pt").exists() and process.poll() is None:
        assert time.monotonic() - begin < _PATIENCE_S
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it was still at work"
    reached = load_checkpoint(killed / "checkpoint.pt")["learner"]["iteration"]
    assert CHECKPOINT_EVERY <= reached < ITERATIONS
    assert not (killed / "history.json").exists()
    for folder in (killed, tmp_path / "undisturbed"):
        assert start(folder, repo_root).wait(_PATIENCE_S) == 0
    for name in ("policy.onnx", "history.json"):
        assert (killed / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()
