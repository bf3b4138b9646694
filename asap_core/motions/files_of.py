"""The motion files that a list of files and folders means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from asap_core.errors import InputFileError
from asap_core.files import is_folder
from asap_core.motions.formats.table import FORMATS, sniff


@dataclass(frozen=True)
class Found:
    """What lies under the paths asked for."""

    files: list[Path] = field(default_factory=list)
    """Motion files and folders that are one motion, to be read."""
    passed_over: list[Path] = field(default_factory=list)
    """Files in folders whose suffix no format has."""
    unreadable: list[InputFileError] = field(default_factory=list)
    """Paths that are missing, closed or neither file nor folder, and folders without a motion."""


def find_motions(paths: Iterable[Path]) -> Found:
    """Files as they are named; folders searched through, save those that are one motion themselves."""
    found = Found()
    for path in paths:
        before = len(found.files) + len(found.unreadable)
        _collect(path, found, {})
        if len(found.files) + len(found.unreadable) == before:
            found.unreadable.append(InputFileError(path, "a folder without motion files"))
    return found


def _collect(path: Path, found: Found, seen: dict[tuple[int, int], Path]) -> None:
    """Sort a path into `found`; `seen` are the folders on the way, by device and inode: links may lead in circles."""
    try:
        folder = is_folder(path)
        if not folder:
            known = not seen or path.suffix.lower() in _SUFFIXES
            (found.files if known else found.passed_over).append(path)
            return
        status = path.stat()
        if seen.setdefault((status.st_dev, status.st_ino), path) is not path:
            return
        if sniff(path):
            found.files.append(path)
            return
        entries = sorted(path.iterdir())
    except InputFileError as error:
        found.unreadable.append(error)
        return
    except OSError as error:
        found.unreadable.append(InputFileError(path, f"cannot be read: {error.strerror or error}"))
        return
    for entry in entries:
        if not entry.name.startswith("."):
            _collect(entry, found, seen)


_SUFFIXES = {suffix for form in FORMATS.values() for suffix in form.suffixes}
