"""The whole yardstick: targets × rivals, the share of the open-loop error closed on held-out motions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pandas as pd

from asap_core.alignment.corrected import Rival, ZeroRival
from asap_core.alignment.delta_dynamics import DeltaDynamicsRival, DeltaDynamicsSettings
from asap_core.alignment.delta_rival import DeltaRival
from asap_core.alignment.physics_fit import SysIdSettings
from asap_core.alignment.replay import HORIZONS_S
from asap_core.alignment.settings import AlignSettings
from asap_core.alignment.sysid import SysIdRival
from asap_core.alignment.two_stage import TwoStageRival
from asap_core.evaluation.alignment_bench.targets import TARGETS
from asap_core.evaluation.alignment_bench.yardstick import RivalScore, Yardstick
from asap_core.files import atomic_file
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.settings import SimulationSettings

PAPER: Mapping[str, tuple[float, float, float]] = {
    "delta": (-0.02, 0.20, 0.53),
    "sysid": (0.01, 0.04, 0.04),
    "delta_dynamics": (-0.25, -0.10, 0.16),
}
"""Shares closed at 0.25, 0.5 and 1.0 s by the paper's own rivals from IsaacGym to IsaacSim (its Table III)."""
_SEED = 0


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
    profile: RobotProfile,
    simulation: SimulationSettings,
    align: AlignSettings,
    shared: Path,
    cache: Path,
    code: str,
    csv: Path,
    targets: Iterable[str] = tuple(TARGETS),
    show: Callable[[pd.DataFrame], None] = lambda table: None,
) -> pd.DataFrame:
    """Score all rivals on all targets; what an earlier run has kept is not computed again.

    Args:
        cache: rollouts, fits and scores are kept under it.
        code: digest of the code that they depend on.
        csv: written anew after every row.
        show: called with the table so far after every row.
    """
    rows: list[dict[str, object]] = []
    for target in targets:
        yardstick = Yardstick(target, profile, simulation, shared, cache, code)
        for rival in rivals(profile, simulation, align):
            rows.append(_row(target, rival, yardstick.score(rival, _SEED), yardstick.in_sample(rival, _SEED)))
            table = pd.DataFrame(rows)
            with atomic_file(csv) as partial:
                table.to_csv(partial, index=False)
            show(table)
    return pd.DataFrame(rows)


def _row(target: str, rival: Rival, score: RivalScore, oracle: RivalScore) -> dict[str, object]:
    row: dict[str, object] = {"target": target, "rival": rival.name}
    paper = PAPER.get(rival.name)
    for i, horizon in enumerate(HORIZONS_S):
        interval, key = score.closed[i], f"{horizon:g}s"
        row |= {f"closed_{key}": interval.mean, f"low_{key}": interval.low, f"high_{key}": interval.high}
        row |= {f"in_sample_{key}": oracle.closed[i].mean, f"paper_{key}": paper[i] if paper else None}
        row |= {f"error_mm_{key}": score.error_mm[i], f"zero_mm_{key}": score.zero_mm[i]}
    row["chosen"] = " ".join(f.chosen for f in score.folds)
    row["fit_wall_s"] = max(f.wall_s for f in score.folds)
    row["fit_cpu_s"] = max(f.cpu_s for f in score.folds)
    row["episodes"] = score.closed[0].n
    return row
