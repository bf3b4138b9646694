"""One page of plots for an ingested log, from which a person can judge it."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from asap_core.files import atomic_file
from asap_core.rollouts.ingest.ingest import Ingested
from asap_core.rollouts.ingest.quality import INFORMING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_JOINTS_SHOWN = 4
_GOOD, _BAD, _MARKED = "#1f6feb", "#c93c37", "#d9822b"
_COMMAND = "#8a8f98"


def write_log_page(path: Path | str, ingested: Ingested) -> None:
    """Write a PNG: when rows are usable and why not, the worst joints against their targets, the base, the clock.

    Does nothing of a log without control steps but say so on the page.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 10), layout="constrained")
    figure.suptitle(_title(ingested), fontsize=11)
    grid = figure.add_gridspec(4, 2)
    _text(figure.add_subplot(grid[0, 1]), ingested)
    if ingested.steps is not None and ingested.quality is not None:
        _masks(figure.add_subplot(grid[0, 0]), ingested)
        for place, joint in enumerate(_worst_joints(ingested)):
            _joint(figure.add_subplot(grid[1 + place // 2, place % 2]), ingested, joint)
        _base(figure.add_subplot(grid[3, 0]), ingested)
        _gaps(figure.add_subplot(grid[3, 1]), ingested)
    with atomic_file(path) as partial:
        figure.savefig(partial, format="png", dpi=90, metadata={"Software": None})


def _title(ingested: Ingested) -> str:
    log = ingested.understood.log
    head = f"{log.path.name} ({log.format}, sha256 {log.sha256[:12]})"
    if ingested.quality is None:
        return f"{head}: no control steps: {ingested.why_no_rollout}"
    quality = ingested.quality
    return f"{head}: {quality.usable_s:.1f} s usable of {quality.recorded_s:.1f} s in {len(quality.runs)} runs"


def _text(axes: Axes, ingested: Ingested) -> None:
    axes.axis("off")
    lines = [f"{f.severity}: {f.text}" for f in ingested.findings] or ["nothing speaks against this log"]
    shown = [textwrap.shorten(line, 110, placeholder=" …") for line in lines[:12]]
    more = [f"and {len(lines) - 12} more in the report"] if len(lines) > 12 else []
    axes.text(0, 1, "\n".join(shown + more), va="top", fontsize=7, family="monospace")


def _masks(axes: Axes, ingested: Ingested) -> None:
    assert ingested.steps is not None
    assert ingested.quality is not None
    time = ingested.steps.time - ingested.steps.time[0]
    rows = [("usable", ingested.quality.usable, _GOOD)]
    rows += [
        (name, mask, _MARKED if name in INFORMING else _BAD)
        for name, mask in ingested.quality.masks.items()
        if mask.any()
    ]
    for place, (_, mask, colour) in enumerate(rows):
        axes.fill_between(time, place, place + 0.8, where=mask, step="post", color=colour, linewidth=0)
    axes.set(ylim=(len(rows), -0.2), xlim=(time[0], time[-1]), xlabel="time (s)")
    axes.set_title("usable rows, and what speaks against the others")
    axes.set_yticks(np.arange(len(rows)) + 0.4, [name for name, _, _ in rows], fontsize=7)


def _worst_joints(ingested: Ingested) -> list[str]:
    moving = [gap for gap in ingested.gaps if np.isfinite(gap.rmse_rad)]
    return [gap.joint for gap in sorted(moving, key=lambda gap: -gap.rmse_rad)[:_JOINTS_SHOWN]]


def _joint(axes: Axes, ingested: Ingested, joint: str) -> None:
    assert ingested.steps is not None
    steps = ingested.steps
    j = steps.joint_names.index(joint)
    time = steps.time - steps.time[0]
    axes.step(time, steps.joint_target[:, j], where="post", color=_COMMAND, linewidth=0.8, label="target")
    axes.plot(time, steps.joint_pos[:, j], color=_GOOD, linewidth=0.8, label="angle")
    gap = next(gap for gap in ingested.gaps if gap.joint == joint)
    axes.set(title=f"{joint}: rmse {gap.rmse_rad:.3f} rad, lag {gap.lag_ms:.0f} ms, gain {gap.gain:.2f}", ylabel="rad")
    axes.set_xlim(time[0], time[-1])
    axes.legend(frameon=False, fontsize=7)


def _base(axes: Axes, ingested: Ingested) -> None:
    assert ingested.steps is not None
    time = ingested.steps.time - ingested.steps.time[0]
    if ingested.root is None:
        axes.text(0.5, 0.5, "no base motion: neither mocap nor an estimate", ha="center", transform=axes.transAxes)
        axes.axis("off")
        return
    for axis, name in enumerate("xyz"):
        axes.plot(time, ingested.root.lin_vel[:, axis], linewidth=0.8, label=f"v {name}")
    axes.set(title=f"base velocity ({ingested.root.kind})", xlabel="time (s)", ylabel="m/s", xlim=(time[0], time[-1]))
    axes.legend(frameon=False, fontsize=7, ncols=3)


def _gaps(axes: Axes, ingested: Ingested) -> None:
    names = [gap.joint.removesuffix("_joint") for gap in ingested.gaps]
    axes.bar(np.arange(len(names)), [gap.rmse_rad for gap in ingested.gaps], color=_GOOD)
    axes.set_xticks(np.arange(len(names)), names, rotation=90, fontsize=6)
    axes.set(title="angle against target, rms", ylabel="rad")
