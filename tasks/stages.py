"""The stages by name, and the one way to run one: used by the command line, by DVC and by the Prefect flows."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from asap_core.errors import StageError, unknown_name

if TYPE_CHECKING:
    from asap_core.config import Params

Figures = dict[str, float | int | str]

STAGES = ("reconstruct", "screen", "retarget", "pretrain", "collect", "align", "finetune", "evaluate", "register")
"""In the order of dvc.yaml."""

TRACKED_STAGES = frozenset({"pretrain", "align", "finetune", "evaluate"})
"""Stages whose figures go to MLflow; the others are over before MLflow is imported."""

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def limit_threads() -> None:
    """Set how many threads numeric libraries use: `ASAP_THREADS`, else 2. Call before importing numpy or torch.

    A fixed number, and not the machine's count of cores, because sums over threads round differently. Idle threads
    sleep instead of spinning: two spinning processes on two cores bring each other almost to a stand.
    """
    threads = os.environ.get("ASAP_THREADS", "2")
    if not threads.isdigit() or int(threads) < 1:
        raise StageError(f"environment variable ASAP_THREADS: found {threads!r}, expected a whole number of at least 1")
    for variable in _THREAD_VARIABLES:
        os.environ.setdefault(variable, threads)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def check_stage(name: str) -> str:
    """Return `name` if it is a stage.

    Raises:
        UnknownNameError: it is none; the text lists the stages.
    """
    if name not in STAGES:
        raise unknown_name("stage", name, STAGES)
    return name


def read_params(root: Path) -> Params:
    """The validated `params.yaml` of the project at `root`."""
    from asap_core.config import load_params

    return load_params(root / "params.yaml")


def run_stage(name: str, root: Path) -> Figures:
    """Run one stage of the project at `root` and return its figures; in a process of its own if Isaac Lab simulates.

    Raises:
        AsapError: a stage of that name does not exist, `params.yaml` is wrong, or the stage itself failed.
    """
    check_stage(name)
    params = read_params(root)
    if name not in TRACKED_STAGES:
        return run_unlogged(name, params, root)
    from asap_core.progress import heard_by
    from tasks.tracking import StageRun

    log = StageRun(name, params.model_dump(mode="json"), root)
    try:
        with heard_by(log):
            figures = run_unlogged(name, params, root)
    except BaseException:
        log.fail()
        raise
    log.finish(figures)
    return figures


def run_unlogged(name: str, params: Params, root: Path) -> Figures:
    """Run one stage, in a process of its own if Isaac Lab simulates, and log nothing."""
    from tasks.stage_process import needs_process, run_in_process

    if needs_process(name, params):
        return run_in_process(name, params, root)
    return run_here(name, params, root)


def run_here(name: str, params: Params, root: Path) -> Figures:
    """Run one stage in this process, and log nothing."""
    figures: Figures = importlib.import_module(f"tasks.{name}").run(params, root)
    return figures
