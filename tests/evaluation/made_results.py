"""Closed-loop results made by hand."""

from __future__ import annotations

import numpy as np

from asap_core.evaluation.closed_loop import ClosedLoopResult, ClosedLoopRow
from asap_core.metrics import TrackingErrors

STARTS = 16


def made_result(
    error: dict[str, list[float]], success: dict[str, float] | None = None, spread: float = 20.0
) -> ClosedLoopResult:
    """Rows of `STARTS` starts; `error[arm][seed]` is that policy's mean E_g_mpjpe (mm), starts add a common spread.

    Args:
        error: arm → mean error of each seed.
        success: arm → share of starts that succeed (1 when left out).
        spread: standard deviation over starts, the same starts for every policy, mm.
    """
    rng = np.random.default_rng(0)
    common = rng.normal(0.0, spread, STARTS)
    common -= common.mean()
    rows = []
    for world in ("target", "nominal"):
        for arm, seeds in error.items():
            share = (success or {}).get(arm, 1.0)
            for seed, mean in enumerate(seeds):
                jitter = rng.normal(0.0, 0.1, STARTS)
                for start in range(STARTS):
                    value = mean + common[start] + jitter[start]
                    errors = TrackingErrors(float(start < share * STARTS), value, value / 2, 1.0, 2.0, 3.0, 100)
                    rows.append(ClosedLoopRow(world, arm, seed, start, errors))
    gap = {(w, a): np.full(5, 100.0) for w in ("target", "nominal") for a in error}
    return ClosedLoopResult(tuple(rows), gap)
