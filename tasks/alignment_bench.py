"""`asap bench alignment`: the open-loop table, whole, in parts, or of what is kept; results in evaluation/."""

from __future__ import annotations

from pathlib import Path

from asap_core.errors import ConfigError
from asap_core.evaluation.alignment_bench.bench import bench, kept_table
from asap_core.evaluation.alignment_bench.splits import PARTS
from asap_core.evaluation.alignment_bench.table import RIVALS, shown
from asap_core.evaluation.alignment_bench.targets import ENGINE_TARGETS, TARGETS
from asap_core.robots import get_profile
from asap_core.simulators.factory import installed_backends
from asap_core.training.ppo import use_threads
from tasks.bench_places import ALIGNMENT_CODE, shared_folder
from tasks.item_store import code_version
from tasks.stages import Figures, read_params


def bench_alignment(
    root: Path, targets: str | None = None, rivals: str | None = None, folds: str | None = None, kept: bool = False
) -> Figures:
    """Fit and score the table or a part of it, and show all that was ever scored.

    Args:
        targets, rivals, folds: names with commas between them; all if not given,
            but only those targets whose engine is installed. Fold `all` is in sample.
        kept: show what is kept, fit nothing.

    Raises:
        UnknownNameError: no such target, rival or fold.
        ConfigError: `kept` beside names, or nothing is kept.
        InputFileError: the shared policies are missing, or a cell is damaged.
    """
    cache, out = root / ".asap" / "alignment_bench", root / "evaluation" / "alignment"
    code = code_version(*ALIGNMENT_CODE)
    if kept:
        if targets or rivals or folds:
            raise ConfigError("--kept: shows all that is kept; expected no --targets, --rivals or --folds beside it")
        table = kept_table(cache, code, out)
        if not len(table):
            raise ConfigError(f"--kept: {cache / 'scores'} holds no cells; run `asap bench alignment` without it")
        return dict(shown(table))
    params = read_params(root)
    installed = (name for name, engine in ENGINE_TARGETS.items() if engine in installed_backends())
    use_threads(params.simulation.threads)
    table = bench(
        _names(targets, (*TARGETS, *installed)),
        _names(rivals, RIVALS),
        _names(folds, PARTS),
        get_profile("g1_23dof"),
        params.simulation,
        params.align,
        shared_folder(root),
        cache,
        code,
        out,
    )
    return dict(shown(table))


def _names(text: str | None, default: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.split(","))) if text else default
