"""The closed-loop table as a picture: error with its interval by level and arm, success written beside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {"asap": "#1f6feb", "two_stage": "#1f6feb", "finetune_only": "#d9822b", "oracle": "#2e7d32"}
_OTHERS = "#8a8f98"


def draw(table: pd.DataFrame) -> Figure:
    """E_g_mpjpe of `tables.level_table`, one row of axes for each target, one column for each level."""
    from matplotlib.figure import Figure

    targets, levels = list(dict.fromkeys(table["target"])), list(dict.fromkeys(table["level"]))
    arms = max(table.groupby(["target", "level"]).size())
    size = (4.6 * len(levels) + 1.0, (0.32 * arms + 1.2) * len(targets))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(targets), len(levels), squeeze=False)
    for line, target in zip(grid, targets, strict=True):
        for axes, level in zip(line, levels, strict=True):
            _panel(axes, table[(table["target"] == target) & (table["level"] == level)])
            axes.set_title(f"{target}, {level}", fontsize=10)
    return figure


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    places = np.arange(len(rows))
    for place, row in zip(places, rows.to_dict("records"), strict=True):
        colour = _COLOURS.get(row["arm"], _OTHERS)
        away = [[row["E_g_mpjpe"] - row["E_g_mpjpe_low"]], [row["E_g_mpjpe_high"] - row["E_g_mpjpe"]]]
        axes.errorbar(row["E_g_mpjpe"], place, xerr=away, fmt="o", color=colour, capsize=3)
        axes.annotate(
            f"{row['success']:.0%}", (1.01, place), xycoords=("axes fraction", "data"), va="center", fontsize=7
        )
    axes.set_yticks(places, rows["arm"], fontsize=8)
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel="E_g_mpjpe (mm), success at the right")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.3)
