"""The unbroken runs of a rollout: what formats of steps can hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import StageError
from asap_core.rollouts.record import Rollout


def runs(rollout: Rollout) -> list[NDArray[np.int64]]:
    """Rows of each run of consecutive usable transitions; the state after the last of them is one row further.

    Raises:
        StageError: there is none.
    """
    rows = rollout.transitions()
    if not len(rows):
        raise StageError("the rollout has no usable transition, so there is nothing to export")
    return np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)


def run_names(rollout: Rollout, parts: list[NDArray[np.int64]]) -> list[str]:
    """A name for each run: its motion and its number."""
    return [f"{rollout.motion[rows[0]]}_{number}" for number, rows in enumerate(parts)]
