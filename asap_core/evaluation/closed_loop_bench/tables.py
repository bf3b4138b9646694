"""From cells to the paper's layout: means by level with intervals, and differences to the controls."""

from __future__ import annotations

import pandas as pd

from asap_core.evaluation.closed_loop_bench.arms import ARMS
from asap_core.evaluation.closed_loop_bench.motions import LEVELS
from asap_core.evaluation.closed_loop_bench.paper import FIGURES, TABLE_IV
from asap_core.metrics import METRIC_NAMES, Interval, paired_difference, t_interval

CONTROLS = ("vanilla", "finetune_only")
MARGIN = 0.05
"""Share of a control's E_g_mpjpe up to which the upper end of the difference still means: not worse."""
_PER_RUN = ["motion", "seed", "start"]


def level_table(cells: pd.DataFrame) -> pd.DataFrame:
    """One row for each target, level and arm: mean, low and high of every figure, and the paper's beside.

    Motions of a level count alike. The interval is over training seeds; where there is one alone, or none to vary, it
    is over starts and says nothing of other trainings.

    Args:
        cells: a row for each start, as `Cells.rows` gives them.
    """
    rows = []
    for (target, level, arm), part in _in_order(cells):
        row: dict[str, object] = {"target": target, "level": level, "arm": arm}
        row |= {"motions": part["motion"].nunique(), "seeds": part["seed"].nunique(), "starts": part["start"].nunique()}
        row["interval_over"] = _units_of(part)
        for name in METRIC_NAMES:
            interval = t_interval(part[name], part[_units_of(part)].tolist())
            row |= {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}
        row["corrected_by"] = " ".join(sorted(set(part["corrected_by"])))
        row["cell_cpu_s"] = part.groupby(["motion", "seed"])["cpu_s"].first().mean()
        rows.append(row | _papers(level, arm))
    return pd.DataFrame(rows)


def _in_order(cells: pd.DataFrame) -> list[tuple[tuple[str, str, str], pd.DataFrame]]:
    groups = dict(iter(cells.groupby(["target", "level", "arm"], sort=False)))
    targets = list(dict.fromkeys(cells["target"]))
    keys = [(t, level, arm) for t in targets for level in LEVELS for arm in ARMS if (t, level, arm) in groups]
    return [(key, groups[key]) for key in keys]


def _units_of(part: pd.DataFrame) -> str:
    return "seed" if part["seed"].nunique() > 1 else "start"


def _papers(level: str, arm: str) -> dict[str, float | None]:
    method = ARMS[arm].paper
    figures: dict[str, float | None] = {}
    for simulator, levels in TABLE_IV.items():
        values = levels[level][method] if method else (None,) * len(FIGURES)
        figures |= {f"paper_{simulator}_{name}": value for name, value in zip(FIGURES, values, strict=True)}
    return figures


def difference_table(cells: pd.DataFrame) -> pd.DataFrame:
    """Each arm minus each control in E_g_mpjpe, run by run, for each target over all its motions and by level.

    `not_worse`: success is not lower, and the interval's upper end is at most `MARGIN` of the control's mean.
    """
    rows = []
    for target, of_target in cells.groupby("target", sort=False):
        levels = {"all": of_target} | {name: of_target[of_target["level"] == name] for name in LEVELS}
        for level, part in levels.items():
            arms = [arm for arm in ARMS if arm in set(part["arm"])]
            pairs = [(arm, control) for arm in arms for control in CONTROLS if control in arms and arm != control]
            for arm, control in pairs:
                rows.append({"target": target, "level": level, **_difference(part, arm, control)})
    return pd.DataFrame(rows)


def _difference(part: pd.DataFrame, arm: str, control: str) -> dict[str, object]:
    one, other = (part[part["arm"] == name] for name in (arm, control))
    on = _PER_RUN if one["seed"].nunique() > 1 and other["seed"].nunique() > 1 else ["motion", "start"]
    both = one.merge(other, on=on, suffixes=("", "_other"))
    units = both["seed"] if both["seed"].nunique() > 1 else both["start"]
    gap: Interval = paired_difference(both["E_g_mpjpe"], both["E_g_mpjpe_other"], units.tolist())
    mean = float(both["E_g_mpjpe_other"].mean())
    success = float(both["success"].mean() - both["success_other"].mean())
    return {
        "arm": arm,
        "control": control,
        "E_g_mpjpe_difference": gap.mean,
        "low": gap.low,
        "high": gap.high,
        "share": gap.mean / mean,
        "share_high": gap.high / mean,
        "success_difference": success,
        "runs": len(both),
        "not_worse": bool(success >= 0 and gap.high <= MARGIN * mean),
    }


def shown(table: pd.DataFrame) -> dict[str, str]:
    """`target level arm/figure` → text for the terminal, in the paper's layout, the paper's own figures last."""
    figures = {}
    for row in table.to_dict("records"):
        name = f"{row['target']} {row['level']} {row['arm']}"
        for metric in METRIC_NAMES:
            digits = 1 if metric in ("E_g_mpjpe", "E_mpjpe") else 2
            interval = Interval(row[metric], row[f"{metric}_low"], row[f"{metric}_high"], 0)
            figures[f"{name}/{metric}"] = interval.text(digits)
        for simulator in TABLE_IV:
            values = [row[f"paper_{simulator}_{figure}"] for figure in FIGURES]
            known = values[0] == values[0] and values[0] is not None
            figures[f"{name}/paper: {simulator}"] = " · ".join(f"{v:g}" for v in values) if known else "–"
    return figures
