"""What the pipeline made and where to look: figures and tables from the files that stages wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from asap_core.errors import InputFileError
from asap_core.files import read_object
from asap_core.metrics import METRIC_NAMES
from tasks.approval import EVALUATION
from tasks.register import DEPLOYED_ARM
from tasks.stages import Figures

ARMS = ("vanilla", "finetune_only", "asap")


def read_metrics(root: Path) -> dict[str, Any]:
    """`evaluation/metrics.json`.

    Raises:
        InputFileError: evaluation has not run, or the file is damaged.
    """
    path = root / EVALUATION
    if not path.exists():
        raise InputFileError(path, "missing; `dvc repro evaluate` writes it")
    metrics = read_object(path, ("closed_loop",))
    for arm, figures in metrics["closed_loop"].items():
        if not isinstance(figures, dict):
            raise InputFileError(path, f"field closed_loop.{arm}: found {figures!r}, expected its figures")
    return metrics


def comparison_rows(metrics: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per arm: its figures in the closed loop on the target."""
    closed = metrics.get("closed_loop", {})
    return [
        {"arm": arm, **{name: _value(closed[arm].get(name)) for name in METRIC_NAMES}} for arm in ARMS if arm in closed
    ]


def left_out_clips(root: Path) -> dict[str, str]:
    """Clip -> why it is not among the retargeted; empty before the first run.

    Raises:
        InputFileError: the report is damaged.
    """
    path = root / "data" / "retargeted" / "report.json"
    return dict(read_object(path, ("left_out",))["left_out"]) if path.exists() else {}


def flat_figures(metrics: dict[str, Any]) -> Figures:
    """One flat mapping: the deployed arm's figures by their plain names, every other number by its dotted path."""
    flat: Figures = dict(flatten(metrics))
    for row in comparison_rows(metrics):
        if row["arm"] == DEPLOYED_ARM:
            flat.update({name: row[name] for name in METRIC_NAMES if row[name] is not None})
    return flat


def _value(figure: Any) -> float | None:
    """A figure, or the `mean` of one that is written with its interval."""
    return figure.get("mean") if isinstance(figure, dict) else figure


def flatten(value: dict[str, Any], prefix: str = "") -> list[tuple[str, float | int | str]]:
    """Nested mappings as pairs of dotted path and value; a list becomes its items with commas between."""
    items: list[tuple[str, float | int | str]] = []
    for key, item in value.items():
        if isinstance(item, dict):
            items += flatten(item, f"{prefix}{key}.")
        elif isinstance(item, (int, float, str)):
            items.append((f"{prefix}{key}", item))
        elif isinstance(item, list):
            items.append((f"{prefix}{key}", ", ".join(map(str, item))))
    return items
