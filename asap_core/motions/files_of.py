"""The motion files that a list of files and folders means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from asap_core.errors import InputFileError
from asap_core.motions.formats.table import FORMATS, sniff


@dataclass(frozen=True)
class Found:
    """What lies under the paths asked for."""

    files: tuple[Path, ...]
    """Motion files and folders that are one motion, to be read."""
    passed_over: tuple[Path, ...]
    """Files in folders whose suffix no format has."""


def find_motions(paths: Iterable[Path]) -> Found:
    """Files as they are named; folders searched through, save those that are one motion themselves.

    Raises:
        InputFileError: a path does not exist, or a folder holds no file that may be a motion.
    """
    files: list[Path] = []
    passed: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InputFileError(path, "missing")
        before = len(files)
        _collect(path, files, passed, named=True)
        if len(files) == before:
            raise InputFileError(path, "a folder without motion files")
    return Found(tuple(files), tuple(passed))


def _collect(path: Path, files: list[Path], passed: list[Path], named: bool) -> None:
    if not path.is_dir():
        known = named or path.suffix.lower() in _SUFFIXES
        (files if known else passed).append(path)
    elif sniff(path):
        files.append(path)
    else:
        for entry in sorted(path.iterdir()):
            if not entry.name.startswith("."):
                _collect(entry, files, passed, named=False)


_SUFFIXES = {suffix for form in FORMATS.values() for suffix in form.suffixes}
