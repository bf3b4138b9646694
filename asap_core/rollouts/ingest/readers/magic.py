"""Files known by their first bytes."""

from __future__ import annotations

from pathlib import Path


def begins_with(path: Path, magic: bytes) -> bool:
    """Whether a file begins with `magic`; False for a folder and for what cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read(len(magic)) == magic
    except OSError:
        return False
