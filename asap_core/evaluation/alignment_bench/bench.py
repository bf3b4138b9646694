"""The whole yardstick: targets × folds × rivals, the share of the open-loop error closed on held-out motions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pandas as pd

from asap_core.alignment.corrected import Rival, ZeroRival
from asap_core.alignment.delta_dynamics import DeltaDynamicsRival, DeltaDynamicsSettings
from asap_core.alignment.delta_rival import DeltaRival
from asap_core.alignment.physics_fit import SysIdSettings
from asap_core.alignment.settings import AlignSettings
from asap_core.alignment.sysid import SysIdRival
from asap_core.alignment.two_stage import TwoStageRival
from asap_core.errors import check_names
from asap_core.evaluation.alignment_bench.cells import kept_cells
from asap_core.evaluation.alignment_bench.plot import draw
from asap_core.evaluation.alignment_bench.splits import PARTS
from asap_core.evaluation.alignment_bench.table import RIVALS, open_loop_table
from asap_core.evaluation.alignment_bench.targets import ALL_TARGETS
from asap_core.evaluation.alignment_bench.yardstick import Yardstick
from asap_core.files import atomic_file
from asap_core.progress import say
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.settings import SimulationSettings


def rivals(profile: RobotProfile, simulation: SimulationSettings, align: AlignSettings) -> list[Rival]:
    """All of them, under one budget."""
    sysid = SysIdRival(profile, simulation, SysIdSettings())
    return [
        ZeroRival(simulation.physics),
        sysid,
        DeltaRival(profile, simulation, align),
        TwoStageRival(profile, simulation, sysid, lambda s: DeltaRival(profile, s, align)),
        DeltaDynamicsRival(profile, simulation, DeltaDynamicsSettings()),
    ]


def bench(
    targets: Sequence[str],
    names: Sequence[str],
    folds: Sequence[str],
    profile: RobotProfile,
    simulation: SimulationSettings,
    align: AlignSettings,
    shared: Path,
    cache: Path,
    code: str,
    out: Path,
) -> pd.DataFrame:
    """Fit and score the cells named, and make the table of all that are kept; what is kept is not fitted again.

    Args:
        targets, names, folds: of `ALL_TARGETS`, `RIVALS` and `PARTS`; cells are made in this order.
        shared: folder that holds data/asap.
        cache: rollouts, fits and cells are kept under it, a cell as soon as it is done.
        code: digest of the code that they depend on.
        out: `<out>.csv` and `<out>.png` are written anew after every cell.

    Raises:
        UnknownNameError: a name is none.
    """
    for kind, given, known in (("target", targets, ALL_TARGETS), ("rival", names, RIVALS), ("fold", folds, PARTS)):
        check_names(kind, given, known)
    by_name = {rival.name: rival for rival in rivals(profile, simulation, align)}
    yardsticks = {t: Yardstick(t, profile, simulation, shared, cache, code) for t in targets}
    for target, fold, name in product(targets, folds, names):
        say(f"alignment: {target}, fold {fold}, {name}")
        yardsticks[target].cell(by_name[name], fold)
        kept_table(cache, code, out)
    return kept_table(cache, code, out)


def kept_table(cache: Path, code: str, out: Path) -> pd.DataFrame:
    """The table of the cells that are kept; nothing is fitted. Arguments as of `bench`."""
    table = open_loop_table(kept_cells(cache), code)
    with atomic_file(out.with_suffix(".csv")) as partial:
        table.to_csv(partial, index=False)
    if len(table):
        with atomic_file(out.with_suffix(".png")) as partial:
            draw(table).savefig(partial, format="png", dpi=110)
    return table
