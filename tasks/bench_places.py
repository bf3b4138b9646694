"""Where benches find shared data, and the code that alignments depend on."""

from __future__ import annotations

import os
from pathlib import Path

_ROOMS = ("robots", "simulators", "environments", "training", "rollouts", "alignment", "evaluation/alignment_bench")
ALIGNMENT_CODE = ("asap_core/rotations.py", *(f"asap_core/{room}" for room in _ROOMS))
"""What rollouts, fits and scores of `asap bench alignment` are kept under a digest of."""


def shared_folder(root: Path) -> Path:
    """Folder of the shared data: ASAP_SHARED, or `shared` beside the project."""
    return Path(os.environ.get("ASAP_SHARED", root.resolve().parent / "shared"))
