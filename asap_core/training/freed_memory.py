"""Keeping freed memory: what glibc gives back to the system costs a page fault for each 4 kB when used again."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Names of glibc's `mallopt`."""
_LIMIT = 1 << 28


def keep_freed_memory() -> None:
    """Let arrays of up to 256 MB reuse what others left. Halves the time of numpy on arrays of some 100 kB; no effect
    where the C library is not glibc."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LIMIT)
        mallopt(_TRIM_THRESHOLD, _LIMIT)
