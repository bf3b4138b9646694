"""Which motions are fitted on and which are held out: a fixed list, published with the results.

Levels follow the proposal for the paper's unpublished grouping: level 1 easy, levels 2 and 3 medium, CR7 hard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from asap_core.errors import unknown_name

Level = Literal["easy", "medium", "hard"]


@dataclass(frozen=True)
class Motion:
    """A motion with the published policy of the same name."""

    name: str
    level: Level
    fold: int
    """In this fold the motion is held out."""


MOTIONS = (
    Motion("CR7_level1", "hard", 0),
    Motion("kick_level1", "easy", 0),
    Motion("jump_forward_level2", "medium", 0),
    Motion("APT_level1", "easy", 1),
    Motion("jump_forward_level3", "medium", 1),
    Motion("side_jump_level1", "easy", 1),
    Motion("lebron_level1", "easy", 2),
    Motion("kick_level2", "medium", 2),
    Motion("jump_forward_level1", "easy", 3),
    Motion("side_jump_level2", "medium", 3),
)
NUM_FOLDS = 4


@dataclass(frozen=True)
class Fold:
    """Names of motions; the three share none."""

    fit: tuple[str, ...]
    validation: tuple[str, ...]
    heldout: tuple[str, ...]


def fold(index: int) -> Fold:
    """Fold `index` of `NUM_FOLDS`: two motions of the next fold choose among candidates, the rest are fitted on."""
    heldout = tuple(m.name for m in MOTIONS if m.fold == index)
    validation = tuple(m.name for m in MOTIONS if m.fold == (index + 1) % NUM_FOLDS)[:2]
    fitted = tuple(m.name for m in MOTIONS if m.name not in (*heldout, *validation))
    return Fold(fitted, validation, heldout)


def in_sample() -> Fold:
    """All motions in all three parts: what a rival could reach if it had seen everything."""
    everything = tuple(m.name for m in MOTIONS)
    return Fold(everything, everything, everything)


PARTS = (*(str(index) for index in range(NUM_FOLDS)), "all")
"""Names of the folds; `all` is `in_sample`."""


def fold_of(name: str) -> Fold:
    """The fold of that name in `PARTS`.

    Raises:
        UnknownNameError: there is none.
    """
    if name not in PARTS:
        raise unknown_name("fold", name, PARTS)
    return in_sample() if name == "all" else fold(int(name))
