"""Child processes that may hang at shutdown, crash after success or exit with 0 after a failure.

Simulators do all three. So the exit status decides nothing: a child succeeded if it wrote the manifest of this very run
and its outputs are what the manifest says (`child_report.py`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asap_core.child_report import (
    EVENTS,
    FOLDER_VARIABLE,
    LOG,
    MANIFEST,
    RUN_VARIABLE,
    Figures,
    Manifest,
    read_manifest,
)
from asap_core.errors import StageError
from asap_core.files import make_folder, sha256_tree

_STOP_S = 10.0
_POLL_S = 0.1
_TAIL_LINES = 25


def stop_group(process: subprocess.Popen[Any], terminations: int = 1) -> None:
    """End a process that leads a session, and its children: SIGTERM `terminations` times, then SIGKILL, ten seconds
    apart."""
    for number in (*[signal.SIGTERM] * terminations, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_STOP_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


@dataclass(frozen=True)
class ChildResult:
    """A success."""

    figures: Figures
    note: str
    """How the process ended after it, if not by itself with status 0."""


@dataclass(frozen=True)
class ChildJob:
    """What to start, and what it must leave.

    Attributes:
        name: for messages.
        command: program and arguments; it writes a `ChildReport`.
        root: where it runs; outputs are named relative to it.
        outputs: files and folders that it makes.
        folder: of its log, its events and its manifest; emptied of those of earlier runs.
        environment: of the process.
        grace_s: how long it may take to end after its manifest.
    """

    name: str
    command: Sequence[str]
    root: Path
    outputs: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    grace_s: float = 30.0


def run_child(job: ChildJob, on_event: Callable[[dict[str, Any]], None]) -> ChildResult:
    """Run `job` in a session of its own; its events go to `on_event` as they come.

    Whatever ends this call, Ctrl-C too, ends the child and all that it started. If this process is killed, the child
    sees its standard input close and ends itself.

    Raises:
        StageError: no manifest, a failure's manifest, or outputs that are missing or not as the manifest says.
    """
    run = uuid.uuid4().hex
    make_folder(job.folder)
    for name in (LOG, EVENTS, MANIFEST):
        (job.folder / name).unlink(missing_ok=True)
    environment = {**job.environment, FOLDER_VARIABLE: str(job.folder.resolve()), RUN_VARIABLE: run}
    events = _Events(job.folder / EVENTS, run)
    with open(job.folder / LOG, "wb") as log:
        process = _start(job, environment, log)
        try:
            manifest = _await_manifest(process, job.folder, run, lambda: events.pass_on(on_event))
            ended = _await_end(process, job.grace_s) if manifest else _how_ended(process.wait())
        finally:
            stop_group(process)
            if process.stdin is not None:
                process.stdin.close()
    events.pass_on(on_event)
    _check(job, manifest, ended)
    assert manifest is not None
    return ChildResult(manifest.figures, ended)


def _start(job: ChildJob, environment: Mapping[str, str], log: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            job.command,
            cwd=job.root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise StageError(f"{job.name}: {job.command[0]} cannot be started: {error.strerror or error}") from None


def _await_manifest(
    process: subprocess.Popen[bytes], folder: Path, run: str, tick: Callable[[], None]
) -> Manifest | None:
    """The manifest as soon as it is there; None if the process ended without."""
    while True:
        over = process.poll() is not None
        tick()
        manifest = read_manifest(folder, run)
        if manifest is not None or over:
            return manifest
        time.sleep(_POLL_S)


def _await_end(process: subprocess.Popen[bytes], grace_s: float) -> str:
    """How the process ended by itself within `grace_s`, or that it did not; empty for status 0."""
    try:
        return _how_ended(process.wait(grace_s))
    except subprocess.TimeoutExpired:
        return f"still running {grace_s:g} s after its manifest, ended"


def _how_ended(status: int) -> str:
    if status < 0 or status > 128:
        number = -status if status < 0 else status - 128
        try:
            return f"ended by {signal.Signals(number).name}"
        except ValueError:
            pass
    return f"exit status {status}" if status else ""


def _check(job: ChildJob, manifest: Manifest | None, ended: str) -> None:
    log = job.folder / LOG
    if manifest is None:
        raise StageError(
            f"{job.name}: the process left no manifest of its success ({ended or 'exit status 0'}); end of {log}:\n"
            f"{_tail(log)}"
        )
    if not manifest.success:
        raise StageError(f"{job.name}: {manifest.error} (log: {log})")
    if set(manifest.outputs) != set(job.outputs):
        named = ", ".join(sorted(manifest.outputs)) or "nothing"
        raise StageError(f"{job.folder / MANIFEST}: outputs: found {named}, expected {', '.join(job.outputs)}")
    for name, digest in manifest.outputs.items():
        place = job.root / name
        if not place.exists() or sha256_tree(place) != digest:
            found = "changed since" if place.exists() else "missing"
            raise StageError(f"{job.name}: output {place}: {found}, though the manifest claims it (log: {log})")


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
    return "\n".join(lines) or "(empty)"


class _Events:
    """The events of one run, each read once; a line that is still being written waits."""

    def __init__(self, path: Path, run: str) -> None:
        self._path = path
        self._run = run
        self._offset = 0

    def pass_on(self, on_event: Callable[[dict[str, Any]], None]) -> None:
        for event in self._new():
            on_event(event)

    def _new(self) -> Iterator[dict[str, Any]]:
        if not self._path.exists():
            return
        with open(self._path, "rb") as stream:
            stream.seek(self._offset)
            whole, _, _ = stream.read().rpartition(b"\n")
        if not whole:
            return
        self._offset += len(whole) + 1
        for line in whole.split(b"\n"):
            event = json.loads(line)
            if event["run"] == self._run:
                yield event
