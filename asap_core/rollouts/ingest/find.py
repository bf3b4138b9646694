"""Which logs lie under a path."""

from __future__ import annotations

from pathlib import Path

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.readers import sniff


def find_logs(path: Path | str) -> list[Path]:
    """The path itself if it is a file or a folder that is one log, else every log and every other file below it.

    Files that no reader knows are among them, so that they are named as left out and not passed over in silence.
    Hidden files are passed over.

    Raises:
        InputFileError: missing, or a folder without a file.
    """
    path = Path(path)
    if not path.exists():
        raise InputFileError(path, "missing")
    found = _below(path)
    if not found:
        raise InputFileError(path, "found no file, expected logs")
    return found


def _below(path: Path) -> list[Path]:
    if path.is_file() or sniff(path) is not None:
        return [path]
    children = sorted(child for child in path.iterdir() if not child.name.startswith("."))
    return [log for child in children for log in _below(child)]
