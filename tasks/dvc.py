"""`dvc` as a subprocess that can be stopped: one writer of the project's outputs, whoever starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

from asap_core.errors import StageError
from asap_core.processes import stop_group

_TAIL_LINES = 15
_FOREIGN_PREFIXES = ("PREFECT__", "MLFLOW_RUN_ID")
"""Variables that tie a process to the Prefect or MLflow run around it; a stage is a run of its own."""


def child_environment() -> dict[str, str]:
    """This process's environment without what would tie a child to the flow run or MLflow run around it."""
    return {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN_PREFIXES)}


def is_current(stage: str, root: Path) -> bool:
    """Whether `dvc repro STAGE` would do nothing to this stage and those before it.

    Raises:
        StageError: DVC cannot tell, for instance because of a broken dvc.yaml.
    """
    command = _dvc("status", "--json", "--with-deps", stage)
    done = subprocess.run(command, cwd=root, env=child_environment(), capture_output=True, text=True)
    if done.returncode != 0:
        raise StageError(f"dvc status {stage} failed: {done.stderr.strip()}")
    return done.stdout.strip() in ("", "{}")


def reproduce(stage: str, root: Path, timeout_s: float, log: Callable[[str], None]) -> None:
    """Run `dvc repro STAGE`; each line it prints goes to `log`.

    Raises:
        StageError: it failed, or took longer than `timeout_s` and was killed with everything it had started.
    """
    process = subprocess.Popen(
        _dvc("repro", stage),
        cwd=root,
        env=child_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    timed_out = False

    def on_alarm() -> None:
        nonlocal timed_out
        timed_out = True
        stop_group(process)

    tail = _follow(process, timeout_s, on_alarm, log)
    if timed_out:
        raise StageError(f"dvc repro {stage}: not finished after {timeout_s:g} s; stopped")
    if process.returncode != 0:
        raise StageError(f"dvc repro {stage}: exit status {process.returncode}\n" + "\n".join(tail))


def _follow(
    process: subprocess.Popen[str], timeout_s: float, on_alarm: Callable[[], None], log: Callable[[str], None]
) -> list[str]:
    """Log the output until the process ends; returns the last lines."""
    import threading

    alarm = threading.Timer(timeout_s, on_alarm)
    alarm.start()
    tail: list[str] = []
    stream: IO[str] | None = process.stdout
    assert stream is not None
    try:
        for line in stream:
            tail = [*tail, line.rstrip()][-_TAIL_LINES:]
            log(line.rstrip())
        process.wait()
    finally:
        alarm.cancel()
        stop_group(process)
    return tail


def _dvc(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dvc", *arguments]
