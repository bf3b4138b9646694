"""Reads one C3D file with ezc3d in a process of its own, since damaged files make that library crash the process.

Run as a script: `python -P c3d_worker.py FILE OUT`; writes OUT (npz) or ends with a message and a non-zero status.
"""

from __future__ import annotations

import sys

_MEMORY = 4 << 30


def main(path: str, out: str) -> None:
    """Write points (3, M, N), labels, first frame, rate, unit and vertical axis of `path` to `out`."""
    import numpy as np

    _limit_memory()
    import ezc3d

    content = ezc3d.c3d(path)
    group = content["parameters"]["POINT"]

    def texts(name: str) -> list[str]:
        return [str(value) for value in group[name]["value"]] if name in group else []

    np.savez(
        out,
        points=np.asarray(content["data"]["points"], dtype=np.float64)[:3],
        labels=np.array([label for key in ("LABELS", "LABELS2", "LABELS3") for label in texts(key)], dtype=np.str_),
        first_frame=int(content["header"]["points"]["first_frame"]),
        rate=np.array(texts("RATE")[:1], dtype=np.str_),
        units=np.array(texts("UNITS")[:1], dtype=np.str_),
        vertical=np.array(texts("Y_SCREEN")[:1], dtype=np.str_),
        analogs=content["data"]["analogs"].shape[1],
    )


def _limit_memory() -> None:
    """A damaged count must not take the machine's memory; there is no such limit on Windows."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except Exception as error:  # the C++ library raises nearly anything
        sys.exit(str(error) or type(error).__name__)
