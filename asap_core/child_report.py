"""What a child process tells its parent: events while it works, and at the end one manifest that decides.

The parent (`processes.py`) names a folder and an id of the run in the environment. Events are JSON lines in a file and
not in a pipe: a file outlives the child, never blocks it, and the grandchildren of a launcher reach it by name.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asap_core.errors import StageError
from asap_core.files import atomic_file, sha256_tree
from asap_core.progress import Listener, heard_by

FOLDER_VARIABLE = "ASAP_CHILD_FOLDER"
RUN_VARIABLE = "ASAP_CHILD_RUN"
MANIFEST, EVENTS, LOG = "manifest.json", "events.jsonl", "log.txt"
Figures = dict[str, float | int | str]


@dataclass(frozen=True)
class Manifest:
    """How a run of a child ended, by its own word."""

    run: str
    """The id that the parent gave; a manifest with another one is of another run."""
    success: bool
    figures: Figures = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Path below the root → digest (`files.sha256_tree`) of each output."""
    error: str = ""
    """Text of the exception that ended the work."""

    def write(self, folder: Path) -> None:
        """Put it in place as a whole. Figures may be NaN."""
        with atomic_file(folder / MANIFEST) as partial:
            partial.write_text(json.dumps({**self.__dict__, "outputs": dict(self.outputs)}, indent=2) + "\n")


def read_manifest(folder: Path, run: str) -> Manifest | None:
    """The manifest of this very run; None while there is none, or only another run's."""
    try:
        content = json.loads((folder / MANIFEST).read_text())
        manifest = Manifest(**content)
    except (OSError, ValueError, TypeError):
        return None
    return manifest if manifest.run == run else None


class ChildReport(Listener):
    """The child's end. As a `Listener` of progress it passes everything on."""

    def __init__(self, folder: Path, run: str) -> None:
        self._folder = folder
        self._run = run

    def send(self, kind: str, **fields: Any) -> None:
        """Append one event. Appends of one line are whole, also from several processes."""
        line = json.dumps({"kind": kind, "run": self._run, **fields}) + "\n"
        with open(self._folder / EVENTS, "ab", buffering=0) as stream:
            stream.write(line.encode())

    def progress(self, description: str, done: int, total: int, note: str) -> None:
        """See `Listener`."""
        self.send("progress", description=description, done=done, total=total, note=note)

    def curve(self, name: str, step: int, values: Mapping[str, float]) -> None:
        """See `Listener`."""
        self.send("curve", name=name, step=step, values=dict(values))

    def said(self, text: str) -> None:
        """See `Listener`."""
        self.send("said", text=text)

    def succeed(self, figures: Figures, root: Path, outputs: Iterable[str]) -> None:
        """Write the manifest of a success, with a digest of each of `outputs` below `root`.

        Raises:
            StageError: an output does not exist.
        """
        digests = {}
        for name in outputs:
            if not (root / name).exists():
                raise StageError(f"{root / name}: the work ended without it")
            digests[name] = sha256_tree(root / name)
        Manifest(self._run, True, figures, digests).write(self._folder)

    def fail(self, error: BaseException) -> None:
        """Write the manifest of a failure."""
        text = str(error) or type(error).__name__
        Manifest(self._run, False, error=text).write(self._folder)


def report_from_environment() -> ChildReport:
    """The report of the run that the parent named.

    Raises:
        StageError: this process was not started by `processes.run_child`.
    """
    try:
        return ChildReport(Path(os.environ[FOLDER_VARIABLE]), os.environ[RUN_VARIABLE])
    except KeyError as error:
        raise StageError(f"environment variable {error.args[0]}: missing; `asap run` starts this process") from None


def work_under_report(report: ChildReport, root: Path, outputs: Iterable[str], work: Callable[[], Figures]) -> bool:
    """Do `work` and write the manifest of how it ended; whether it succeeded.

    Every exception counts, those of `sys.exit` and Ctrl-C too: a simulator's own shutdown may turn any of them into
    exit status 0.
    """
    end_with_parent()
    try:
        with heard_by(report):
            figures = work()
        report.succeed(figures, root, outputs)
    except BaseException as error:
        traceback.print_exc()
        report.fail(error)
        return False
    return True


def end_with_parent() -> None:
    """From now on, end this process and its group as soon as the parent's end of standard input closes."""
    threading.Thread(target=_await_parents_end, daemon=True).start()


def _await_parents_end() -> None:
    with suppress(OSError):
        while os.read(sys.__stdin__.fileno() if sys.__stdin__ else 0, 1024):
            pass
    os.killpg(os.getpgrp(), signal.SIGKILL)
