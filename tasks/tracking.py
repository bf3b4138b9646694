"""Stage figures and training curves in MLflow: one run per execution of a stage, written in batches."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asap_core.progress import console
from tasks.mlflow_client import experiment_id, open_client

if TYPE_CHECKING:
    from mlflow.entities import Metric

    from tasks.stages import Figures

_BATCH = 1000
_HISTORIES = {"pretrain": "models/pretrained/history.csv", "finetune": "models/finetuned/*/*/history.csv"}
_PARAM_LENGTH = 500


def log_stage(stage: str, params: dict[str, Any], figures: Figures, root: Path) -> None:
    """Log a finished stage. A failure to log is reported and does not fail the stage, whose outputs are complete."""
    try:
        _log_stage(stage, params, figures, root)
    except Exception as error:
        console.print(f"warning: figures of {stage} were not logged to MLflow: {error}", highlight=False)


def _log_stage(stage: str, params: dict[str, Any], figures: Figures, root: Path) -> None:
    client = open_client(root)
    from mlflow.entities import Metric, Param, RunTag

    run = client.create_run(experiment_id(client, root), run_name=stage, tags={"stage": stage})
    now = int(time.time() * 1000)
    numbers = {key: value for key, value in figures.items() if not isinstance(value, str)}
    metrics = [Metric(key, float(value), now, 0) for key, value in numbers.items() if math.isfinite(value)]
    if stage in _HISTORIES:
        metrics += [metric for path in sorted(root.glob(_HISTORIES[stage])) for metric in _curve(path, root, now)]
    texts = [RunTag(key, value) for key, value in figures.items() if isinstance(value, str)]
    settings = [Param(key, str(value)[:_PARAM_LENGTH]) for key, value in _flatten(params)]
    client.log_batch(run.info.run_id, params=settings[:100], tags=texts)
    for start in range(100, len(settings), 100):
        client.log_batch(run.info.run_id, params=settings[start : start + 100])
    for start in range(0, len(metrics), _BATCH):
        client.log_batch(run.info.run_id, metrics=metrics[start : start + _BATCH])
    client.set_terminated(run.info.run_id)


def _curve(path: Path, root: Path, now: int) -> Iterator[Metric]:
    """A training history (one row per iteration, one column per quantity) as metrics named after its folder."""
    from mlflow.entities import Metric

    folder = path.parent.relative_to(root / "models").as_posix()
    with open(path, newline="") as stream:
        for row_number, row in enumerate(csv.DictReader(stream)):
            step = int(float(row.get("iteration") or row_number))
            for key, text in row.items():
                if key != "iteration" and text and math.isfinite(value := float(text)):
                    yield Metric(f"{folder}/{key}", value, now, step)


def _flatten(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, dict) and item:
            yield from _flatten(item, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", item
