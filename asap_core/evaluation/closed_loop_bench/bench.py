"""The whole closed-loop table, cell by cell; what an earlier run has kept is not computed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path

import pandas as pd

from asap_core.alignment.corrected import Rival
from asap_core.errors import check_names
from asap_core.evaluation.alignment_bench.targets import TARGETS
from asap_core.evaluation.closed_loop_bench.arms import ARMS
from asap_core.evaluation.closed_loop_bench.cells import Cells, Places, Row
from asap_core.evaluation.closed_loop_bench.motions import LEVEL_OF
from asap_core.evaluation.closed_loop_bench.plot import draw
from asap_core.evaluation.closed_loop_bench.settings import Recipe
from asap_core.evaluation.closed_loop_bench.tables import difference_table, level_table
from asap_core.files import atomic_file
from asap_core.progress import track
from asap_core.robots.profile import RobotProfile


def bench(
    targets: Sequence[str],
    motions: Sequence[str],
    arms: Sequence[str],
    profile: RobotProfile,
    recipe: Recipe,
    rivals: Mapping[str, Rival],
    places: Places,
    out: Path,
) -> pd.DataFrame:
    """Every arm with every seed on every motion in every target; seeds come last, so that tables fill evenly.

    Args:
        targets, motions, arms: names.
        out: folder of cells.csv, table.csv, differences.csv and table.png, written anew after every cell.

    Returns:
        `level_table`.

    Raises:
        UnknownNameError: a name is none.
    """
    for kind, names, known in (("target", targets, TARGETS), ("motion", motions, LEVEL_OF), ("arm", arms, ARMS)):
        check_names(kind, names, known)
    of_target = {target: Cells(target, profile, recipe, rivals, places) for target in targets}
    wanted = [
        (target, motion, arm, seed)
        for target, seed, motion, arm in product(targets, range(recipe.finetune.seeds), motions, arms)
        if ARMS[arm].has_seeds or seed == 0
    ]
    rows: list[Row] = []
    with track("closed loop", len(wanted)) as tracker:
        for target, motion, arm, seed in wanted:
            found = of_target[target].rows(motion, arm, seed)
            rows += found
            write_tables(pd.DataFrame(rows), out)
            success = sum(row["success"] for row in found) / len(found)
            error = sum(row["E_g_mpjpe"] for row in found) / len(found)
            tracker.advance(note=f"{target} {motion} {arm} seed {seed}: success {success:.2f}, E_g {error:.1f} mm")
    return level_table(pd.DataFrame(rows))


def write_tables(cells: pd.DataFrame, out: Path) -> None:
    """cells.csv, table.csv, differences.csv and table.png of the cells so far."""
    table = level_table(cells)
    for name, frame in {"cells": cells, "table": table, "differences": difference_table(cells)}.items():
        with atomic_file(out / f"{name}.csv") as partial:
            frame.to_csv(partial, index=False)
    save: Callable[..., object] = draw(table).savefig
    with atomic_file(out / "table.png") as partial:
        save(partial, format="png", dpi=110)
