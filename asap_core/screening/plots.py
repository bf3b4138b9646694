"""A picture of a verdict: what the contacts leave unexplained over time, and the frames each broken rule objects to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asap_core.screening.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("#d9822b", "#c23030", "#7157d9", "#0f9960", "#1f6feb", "#8a5a00", "#a82a7b", "#5c7080")


def verdict_figure(verdict: Verdict, fps: float, name: str) -> Figure:
    """The residual in weights over time (s), with a band under it for each broken rule, rejected frames filled in."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.6 + 0.25 * len(verdict.reasons)), layout="constrained")
    rows = max(1, len(verdict.reasons))
    upper, lower = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [6, rows]})
    residual = verdict.per_frame.get("infeasible", np.empty(0))
    upper.plot(np.arange(len(residual)) / fps, residual, color="#1f6feb", linewidth=1.2)
    word = "accepted" if verdict.accepted else "rejected"
    upper.set(ylabel="unexplained (weights)", title=f"{name}: {word}, score {verdict.score:.2f}", ylim=(0, None))
    upper.spines[["top", "right"]].set_visible(False)
    for row, reason in enumerate(verdict.reasons):
        bars = [(first / fps, (last - first + 1) / fps) for first, last in reason.frames]
        lower.broken_barh(bars, (row - 0.4, 0.8), color=_COLOURS[row % len(_COLOURS)])
    lower.set_yticks(range(len(verdict.reasons)), [reason.rule for reason in verdict.reasons])
    lower.set(xlabel="time (s)", ylim=(rows - 0.5, -0.5))
    lower.spines[["top", "right", "left"]].set_visible(False)
    return figure
