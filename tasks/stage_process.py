"""Stages in a process of their own: those that simulate in Isaac Lab, and trainings on several GPUs.

Isaac Lab may need another interpreter, may hang at shutdown and may die after success; `asap_core/processes.py` copes
with the two last. What the stage tells on its way is told here again: bars, MLflow and Prefect see no difference.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asap_core
from asap_core.errors import StageError
from asap_core.processes import ChildJob, run_child
from asap_core.progress import Tracker, say, tell_curve, track
from asap_core.simulators.factory import LIBRARIES
from tasks.dvc import child_environment

if TYPE_CHECKING:
    from asap_core.config import Params
    from tasks.stages import Figures

OUTPUTS = {
    "pretrain": ("models/pretrained",),
    "collect": ("data/rollouts/kind=twin",),
    "align": ("models/delta",),
    "finetune": ("models/finetuned",),
    "evaluate": (
        "evaluation/open_loop.csv",
        "evaluation/closed_loop.csv",
        "evaluation/report.html",
        "evaluation/plots",
        "evaluation/metrics.json",
    ),
}
"""Of the stages that simulate, as in dvc.yaml."""
TRAININGS = ("pretrain", "finetune")
PYTHON_VARIABLE = "ASAP_ISAACLAB_PYTHON"
_ISAACLAB_PYTHON = Path(".venv-isaaclab/bin/python")
"""Made by `make isaaclab`."""


def needs_process(stage: str, params: Params) -> bool:
    """Whether a stage runs apart: it simulates in Isaac Lab, or it trains on several GPUs."""
    return _in_isaaclab(stage, params) or (stage in TRAININGS and params.ppo.gpus > 1)


def _in_isaaclab(stage: str, params: Params) -> bool:
    nominal, target = (LIBRARIES[s.backend] == "isaaclab" for s in (params.simulation, params.target))
    return {"collect": target, "evaluate": nominal or target}.get(stage, nominal and stage in OUTPUTS)


def run_in_process(stage: str, params: Params, root: Path) -> Figures:
    """Run a stage apart and return its figures.

    Raises:
        StageError: no interpreter with Isaac Lab, or the process left no manifest of its success.
    """
    top = Path(asap_core.__file__).parents[1]
    job = ChildJob(
        name=stage,
        command=stage_command(stage, params, root),
        root=root,
        outputs=OUTPUTS[stage],
        folder=root / ".asap" / "processes" / stage,
        environment={**child_environment(), "PYTHONPATH": str(top)},
    )
    with ExitStack() as bars:
        result = run_child(job, _Mirror(bars))
    if result.note:
        say(f"{stage}: succeeded by its manifest; the process: {result.note} (log: {job.folder / 'log.txt'})")
    return result.figures


def stage_command(stage: str, params: Params, root: Path) -> list[str]:
    """The command of a stage's process; with several GPUs torchrun starts one for each."""
    python = isaaclab_python(root) if _in_isaaclab(stage, params) else sys.executable
    gpus = params.ppo.gpus if stage in TRAININGS else 1
    if gpus == 1:
        return [python, "-m", "tasks.stage_child", stage]
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={gpus}"]
    return [python, *launch, "-m", "tasks.stage_child", stage]


def isaaclab_python(root: Path) -> str:
    """The interpreter that has Isaac Lab: `ASAP_ISAACLAB_PYTHON`, else this one, else that of `.venv-isaaclab`.

    Raises:
        StageError: there is none.
    """
    given = os.environ.get(PYTHON_VARIABLE)
    if given:
        if not os.access(given, os.X_OK):
            raise StageError(f"environment variable {PYTHON_VARIABLE}: {given} is no program that can be run")
        return given
    if find_spec("isaaclab") is not None:
        return sys.executable
    own = (root / _ISAACLAB_PYTHON).absolute()
    if own.exists():
        return str(own)
    raise StageError(
        f"simulation backend isaaclab: Isaac Lab is not installed here, {own} is missing and {PYTHON_VARIABLE} is not "
        "set; install it into a Python 3.12 environment: make isaaclab"
    )


class _Mirror:
    """Tells here what the child told there; one bar at a time."""

    def __init__(self, bars: ExitStack) -> None:
        self._bars = bars
        self._tracker: Tracker | None = None
        self._shown = ("", 0)
        self._done = 0

    def __call__(self, event: dict[str, Any]) -> None:
        match event:
            case {"kind": "progress", "description": str(what), "done": int(done), "total": int(total), "note": note}:
                self._progress(what, done, total, str(note))
            case {"kind": "curve", "name": str(name), "step": int(step), "values": dict(values)}:
                tell_curve(name, step, values)
            case {"kind": "said", "text": str(text)}:
                say(text)

    def _progress(self, what: str, done: int, total: int, note: str) -> None:
        if self._tracker is None or self._shown != (what, total) or done < self._done:
            self._bars.close()
            self._tracker = self._bars.enter_context(track(what, total))
            self._shown, self._done = (what, total), 0
        self._tracker.advance(done - self._done, note)
        self._done = done
