"""The open-loop table as a picture: shares closed with their intervals, by target and rival."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {"sysid": "#d9822b", "delta_dynamics": "#8a8f98", "delta": "#1f6feb", "two_stage": "#2e7d32"}
_LEAST, _WIDTH = -0.4, 0.8


def draw(table: pd.DataFrame) -> Figure:
    """Of `open_loop_table`: one row of axes for each horizon; a black mark is what is asked for at least."""
    from matplotlib.figure import Figure

    targets, horizons = list(dict.fromkeys(table["target"])), sorted(set(table["horizon_s"]))
    figure = Figure(figsize=(max(7.0, 2.0 + 1.3 * len(targets)), 2.5 * len(horizons)), layout="constrained")
    grid = figure.subplots(len(horizons), 1, sharex=True, squeeze=False)[:, 0]
    for axes, horizon in zip(grid, horizons, strict=True):
        _panel(axes, table[(table["horizon_s"] == horizon) & (table["rival"] != "zero")], targets)
        axes.set_ylabel(f"share closed, {horizon:g} s")
    grid[0].legend(ncols=len(_COLOURS), frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    grid[-1].set_xticks(range(len(targets)), [_label(table, t) for t in targets], fontsize=8)
    return figure


def _label(table: pd.DataFrame, target: str) -> str:
    folds = [len(str(f).split()) for f in table.loc[table["target"] == target, "folds"]]
    some = f"{min(folds)}" if min(folds) == max(folds) else f"{min(folds)}–{max(folds)}"
    return f"{target}\n{some} of {table['of_folds'].iloc[0]} folds"


def _panel(axes: Axes, rows: pd.DataFrame, targets: list[str]) -> None:
    step = _WIDTH / len(_COLOURS)
    for number, (rival, colour) in enumerate(_COLOURS.items()):
        part = rows[rows["rival"] == rival]
        if not len(part):
            continue
        places = np.array([targets.index(t) for t in part["target"]]) + (number + 0.5) * step - _WIDTH / 2
        closed = part["closed"].to_numpy()
        away = np.abs(np.stack([closed - part["low"], part["high"] - closed]))
        axes.bar(places, closed, step, color=colour, label=rival, yerr=away, error_kw={"lw": 0.8, "capsize": 2})
        must = part["must"].to_numpy(dtype=float)
        axes.hlines(must, places - step / 2, places + step / 2, color="black", lw=2)
    axes.axhline(0.0, color="black", lw=0.6)
    axes.set(ylim=(_LEAST, 1.05), xlim=(-0.6, len(targets) - 0.4))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
