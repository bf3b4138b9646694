"""The motions of the closed-loop table: those that a policy was published for, by level.

Levels are those of `alignment_bench/splits.py`, which leave one motion in `hard`; the jump forward of level 3, on which
the published policies track worst in the nominal simulator (`asap bench policies`), is counted as hard here.
"""

from __future__ import annotations

from collections.abc import Mapping

from asap_core.evaluation.alignment_bench.splits import MOTIONS, Fold, Level, fold

LEVELS: tuple[Level, ...] = ("easy", "medium", "hard")
LEVEL_OF: Mapping[str, Level] = {m.name: m.level for m in MOTIONS} | {"jump_forward_level3": "hard"}
DEFAULT_MOTIONS = (
    "kick_level1",
    "side_jump_level1",
    "jump_forward_level2",
    "side_jump_level2",
    "CR7_level1",
    "jump_forward_level3",
)
"""Two of each level, out of three folds."""


def fold_without(motion: str) -> Fold:
    """The fold whose fits have not seen `motion`."""
    return fold(next(m.fold for m in MOTIONS if m.name == motion))
