"""A content-addressed store of finished items, so that one changed item of a thousand recomputes alone.

It lies outside DVC's outputs, which are removed before each run. An item is a folder; its key is a digest of whatever
it was made from (input bytes, parameters, code version: `asap_core.files.content_key`).
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import asap_core
from asap_core.errors import StageError
from asap_core.files import content_key, sha256_file, sha256_tree

_DIGEST_FILE = "digest.sha256"
_ITEM_DIR = "item"
PARTIAL = ".partial-"
"""How names of unfinished files and folders begin."""
_STALE_S = 3600.0
"""s; nothing takes that long: an older unfinished one belongs to a killed process."""


def code_version(*sources: str) -> str:
    """Digest of the code that a result depends on: rooms and modules as dvc.yaml names them."""
    top = Path(asap_core.__file__).parents[1]
    places = [top / source for source in sources]
    files = [path for place in places for path in ([place] if place.is_file() else place.rglob("*.py"))]
    return content_key(sorted((path.relative_to(top).as_posix(), sha256_file(path)) for path in files))


def robot_version(robot: str) -> str:
    """Digest of a robot's file, for robots that `asap profile add` wrote; those built in belong to the code."""
    return sha256_file(robot) if robot.endswith(".json") else ""


class ItemStore:
    """Items under `<root>/.asap/store/<first two of key>/<key>/item`, with their digest beside them.

    Several processes may use one store: each makes an item in a folder of its own and renames it into place, and the
    first to finish wins.
    """

    def __init__(self, root: Path) -> None:
        self._base = root / ".asap" / "store"

    def get_or_make(self, key: str, make: Callable[[Path], None]) -> Path:
        """The folder of the item `key`; `make(folder)` fills it if it is absent or no longer what its digest says.

        Raises:
            StageError: the key is not usable as a folder name, or the store cannot be written.
        """
        entry = self._entry(key)
        if self._is_intact(entry):
            return entry / _ITEM_DIR
        try:
            return self._make(entry, make)
        except OSError as error:
            raise StageError(f"{entry}: cannot be written: {error.strerror or error}. Nothing was kept") from error

    def _entry(self, key: str) -> Path:
        if len(key) < 3 or not key.isalnum():
            raise StageError(f"item key: found {key!r}, expected at least three letters or digits")
        return self._base / key[:2] / key

    @staticmethod
    def _is_intact(entry: Path) -> bool:
        try:
            expected = (entry / _DIGEST_FILE).read_text()
        except (OSError, UnicodeDecodeError):
            return False
        return (entry / _ITEM_DIR).is_dir() and sha256_tree(entry / _ITEM_DIR) == expected

    def _make(self, entry: Path, make: Callable[[Path], None]) -> Path:
        entry.parent.mkdir(parents=True, exist_ok=True)
        sweep_partials(entry.parent)
        partial = entry.with_name(f"{PARTIAL}{entry.name}-{uuid.uuid4().hex[:8]}")
        try:
            (partial / _ITEM_DIR).mkdir(parents=True)
            make(partial / _ITEM_DIR)
            (partial / _DIGEST_FILE).write_text(sha256_tree(partial / _ITEM_DIR))
            self._place(partial, entry)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return entry / _ITEM_DIR

    def _place(self, partial: Path, entry: Path) -> None:
        """Rename into place. A corrupted entry gives way; an intact one that another process placed stays."""
        if entry.exists() and not self._is_intact(entry):
            broken = partial.with_name(f"{partial.name}-broken")
            os.replace(entry, broken)
            shutil.rmtree(broken)
        try:
            os.rename(partial, entry)
        except OSError:
            if not self._is_intact(entry):
                raise


def sweep_partials(folder: Path) -> None:
    """Remove what killed processes left unfinished."""
    for left in folder.glob(f"{PARTIAL}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE_S:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
