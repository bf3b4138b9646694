"""Writing so that a kill leaves nothing half: everything is written beside and renamed into place."""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from asap_core.errors import InputFileError, StageError

_TMP_MARK = ".partial-"


def _beside(path: Path) -> Path:
    return path.with_name(f"{_TMP_MARK}{path.name}-{uuid.uuid4().hex[:8]}")


def _sweep(path: Path) -> None:
    """Remove what a killed writer of `path` left beside it."""
    for left in path.parent.glob(f"{_TMP_MARK}{glob.escape(path.name)}-*"):
        _remove(left)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _prepare(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
    except OSError as error:
        raise StageError(
            f"{path}: cannot be written: {error.strerror}. Free or unlock {path.parent} and run again"
        ) from error


@contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it replaces `path`, on an exception it is removed.

    Raises:
        StageError: the folder is read-only or the disk is full.
    """
    path = Path(path)
    _prepare(path)
    partial = _beside(path)
    try:
        yield partial
        os.replace(partial, path)
    except OSError as error:
        raise _failure(path, error) from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


@contextmanager
def atomic_dir(path: Path | str) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; on success it takes the place of `path` as a whole.

    Raises:
        StageError: the parent is read-only or the disk is full.
    """
    path = Path(path)
    _prepare(path)
    partial = _beside(path)
    try:
        partial.mkdir()
        yield partial
        if path.exists():
            old = _beside(path)
            os.replace(path, old)
            os.replace(partial, path)
            _remove(old)
        else:
            os.replace(partial, path)
    except OSError as error:
        raise _failure(path, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def make_folder(path: Path) -> None:
    """Create a folder and those above it.

    Raises:
        StageError: the place is read-only or holds a file.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StageError(f"{path}: the folder cannot be made: {error.strerror or error}") from error


def _failure(path: Path, error: OSError) -> StageError:
    """What to say of a write to `path` that failed; a file that it should have been made from is named if missing."""
    named = f" ({error.filename})" if isinstance(error, FileNotFoundError) and error.filename else ""
    return StageError(f"{path}: cannot be written: {error.strerror or error}{named}. Nothing was kept")


def write_json(path: Path | str, value: Any) -> None:
    """Write `value` as indented JSON with sorted keys, atomically. NaN is refused."""
    with atomic_file(path) as partial:
        partial.write_text(json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def write_tensors(path: Path | str, content: dict[str, Any]) -> None:
    """`torch.save`, atomically; through memory, because torch reports a full disk as a plain `RuntimeError`.

    Raises:
        StageError: the folder is read-only or the disk is full.
    """
    import torch

    buffer = io.BytesIO()
    torch.save(content, buffer)
    with atomic_file(path) as partial:
        partial.write_bytes(buffer.getbuffer())


def read_json(path: Path | str) -> Any:
    """Read JSON.

    Raises:
        InputFileError: missing, unreadable or not JSON.
    """
    try:
        return json.loads(Path(path).read_text())
    except FileNotFoundError:
        raise InputFileError(path, "missing") from None
    except OSError as error:
        raise InputFileError(path, f"cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputFileError(path, f"not JSON: {error}") from None


def read_object(path: Path | str, fields: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read a JSON object that has `fields`, each an object too.

    Raises:
        InputFileError: missing, not JSON, or of another shape.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputFileError(path, f"holds {type(content).__name__}, expected a JSON object")
    for name in fields:
        if not isinstance(content.get(name), dict):
            found = type(content[name]).__name__ if name in content else "nothing"
            raise InputFileError(path, f"field {name}: found {found}, expected an object")
    return content


def file_name(text: str) -> str:
    """A name from a file as part of a file's name: separators and what cannot be printed become `_`, 100 characters."""
    return "".join(sign if sign.isprintable() and sign not in "/\\" else "_" for sign in text)[:100]


def is_folder(path: Path) -> bool:
    """Whether a path that can be read is a folder; a pipe or a device is never opened, it may have no end.

    Raises:
        InputFileError: missing, closed to this user, or neither a file nor a folder.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        raise InputFileError(path, "missing" if missing else f"cannot be read: {error.strerror}") from None
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise InputFileError(path, "a pipe or device, expected a file or folder")
    if not os.access(path, os.R_OK | (os.X_OK if stat.S_ISDIR(mode) else 0)):
        raise InputFileError(path, "cannot be read: Permission denied")
    return stat.S_ISDIR(mode)


def sha256_file(path: Path | str) -> str:
    """Hex digest of a file's bytes.

    Raises:
        InputFileError: missing or unreadable.
    """
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputFileError(path, "missing" if isinstance(error, FileNotFoundError) else f"{error.strerror}") from None


def sha256_tree(path: Path | str) -> str:
    """Hex digest of a file, or of every file under a folder with its relative name."""
    path = Path(path)
    if path.is_file():
        return sha256_file(path)
    digest = hashlib.sha256()
    for item in sorted(p for p in path.rglob("*") if p.is_file()):
        digest.update(item.relative_to(path).as_posix().encode() + b"\0" + sha256_file(item).encode())
    return digest.hexdigest()


def content_key(*parts: Any) -> str:
    """A short key of JSON-serialisable parts: equal parts, equal key."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]
