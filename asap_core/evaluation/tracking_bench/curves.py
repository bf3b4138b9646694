"""Learning curves as a picture: a panel for each measure, a line for each seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_PANELS = (
    ("success", "success", 1.0),
    ("completion", "share of the clip covered", 1.0),
    ("E_g_mpjpe", "E_g_mpjpe, mm", None),
)


def draw_curves(title: str, curves: Mapping[int, Sequence[Mapping[str, float]]]) -> Any:
    """A matplotlib figure of seed → rows (`learning.Row`) over wall time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 3.6), layout="constrained")
    for axis, (name, label, top) in zip(figure.subplots(1, len(_PANELS)), _PANELS, strict=True):
        for seed, history in curves.items():
            axis.plot([r["wall_s"] for r in history], [r[name] for r in history], label=f"seed {seed}", lw=1.3)
        axis.set_ylim(0.0, top and 1.03 * top)
        axis.grid(alpha=0.3)
        axis.set_ylabel(label)
        axis.set_xlabel("wall time, evaluations included, s")
    figure.axes[0].legend(loc="lower right", fontsize=8)
    figure.suptitle(title)
    return figure
