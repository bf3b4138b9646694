"""Open-loop protocol (paper, Table III): recorded targets replayed in the nominal simulator, with and without delta."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.alignment.replay import HORIZONS_S, Segments, cut_segments, horizon_steps, replay
from asap_core.environments.correction import ActionCorrection
from asap_core.metrics import Interval, bootstrap_interval
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.simulators.protocol import Simulator

Array = NDArray[np.floating]
OPEN_LOOP_METRICS = ("E_g_mpjpe", "E_end", "E_mpjpe", "E_acc", "E_vel")
"""Mean distance over the horizon and at its end, relative to the root, and the errors of steps and their changes."""


@dataclass(frozen=True)
class OpenLoopRow:
    """One model at one horizon; intervals are bootstrapped over recorded episodes. mm, mm/frame, mm/frame²."""

    model: str
    horizon_s: float
    segments: int
    figures: dict[str, Interval]


@dataclass(frozen=True)
class OpenLoopResult:
    """The table, and the growth of the error with time."""

    rows: tuple[OpenLoopRow, ...]
    growth: dict[str, Array]
    """Model → (H,) mm after each control step, mean over segments."""

    def row(self, model: str, horizon_s: float) -> OpenLoopRow:
        """The row of `model` at `horizon_s`."""
        return next(r for r in self.rows if (r.model, r.horizon_s) == (model, horizon_s))

    def ratio(self, horizon_s: float) -> float:
        """E_g_mpjpe with delta as a share of that without."""
        delta, zero = (self.row(m, horizon_s).figures["E_g_mpjpe"].mean for m in ("delta", "zero"))
        return delta / zero


def open_loop(
    rollout: Rollout, profile: RobotProfile, simulator: Simulator, corrections: dict[str, ActionCorrection | None]
) -> OpenLoopResult:
    """Replay segments of the longest horizon, half of it apart, under each correction.

    Args:
        rollout: of a split that neither fit nor choice has seen.
        simulator: nominal.
        corrections: `zero` and `delta`.

    Raises:
        StageError: no episode lasts the longest horizon.
    """
    steps = horizon_steps(HORIZONS_S[-1], simulator.control_dt)
    segments = cut_segments(rollout, profile, steps, steps // 2)
    rows: list[OpenLoopRow] = []
    growth = {}
    for model, correction in corrections.items():
        error = replay(simulator, profile, segments, correction) - segments.link_pos
        growth[model] = 1000.0 * np.linalg.norm(error, axis=-1).mean(axis=(0, 2))
        rows += [_row(model, h, error[:, : horizon_steps(h, simulator.control_dt)], segments) for h in HORIZONS_S]
    return OpenLoopResult(tuple(rows), growth)


def _row(model: str, horizon_s: float, error: Array, segments: Segments) -> OpenLoopRow:
    """`error` (S, H, L, 3) m: reached minus recorded; it is zero at the start."""
    start = np.zeros_like(error[:, :1])
    whole = np.concatenate([start, error], axis=1)
    per_segment = {
        "E_g_mpjpe": _mean_norm_mm(error),
        "E_end": _mean_norm_mm(error[:, -1:]),
        "E_mpjpe": _mean_norm_mm(error - error[:, :, :1]),
        "E_acc": _mean_norm_mm(np.diff(whole, n=2, axis=1)),
        "E_vel": _mean_norm_mm(np.diff(whole, axis=1)),
    }
    clusters = segments.episode.tolist()
    figures = {name: bootstrap_interval(values, clusters) for name, values in per_segment.items()}
    return OpenLoopRow(model, horizon_s, segments.num, figures)


def _mean_norm_mm(difference: Array) -> Array:
    """(S,) mean over frames and links."""
    return np.asarray(1000.0 * np.linalg.norm(difference, axis=-1).mean(axis=(1, 2)))
