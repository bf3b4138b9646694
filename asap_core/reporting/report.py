"""The HTML report: one file, everything inlined, opens without a network."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from asap_core.files import atomic_file
from asap_core.reporting import figures
from asap_core.reporting.tables import comparison_cells, comparison_header

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1c2127; }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.2rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .86rem }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #dfe3e8; text-align: right }
th:first-child, td:first-child { text-align: left }
.label { padding: .1rem .6rem; border-radius: 1rem; background: #fff3cd; border: 1px solid #e5cf86 }
.granted { color: #14713a } .refused { color: #a8321e }
img { max-width: 100% } .wide { overflow-x: auto } small { color: #5c6670 }
"""


@dataclass(frozen=True)
class ReportContent:
    """What the report shows."""

    metrics: dict[str, Any]
    """As in metrics.json."""
    delta: dict[str, Any]
    """As in models/delta/report.json."""
    gap: dict[tuple[str, str], NDArray[np.floating]]
    """(world, arm) → (T,) mm."""
    growth: dict[str, NDArray[np.floating]]
    """Model → (H,) mm."""
    histories: dict[str, pd.DataFrame]
    """Training run → its history."""
    control_dt: float
    motion: str
    robot: str


def write_report(content: ReportContent, path: Path | str) -> None:
    """Write the report. Atomic."""
    with atomic_file(path) as partial:
        partial.write_text(render(content), encoding="utf-8")


def render(content: ReportContent) -> str:
    """The report's HTML."""
    metrics = content.metrics
    title = f"ASAP: {content.motion} on {content.robot}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p>Target: <span class="label">{escape(str(metrics["target"]))}</span></p>',
        _gate(metrics["gate"]),
        "<h2>Closed loop on the target</h2>",
        _note(metrics),
        _table(comparison_header(), comparison_cells(metrics["closed_loop"])),
        _image(figures.gap_over_time(_world(content, "target"), content.control_dt, "On the target"), "gap on target"),
        "<h2>Closed loop in the nominal simulator</h2>",
        _table(comparison_header(), comparison_cells(metrics["nominal"])),
        _image(figures.gap_over_time(_world(content, "nominal"), content.control_dt, "Nominal"), "gap in nominal"),
        "<h2>Open loop: recorded commands of the target, replayed</h2>",
        _open_loop(metrics),
        _image(figures.error_growth(content.growth, content.control_dt), "open-loop error over time"),
        "<h2>The delta action model</h2>",
        _delta(content.delta),
        _image(figures.joint_bars(content.delta["mean_abs_delta_rad"]), "mean correction per joint"),
        "<h2>Training</h2>",
        _image(figures.training_curves(content.histories), "training curves"),
    ]
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _world(content: ReportContent, world: str) -> dict[str, NDArray[np.floating]]:
    return {arm: values for (place, arm), values in content.gap.items() if place == world}


def _gate(verdict: dict[str, Any]) -> str:
    state = str(verdict["verdict"])
    rows = [[name, text] for name, text in verdict["intervals"].items()]
    return (
        f'<p>Deployable: <strong class="{escape(state)}">{escape(state)}</strong>. {escape(str(verdict["reason"]))}</p>'
        + _table(["paired on the target", "difference"], rows)
    )


def _note(metrics: dict[str, Any]) -> str:
    return (
        f"<p><small>{metrics['starts']} perturbed starts, the same for every policy. Mean [95 % interval]; the units "
        "of an interval are the training seeds where an arm has several, else the starts. A run fails once its mean "
        "link distance exceeds 0.5 m or it tilts; errors count its frames before that, so compare rows of equal "
        "success.</small></p>"
    )


def _open_loop(metrics: dict[str, Any]) -> str:
    rows = []
    for horizon, models in metrics["open_loop"].items():
        for model, values in models.items():
            cells = [f"{v['mean']:.2f} [{v['low']:.2f}, {v['high']:.2f}]" for v in values.values()]
            rows.append([f"{horizon}, {model}", *cells])
    names = next(iter(next(iter(metrics["open_loop"].values())).values())).keys()
    ratio = metrics["open_loop_1.0s_ratio"]
    return f"<p>Error left at 1.0 s: <strong>{ratio:.2f}</strong> of the uncorrected one.</p>" + _table(
        ["horizon, model", *names], rows
    )


def _delta(report: dict[str, Any]) -> str:
    rows = [[name, *(f"{v:.2f}" for v in values.values())] for name, values in report["validation_mm"].items()]
    horizons = next(iter(report["validation_mm"].values())).keys()
    return (
        f"<p>Chosen on validation rollouts: <strong>{escape(report['chosen'])}</strong>. Mean distance in mm of every "
        "candidate:</p>" + _table(["candidate", *horizons], rows)
    )


def _table(header: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(str(cell))}</th>" for cell in header)
    lines = ["<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows]
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _image(figure: Figure, text: str) -> str:
    return f'<p><img alt="{escape(text)}" src="{figures.to_data_uri(figure)}"></p>'
