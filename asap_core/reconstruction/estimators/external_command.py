"""Runs a foreign program: its words go to a log, its last line is shown, and an end ends all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from asap_core.errors import StageError
from asap_core.progress import Tracker

_LOOK_EVERY_S = 0.2
_GRACE_S = 5.0
"""Between asking a program to end and ending it."""
_TAIL_LINES, _TAIL_BYTES = 15, 8192


def run_logged(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    log: Path,
    deadline: float,
    bar: Tracker,
) -> int:
    """The exit status of `command`, run in `folder` with its output added to `log`.

    Args:
        command: program and arguments.
        folder: working folder.
        environment: variables on top of this process's.
        log: a file that is appended to.
        deadline: on `time.monotonic()`.
        bar: shows the last line.

    Raises:
        StageError: the program cannot be started, or the deadline passed; it and its children are ended then, as they
            are on Ctrl-C.
    """
    with log.open("ab") as stream:
        stream.write(f"$ {' '.join(command)}\n".encode())
        stream.flush()
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise StageError(f"{command[0]}: cannot be started in {folder}: {error.strerror or error}") from None
    try:
        while process.poll() is None:
            if time.monotonic() > deadline:
                raise StageError(f"{command[0]}: out of time. {said(log)}")
            bar.advance(0, note=_last_line(log))
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_EVERY_S)
    finally:
        _end(process)
    return process.returncode


def said(log: Path) -> str:
    """The last lines of a log, for an error."""
    lines = "\n".join(f"  {line}" for line in _tail(log)[-_TAIL_LINES:])
    return f"Its last words, of {log}:\n{lines}"


def _last_line(log: Path) -> str:
    return (_tail(log) or [""])[-1][:80]


def _tail(log: Path) -> list[str]:
    """The last lines that are not empty; a progress bar's steps count as lines."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        text = stream.read().decode(errors="replace")
    lines = ("".join(sign for sign in line if sign.isprintable()).strip() for line in text.splitlines())
    return [line for line in lines if line]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program's whole process group, also what it left behind when it ended by itself."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except (ProcessLookupError, PermissionError):
            break
        limit = time.monotonic() + _GRACE_S
        while time.monotonic() < limit and _lives(process):
            time.sleep(0.05)
    process.wait()


def _lives(process: subprocess.Popen[bytes]) -> bool:
    """Whether any process of the group is left."""
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
