"""One ablation: each variant fitted on the alignment bench's rollouts and scored on motions held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from asap_core.alignment.replay import HORIZONS_S
from asap_core.alignment.settings import AlignSettings
from asap_core.errors import unknown_name
from asap_core.evaluation.ablation_bench.variants import ABLATIONS
from asap_core.evaluation.alignment_bench.cells import Cell
from asap_core.evaluation.alignment_bench.score import SegmentErrors, closed_share
from asap_core.evaluation.alignment_bench.splits import PARTS
from asap_core.evaluation.alignment_bench.targets import TARGETS
from asap_core.evaluation.alignment_bench.yardstick import Yardstick
from asap_core.files import atomic_file
from asap_core.metrics import Interval
from asap_core.progress import say
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.settings import SimulationSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Places:
    """Files of the bench."""

    shared: Path
    """Holds data/asap."""
    cache: Path
    """Rollouts, fits and cells."""
    code: str
    """Digest of the code that they depend on."""
    out: Path
    """Folder of <ablation>.csv and .png."""


def bench(
    name: str,
    targets: Sequence[str],
    folds: Sequence[str],
    profile: RobotProfile,
    simulation: SimulationSettings,
    align: AlignSettings,
    places: Places,
) -> pd.DataFrame:
    """Fit and score every variant of ablation `name`; cells that an earlier run has kept are not computed again.

    Args:
        targets, folds: of `TARGETS` and `PARTS`; shares are over all held-out segments of the folds.

    Raises:
        UnknownNameError: a name is none.
    """
    for kind, given, known in (("ablation", [name], ABLATIONS), ("target", targets, TARGETS), ("fold", folds, PARTS)):
        for text in given:
            if text not in known:
                raise unknown_name(kind, text, known)
    ablation, rows = ABLATIONS[name], []
    for target, variant in product(targets, ablation.make(profile, simulation, align)):
        yardstick = Yardstick(target, profile, simulation, places.shared, places.cache, places.code)
        say(f"ablation {name}: {target}, {variant.value:g}")
        cells = [yardstick.cell(variant.rival, fold) for fold in folds]
        rows.append({"target": target, "value": variant.value, **_figures(cells), "paper": ablation.paper})
        _write(name, pd.DataFrame(rows), places.out)
    return pd.DataFrame(rows)


def _figures(cells: Sequence[Cell]) -> dict[str, object]:
    errors = SegmentErrors.joined([c.errors for c in cells])
    closed = closed_share(errors, SegmentErrors.joined([c.zero for c in cells]))
    row: dict[str, object] = {}
    for share, horizon in zip(closed, HORIZONS_S, strict=True):
        row |= {f"closed_{horizon:g}s": share.mean, f"low_{horizon:g}s": share.low, f"high_{horizon:g}s": share.high}
    row |= {"folds": " ".join(c.fold for c in cells), "episodes": closed[0].n}
    return row | {"chosen": " ".join(c.chosen for c in cells), "fit_cpu_s": max(c.cpu_s for c in cells)}


def _write(name: str, table: pd.DataFrame, out: Path) -> None:
    with atomic_file(out / f"{name}.csv") as partial:
        table.to_csv(partial, index=False)
    save: Callable[..., object] = draw(table, ABLATIONS[name].quantity).savefig
    with atomic_file(out / f"{name}.png") as partial:
        save(partial, format="png", dpi=110)


def draw(table: pd.DataFrame, quantity: str) -> Figure:
    """Share closed over the quantity, a line for each horizon with its interval, one panel for each target."""
    from matplotlib.figure import Figure

    targets = list(dict.fromkeys(table["target"]))
    figure = Figure(figsize=(5.0 * len(targets) + 0.6, 3.8), layout="constrained")
    for axes, target in zip(figure.subplots(1, len(targets), squeeze=False)[0], targets, strict=True):
        rows = table[table["target"] == target]
        places = range(len(rows))
        for horizon in HORIZONS_S:
            mean, low, high = (100.0 * rows[f"{part}_{horizon:g}s"] for part in ("closed", "low", "high"))
            axes.errorbar(places, mean, yerr=[mean - low, high - mean], fmt="o-", capsize=3, label=f"{horizon:g} s")
        axes.axhline(0.0, color="#8a8f98", linewidth=0.8)
        axes.set_xticks(list(places), [f"{v:g}" for v in rows["value"]])
        axes.set(xlabel=quantity, ylabel="open-loop error closed (%)", title=f"{target}, motions held out")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    return figure


def shown(table: pd.DataFrame) -> dict[str, str]:
    """`target value/figure` → text for the terminal."""
    figures = {}
    for row in table.to_dict("records"):
        name = f"{row['target']} {row['value']:g}"
        for horizon in HORIZONS_S:
            mean, low, high = (100.0 * row[f"{part}_{horizon:g}s"] for part in ("closed", "low", "high"))
            figures[f"{name}/closed % at {horizon:g} s"] = Interval(mean, low, high, 0).text(0)
        figures |= {f"{name}/chosen": row["chosen"], f"{name}/fit CPU s": f"{row['fit_cpu_s']:.0f}"}
        figures[f"{name}/paper"] = row["paper"]
    return figures
