"""The comparison of arms as rows and as a terminal table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from asap_core.errors import InputFileError
from asap_core.files import read_object
from asap_core.metrics import METRIC_NAMES

if TYPE_CHECKING:
    from rich.table import Table

UNITS = {
    "success": "",
    "E_g_mpjpe": "mm",
    "E_mpjpe": "mm",
    "E_acc": "mm/frame²",
    "E_vel": "mm/frame",
    "E_vel_root": "mm/frame",
}
"""Of each figure; a frame is one control step."""


def comparison_cells(figures: dict[str, dict[str, dict[str, Any]]]) -> list[list[str]]:
    """One line per arm: its name, then `mean [low, high]` of every figure.

    Args:
        figures: arm → figure → {mean, low, high}.
    """
    return [[arm, *(_cell(name, values[name]) for name in METRIC_NAMES)] for arm, values in figures.items()]


def comparison_header() -> list[str]:
    """The columns of `comparison_cells`."""
    return ["arm", *(f"{name} ({UNITS[name]})" if UNITS[name] else name for name in METRIC_NAMES)]


def comparison_table(root: Path) -> Table:
    """The closed loop on the target, with intervals, as a table for the terminal.

    Raises:
        InputFileError: evaluation has not run, or its figures are malformed.
    """
    from rich.table import Table

    path = root / "evaluation" / "metrics.json"
    metrics = read_object(path, ("closed_loop",))
    table = Table(title=f"Closed loop on the target ({metrics.get('target', 'not named')})")
    for number, column in enumerate(comparison_header()):
        table.add_column(column, justify="left" if number == 0 else "right")
    try:
        rows = comparison_cells(metrics["closed_loop"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputFileError(path, f"field closed_loop: malformed at {error}; `dvc repro evaluate` writes it") from None
    for cells in rows:
        table.add_row(*cells)
    return table


def _cell(name: str, value: dict[str, Any]) -> str:
    digits = 2 if name in ("success", "E_acc", "E_vel", "E_vel_root") else 1
    return f"{value['mean']:.{digits}f} [{value['low']:.{digits}f}, {value['high']:.{digits}f}]"
