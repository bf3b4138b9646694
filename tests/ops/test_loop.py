"""The loop's decisions: nothing is registered without an approval by name of the figures that were shown."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from asap_core.errors import StageError
from tasks.approval import Decision, evaluation_digest, is_approved
from tasks.dvc import child_environment, is_current, reproduce

YES = Decision(decision="approve", approver="Ada")


@pytest.fixture
def evaluated(tmp_path: Path) -> Path:
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "metrics.json").write_text("{}")
    return tmp_path


def test_approval_of_what_was_shown(evaluated: Path) -> None:
    shown = evaluation_digest(evaluated)
    assert is_approved(YES, shown, evaluated)
    assert not is_approved(Decision(decision="refuse", approver="Ada"), shown, evaluated)


def test_approval_without_a_name_is_refused(evaluated: Path) -> None:
    with pytest.raises(StageError, match="approver"):
        is_approved(Decision(decision="approve", approver="  "), evaluation_digest(evaluated), evaluated)


def test_approval_of_other_figures_is_refused(evaluated: Path) -> None:
    shown = evaluation_digest(evaluated)
    (evaluated / "evaluation" / "metrics.json").write_text('{"changed": 1}')
    with pytest.raises(StageError, match="changed since it was shown"):
        is_approved(YES, shown, evaluated)


@pytest.mark.parametrize(
    "answer", [{}, {"decision": "approve"}, {"approver": "Ada"}, {"decision": "", "approver": "A"}]
)
def test_no_field_of_the_form_has_a_default(answer: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Decision.model_validate(answer)


def test_form_shown_in_prefect_has_no_default_either() -> None:
    from flows.loop import Approval

    schema = Approval.model_json_schema()
    assert sorted(schema["required"]) == ["approver", "decision"]
    assert not any("default" in field for field in schema["properties"].values())


def test_child_is_no_part_of_the_run_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", "x")
    monkeypatch.setenv("MLFLOW_RUN_ID", "x")
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    environment = child_environment()
    assert "PREFECT__FLOW_RUN_ID" not in environment
    assert "MLFLOW_RUN_ID" not in environment
    assert environment["PREFECT_API_URL"] == "http://127.0.0.1:1/api"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A DVC project without git whose stage `make` copies in.txt to out.txt, sleeping first if in.txt says so."""
    subprocess.run([sys.executable, "-m", "dvc", "init", "-q", "--no-scm"], cwd=tmp_path, check=True)
    subprocess.run([sys.executable, "-m", "dvc", "config", "core.analytics", "false"], cwd=tmp_path, check=True)
    (tmp_path / "make.sh").write_text(
        "read x < in.txt; echo $$ > pid; sleep $x && test $x != 0.5 && cp in.txt out.txt\n"
    )
    stage = {"cmd": "sh make.sh", "deps": ["in.txt"], "outs": ["out.txt"]}
    (tmp_path / "dvc.yaml").write_text(json.dumps({"stages": {"make": stage}}))
    (tmp_path / "in.txt").write_text("0\n")
    return tmp_path


def test_stage_runs_until_it_is_current(project: Path) -> None:
    lines: list[str] = []
    assert not is_current("make", project)
    reproduce("make", project, 60, lines.append)
    assert (project / "out.txt").read_text() == "0\n"
    assert any("Running stage 'make'" in line for line in lines)
    assert is_current("make", project)


def test_failing_stage_is_an_error_with_its_output(project: Path) -> None:
    (project / "in.txt").write_text("0.5\n")
    with pytest.raises(StageError, match="exit status"):
        reproduce("make", project, 60, lambda _: None)
    assert not (project / "out.txt").exists()


def test_stage_beyond_its_time_is_killed_with_its_children(project: Path) -> None:
    (project / "in.txt").write_text("300\n")
    start = time.monotonic()
    with pytest.raises(StageError, match="not finished after 5 s"):
        reproduce("make", project, 5, lambda _: None)
    assert time.monotonic() - start < 40
    pid = int((project / "pid").read_text())
    assert _gone(pid)


def _gone(pid: int) -> bool:
    """Whether a killed process has ended; an orphan that nobody has reaped yet counts."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False
