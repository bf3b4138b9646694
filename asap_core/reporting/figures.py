"""Plots of the report, as matplotlib figures without a display."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"vanilla": "#8a8f98", "finetune_only": "#d9822b", "asap": "#1f6feb", "zero": "#8a8f98", "delta": "#1f6feb"}
"""One colour for an arm in every plot."""


def to_data_uri(figure: Figure) -> str:
    """The figure as a PNG inside a `data:` address; equal figures give equal text."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


def _canvas(width: float = 7.0, height: float = 3.4) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def gap_over_time(gap: dict[str, NDArray[np.floating]], control_dt: float, title: str) -> Figure:
    """Mean link distance to the reference (mm) over time (s), one line per arm."""
    figure, axes = _canvas()
    for arm, values in gap.items():
        axes.plot(np.arange(len(values)) * control_dt, values, label=arm, color=COLOURS.get(arm))
    axes.set(xlabel="time (s)", ylabel="mean link distance (mm)", title=title, ylim=(0, None))
    axes.legend(frameon=False)
    return figure


def error_growth(growth: dict[str, NDArray[np.floating]], control_dt: float) -> Figure:
    """Open-loop distance to the record (mm) over replayed time (s), with and without the delta."""
    figure, axes = _canvas()
    for model, values in growth.items():
        times = np.arange(len(values) + 1) * control_dt
        axes.plot(times, np.append(0.0, values), label=model, color=COLOURS.get(model))
    axes.set(xlabel="replayed time (s)", ylabel="mean link distance (mm)", title="Open-loop error, held-out rollouts")
    axes.legend(frameon=False)
    return figure


def joint_bars(mean_abs_delta: dict[str, float]) -> Figure:
    """Mean |Δq| (rad) of each joint over the held-out rollouts."""
    figure, axes = _canvas(height=4.6)
    names = [name.removesuffix("_joint") for name in mean_abs_delta]
    axes.barh(names, list(mean_abs_delta.values()), color=COLOURS["delta"])
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=7)
    axes.set(xlabel="mean |Δq| (rad)", title="How much the delta corrects each joint")
    return figure


def training_curves(histories: dict[str, pd.DataFrame]) -> Figure:
    """Reward per iteration of each training run; where a run was scored, its success on a second axis."""
    figure, axes = _canvas()
    scored = axes.twinx()
    for label, history in histories.items():
        colour = COLOURS.get(label.split()[0])
        axes.plot(history["iteration"], history["reward"], label=label, color=colour, alpha=0.8)
        if "success" in history:
            rows = history.dropna(subset=["success"])
            scored.plot(rows["iteration"], rows["success"], "--", color=colour, linewidth=1)
    scored.set(ylabel="success (dashed)", ylim=(-0.02, 1.05))
    axes.set(xlabel="iteration", ylabel="mean reward", title="Training")
    axes.legend(frameon=False, fontsize=7)
    return figure
