"""The command line: errors are messages, not tracebacks; figures are one flat JSON object."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from asap_core.errors import StageError
from asap_core.files import write_json
from tasks.stages import limit_threads
from tasks.summary import flat_figures

ROOT = Path(__file__).resolve().parents[2]


def asap(*arguments: str, root: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in a new process."""
    where = ["--root", str(root)] if root else []
    command = [sys.executable, "-m", "flows.cli", *arguments, *where]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def assert_is_message(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr


def test_help_imports_no_heavy_library() -> None:
    code = (
        "import sys, flows.cli; heavy = {'torch', 'mlflow', 'prefect', 'pandas', 'mujoco', 'numpy'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_unknown_stage_names_the_nearest() -> None:
    assert_is_message(asap("run", "retargt"), "unknown stage 'retargt'", "Did you mean 'retarget'?", "finetune")


def test_unknown_bench_lists_the_known() -> None:
    assert_is_message(asap("bench", "gpu"), "unknown bench 'gpu'", "simulator")


def test_missing_params_names_the_file(tmp_path: Path) -> None:
    assert_is_message(asap("run", "screen", root=tmp_path), "params.yaml: missing")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed: 0", "sed: 0", "did you mean 'seed'?"),
        ("seed: 0", "seed: many", "seed: "),
        ("train: squat", "train: jump", "expected one of names"),
    ],
)
def test_broken_params_name_the_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (ROOT / "params.yaml").read_text()
    assert old in text
    (tmp_path / "params.yaml").write_text(text.replace(old, new))
    assert_is_message(asap("params", "--check", root=tmp_path), "params.yaml", message)


def test_params_of_the_project_are_valid_and_flat() -> None:
    done = asap("params", "--json")
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)
    assert values["seed"] == 0
    assert values["simulation.physics.control_dt"] == 0.02
    assert values["motions.names"] == "squat, side_step, kick, person_squat"


def test_prefect_server_that_is_named_but_absent_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    assert_is_message(asap("run", "screen"), "PREFECT_API_URL", "http://127.0.0.1:9/api", "make ui")


def test_summary_before_evaluation_says_what_to_run(tmp_path: Path) -> None:
    assert_is_message(asap("summary", root=tmp_path), "metrics.json: missing", "dvc repro evaluate")


def test_summary_as_json_is_flat_and_has_the_plain_names(tmp_path: Path) -> None:
    figure = {"mean": 40.0, "low": 30.0, "high": 50.0}
    arms = {arm: {"E_g_mpjpe": {**figure, "mean": mean}} for arm, mean in (("vanilla", 60.0), ("asap", 40.0))}
    write_json(tmp_path / "evaluation/metrics.json", {"closed_loop": arms, "open_loop_1s_ratio": 0.5})
    done = asap("summary", "--json", root=tmp_path)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["E_g_mpjpe"] == 40.0
    assert figures["closed_loop.vanilla.E_g_mpjpe.mean"] == 60.0
    assert figures["open_loop_1s_ratio"] == 0.5
    assert not any(isinstance(value, (dict, list)) for value in figures.values())


def test_flat_figures_leave_out_what_was_not_measured() -> None:
    assert flat_figures({"closed_loop": {"vanilla": {"success": {"mean": 1.0}}}}) == {
        "closed_loop.vanilla.success.mean": 1.0
    }


def test_threads_are_set_once_and_must_be_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("ASAP_THREADS", "3")
    limit_threads()
    import os

    assert (os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"]) == ("1", "3")
    monkeypatch.setenv("ASAP_THREADS", "all")
    with pytest.raises(StageError, match="ASAP_THREADS: found 'all'"):
        limit_threads()


def test_models_without_a_database_makes_none(tmp_path: Path) -> None:
    assert_is_message(asap("models", root=tmp_path), "mlflow.db: missing", "asap models sync")
    assert not any(tmp_path.iterdir())


def test_damaged_database_is_named(tmp_path: Path) -> None:
    (tmp_path / ".asap").mkdir()
    (tmp_path / ".asap" / "mlflow.db").write_text("no database")
    assert_is_message(asap("models", root=tmp_path), "mlflow.db", "not a database", "asap models sync")


def test_ui_outside_a_project_starts_nothing(tmp_path: Path) -> None:
    assert_is_message(asap("ui", root=tmp_path), "prefect.yaml: missing")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("metrics", [[], {}, {"closed_loop": []}, {"closed_loop": {"asap": 5}}])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_summary_of_damaged_figures_names_the_field(tmp_path: Path, metrics: object, options: list[str]) -> None:
    write_json(tmp_path / "evaluation/metrics.json", metrics)
    assert_is_message(asap("summary", *options, root=tmp_path), "metrics.json: ", "expected")
