"""Learning curves as a picture: a column for each clip, a line for each seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_PANELS = (
    ("success", "success", 1.0),
    ("completion", "share of the clip covered", 1.0),
    ("E_g_mpjpe", "E_g_mpjpe, mm", None),
)


def draw_curves(curves: Mapping[str, Mapping[int, Sequence[Mapping[str, float]]]]) -> Any:
    """A matplotlib figure of task → seed → rows (`learning.Row`) over wall time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(curves) + 0.8, 8.0), layout="constrained")
    axes = figure.subplots(len(_PANELS), len(curves), squeeze=False, sharex="col")
    for column, (task, seeds) in enumerate(curves.items()):
        for row, (name, label, top) in enumerate(_PANELS):
            axis = axes[row][column]
            for seed, history in seeds.items():
                axis.plot([r["wall_s"] for r in history], [r[name] for r in history], label=f"seed {seed}", lw=1.3)
            axis.set_ylim(0.0, top and 1.03 * top)
            axis.grid(alpha=0.3)
            if column == 0:
                axis.set_ylabel(label)
        axes[0][column].set_title(task)
        axes[-1][column].set_xlabel("wall time, evaluations included, s")
    axes[0][0].legend(loc="lower right", fontsize=8)
    return figure
