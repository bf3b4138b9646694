"""A child's manifest decides: hang, crash and false exit status after success or failure, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from asap_core.errors import StageError
from asap_core.processes import ChildJob, ChildResult, run_child

TOP = Path(__file__).resolve().parents[2]
WORK = """
import os, signal, sys, time
from pathlib import Path
from asap_core.child_report import report_from_environment, work_under_report
from asap_core.progress import tell_curve, track
report = report_from_environment()

def work():
    with track("count", 3) as bar:
        for i in range(3):
            tell_curve("made", i, {"x": i / 2})
            bar.advance(note=f"step {i}")
    Path("out").mkdir()
    (Path("out") / "a.txt").write_text("made")
    return {"steps": 3, "ratio": 0.5, "name": "made"}

"""
FALSE_DIGEST = """
from asap_core.child_report import Manifest
Manifest(os.environ['ASAP_CHILD_RUN'], True, {}, {'out': '0' * 64}).write(Path('run'))
"""
SUCCEED = WORK + 'done = work_under_report(report, Path("."), ["out"], work)\nassert done\n'


def job(folder: Path, script: str, grace_s: float = 1.0) -> ChildJob:
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    return ChildJob("made", command, folder, ["out"], folder / "run", environment, grace_s)


def run(folder: Path, script: str, events: list[dict[str, Any]] | None = None) -> ChildResult:
    return run_child(job(folder, script), (events if events is not None else []).append)


def alive(pid: int) -> bool:
    """Running, and no zombie that waits for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_gone(pid: int, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not alive(pid)


def test_success_gives_figures_and_what_was_told_on_the_way(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    result = run(tmp_path, SUCCEED, events)
    assert result == ChildResult({"steps": 3, "ratio": 0.5, "name": "made"}, "")
    curve = [(e["name"], e["step"], e["values"]) for e in events if e["kind"] == "curve"]
    assert curve == [("made", i, {"x": i / 2}) for i in range(3)]
    assert [(e["done"], e["total"], e["note"]) for e in events if e["kind"] == "progress"][-1] == (3, 3, "step 2")


def test_events_arrive_while_the_child_still_works(tmp_path: Path) -> None:
    script = WORK + 'tell = report.curve("live", 1, {"x": 1.0})\ntime.sleep(60)\n'
    begin = time.monotonic()

    class SeenError(Exception):
        pass

    def stop(event: dict[str, Any]) -> None:
        raise SeenError(event["name"])

    with pytest.raises(SeenError, match="live"):
        run_child(job(tmp_path, script), stop)
    assert time.monotonic() - begin < 30


def test_hang_after_success_is_ended_and_said(tmp_path: Path) -> None:
    script = SUCCEED + 'Path("pid").write_text(str(os.getpid()))\ntime.sleep(600)\n'
    result = run(tmp_path, script)
    assert result.figures["steps"] == 3
    assert result.note == "still running 1 s after its manifest, ended"
    assert wait_gone(int((tmp_path / "pid").read_text()))


def test_hang_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asap_core.processes._STOP_S", 0.5)
    script = SUCCEED + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nPath('pid').write_text(str(os.getpid()))\n"
    result = run(tmp_path, script + "time.sleep(600)\n")
    assert result.note.startswith("still running")
    assert wait_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    ("end", "note"),
    [
        ("os._exit(139)", "ended by SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV"),
        ("os._exit(3)", "exit status 3"),
    ],
)
def test_death_after_success_is_success_and_said(tmp_path: Path, end: str, note: str) -> None:
    result = run(tmp_path, SUCCEED + end + "\n")
    assert (result.figures["name"], result.note) == ("made", note)


@pytest.mark.parametrize("error", ["ValueError('no room for robots')", "SystemExit('no room for robots')"])
def test_exception_with_exit_status_0_is_failure_with_its_text(tmp_path: Path, error: str) -> None:
    script = (
        WORK + f"def work(): raise {error}\n" + "work_under_report(report, Path('.'), ['out'], work)\nos._exit(0)\n"
    )
    with pytest.raises(StageError, match=r"made: no room for robots \(log: .*log\.txt\)"):
        run(tmp_path, script)


def test_exit_status_0_without_a_manifest_is_failure_with_the_logs_end(tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"left no manifest of its success \(exit status 0\).*\n.*physics went dark"):
        run(tmp_path, "print('physics went dark', flush=True)\nimport os; os._exit(0)\n")


def test_killed_child_is_failure(tmp_path: Path) -> None:
    script = WORK + "print('half way', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    with pytest.raises(StageError, match=r"ended by SIGKILL.*\n.*half way"):
        run(tmp_path, script)


def test_success_whose_outputs_are_missing_or_others_is_failure(tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"out: the work ended without it"):
        run(tmp_path, WORK + "work_under_report(report, Path('.'), ['out'], lambda: {})\n")
    with pytest.raises(StageError, match="out: changed since, though the manifest claims it"):
        run(tmp_path, WORK + "work()\n" + FALSE_DIGEST)
    with pytest.raises(StageError, match="outputs: found other, expected out"):
        run(tmp_path, WORK + FALSE_DIGEST.replace("'out'", "'other'"))


def test_manifest_of_an_earlier_run_never_counts(tmp_path: Path) -> None:
    assert run(tmp_path, SUCCEED).note == ""
    kept = (tmp_path / "run" / "manifest.json").read_text()
    with pytest.raises(StageError, match="left no manifest"):
        run(tmp_path, "pass")
    late = f"from pathlib import Path\nPath('run/manifest.json').write_text({kept!r})\n"  # a leftover child of before
    with pytest.raises(StageError, match="left no manifest"):
        run(tmp_path, late)


def test_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    lost = ChildJob("made", [str(tmp_path / "nowhere")], tmp_path, [], tmp_path / "run", {})
    with pytest.raises(StageError, match="nowhere cannot be started: No such file"):
        run_child(lost, lambda event: None)


PARENT = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
from asap_core.processes import ChildJob, run_child
import os
child = '''{child}'''
run_child(ChildJob("made", [sys.executable, "-c", child], Path("."), ["out"], Path("run"), dict(os.environ)), print)
"""
WITH_GRANDCHILD = """
import os, subprocess, sys, time
from pathlib import Path
from asap_core.child_report import report_from_environment, work_under_report
def work():
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path("pids.partial").write_text(f"{os.getpid()} {grandchild.pid}")
    os.replace("pids.partial", "pids")
    time.sleep(600)
work_under_report(report_from_environment(), Path("."), ["out"], work)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_end_of_the_parent_ends_the_child_and_its_children(tmp_path: Path, number: signal.Signals) -> None:
    script = PARENT.replace("{child}", WITH_GRANDCHILD)
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
    ) as p:
        end = time.monotonic() + 60
        while not (tmp_path / "pids").exists() and time.monotonic() < end:
            time.sleep(0.05)
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert all(map(alive, pids))
        p.send_signal(number)
    assert all(map(wait_gone, pids))
