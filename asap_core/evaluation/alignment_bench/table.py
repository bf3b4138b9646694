"""From cells to the layout of the paper's Table III, its own figures beside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pandas as pd

from asap_core.alignment.replay import HORIZONS_S
from asap_core.evaluation.alignment_bench.cells import Cell
from asap_core.evaluation.alignment_bench.paper import TABLE_III, WANTED, paper_closed
from asap_core.evaluation.alignment_bench.score import FIGURES, SegmentErrors, closed_share
from asap_core.evaluation.alignment_bench.splits import NUM_FOLDS
from asap_core.evaluation.alignment_bench.targets import ALL_TARGETS
from asap_core.metrics import Interval

RIVALS = ("zero", "sysid", "delta_dynamics", "delta", "two_stage")
"""In the paper's order; the two-stage form is in no paper."""


def open_loop_table(cells: Iterable[Cell], code: str) -> pd.DataFrame:
    """One row for each target, horizon and rival.

    Shares closed are over all held-out segments of the folds there are, bootstrapped over episodes. `folds` says which
    they are, `verdict` whether the share that is asked for was reached on these, and `other_code` which of them were
    made by other code than `code`.
    """
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in _with_zero(list(cells)):
        groups.setdefault((cell.target, cell.rival), []).append(cell)
    keys = [(target, rival) for target in ALL_TARGETS for rival in RIVALS if (target, rival) in groups]
    rows = [row for key in keys for row in _rows(*key, sorted(groups[key], key=lambda c: c.fold), code)]
    table = pd.DataFrame(rows)
    if not len(table):
        return table
    order = {name: place for place, name in enumerate((*ALL_TARGETS, *RIVALS))}
    return table.sort_values(["target", "horizon_s", "rival"], key=lambda c: c.map(order).fillna(c), ignore_index=True)


def _with_zero(cells: Sequence[Cell]) -> list[Cell]:
    """The cells, and of every target and fold the nominal simulator, which each cell brings with it."""
    known = {(c.target, c.fold): c for c in cells if c.fold != "all"}
    zeros = (
        replace(c, rival="zero", errors=c.zero, chosen="zero", report={}, wall_s=0.0, cpu_s=0.0) for c in known.values()
    )
    return [*(c for c in cells if c.rival != "zero"), *zeros]


def _rows(target: str, rival: str, cells: Sequence[Cell], code: str) -> list[dict[str, object]]:
    held = [c for c in cells if c.fold != "all"]
    seen = [c for c in cells if c.fold == "all"]
    if not held:
        return []
    errors = SegmentErrors.joined([c.errors for c in held])
    closed = closed_share(errors, SegmentErrors.joined([c.zero for c in held]))
    sampled = [share.mean for share in closed_share(seen[0].errors, seen[0].zero)] if seen else [None] * len(HORIZONS_S)
    about = {
        "folds": " ".join(c.fold for c in held),
        "of_folds": NUM_FOLDS,
        "chosen": " ".join(c.chosen for c in held),
        "fit_cpu_s": max(c.cpu_s for c in held),
        "fit_wall_s": max(c.wall_s for c in held),
        "other_code": " ".join(c.fold for c in cells if c.code != code),
    }
    rows = []
    for i, horizon in enumerate(HORIZONS_S):
        must, aim = WANTED.get((target, rival, horizon), (None, None))
        row: dict[str, object] = {"target": target, "horizon_s": horizon, "rival": rival}
        row |= {"closed": closed[i].mean, "low": closed[i].low, "high": closed[i].high, "episodes": closed[i].n}
        row |= {"must": must, "aim": aim, "verdict": _verdict(closed[i].mean, must)}
        row |= {"in_sample": sampled[i]}
        row |= dict(zip(FIGURES, errors.figures[:, i].mean(axis=0).tolist(), strict=True))
        rows.append(row | _papers(horizon, rival) | about)
    return rows


def _verdict(closed: float, must: float | None) -> str:
    return "" if must is None else "met" if closed >= must else "missed"


def _papers(horizon: float, rival: str) -> dict[str, float | None]:
    out: dict[str, float | None] = {}
    for simulator, table in TABLE_III.items():
        values = table[horizon].get(rival, (None,) * len(FIGURES))
        out[f"paper_{simulator}_closed"] = paper_closed(simulator, horizon, rival)
        out |= {f"paper_{simulator}_{name}": value for name, value in zip(FIGURES, values, strict=True)}
    return out


def shown(table: pd.DataFrame) -> dict[str, str]:
    """`target horizon rival/figure` → text for the terminal, in the paper's layout, the paper's own figures last."""
    figures = {}
    for row in table.to_dict("records"):
        name = f"{row['target']} {row['horizon_s']:g}s {row['rival']}"
        figures[f"{name}/closed %"] = Interval(100 * row["closed"], 100 * row["low"], 100 * row["high"], 0).text(0)
        figures[f"{name}/must, aim %"] = _two(row["must"], row["aim"])
        figures[f"{name}/in sample %"] = _one(row["in_sample"])
        figures[f"{name}/{' · '.join(FIGURES)}"] = " · ".join(f"{row[figure]:.1f}" for figure in FIGURES)
        figures[f"{name}/folds"] = f"{len(str(row['folds']).split())} of {row['of_folds']}"
        figures[f"{name}/paper closed %: {', '.join(TABLE_III)}"] = _two(*(row[f"paper_{s}_closed"] for s in TABLE_III))
        for simulator in TABLE_III:
            values = [row[f"paper_{simulator}_{figure}"] for figure in FIGURES]
            figures[f"{name}/paper: {simulator}"] = "–" if pd.isna(values[0]) else " · ".join(f"{v:g}" for v in values)
    return figures


def _one(share: float | None) -> str:
    return "–" if share is None or pd.isna(share) else f"{100 * share:.0f}"


def _two(first: float | None, second: float | None) -> str:
    return "–" if pd.isna(first) else f"{_one(first)}, {_one(second)}"
