"""What is wrong with a motion file, how bad it is, and the command that mends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]

Severity = Literal["error", "warning", "note"]
_SHOWN_RUNS = 4


@dataclass(frozen=True)
class Problem:
    """One finding. Errors and warnings make the doctor's exit code 1; notes do not."""

    severity: Severity
    code: str
    """A short name that scripts can rely on, such as `foot_slide`."""
    text: str
    """What was found, with its figure."""
    frames: str = ""
    """Where, as ranges such as `12-30, 41`; empty if everywhere or nowhere in particular."""
    mend: str = ""
    """What to do, a command where there is one."""


def frame_ranges(frames: NDArray[np.integer] | Sequence[int]) -> str:
    """Increasing frame numbers as ranges, `12-30, 41 and 7 more`."""
    numbers = np.asarray(frames, dtype=int)
    if numbers.size == 0:
        return ""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:_SHOWN_RUNS]]
    more = len(runs) - _SHOWN_RUNS
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def long_runs(mask: Mask, least: int) -> Mask:
    """`mask` without the runs of True that are shorter than `least`."""
    out = np.zeros(len(mask), dtype=bool)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(mask, dtype=int), [0]])))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        if stop - start >= least:
            out[start:stop] = True
    return out
