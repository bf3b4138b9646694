"""Stage figures and training curves in MLflow: one run per execution of a stage, written in batches while it runs."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asap_core.progress import console
from tasks.mlflow_client import experiment_id, open_client

if TYPE_CHECKING:
    from mlflow import MlflowClient

    from tasks.stages import Figures

_BATCH = 1000
_LIVE_S = 10.0
"""s between two writes of a running stage's curves."""
_HISTORIES = {"pretrain": "models/pretrained/history.csv", "finetune": "models/finetuned/*/*/history.csv"}
_PARAM_LENGTH = 500


class StageRun:
    """The MLflow run of a stage that runs now: training curves go there every few seconds, all figures at the end.

    A failure to log is reported once and does not fail the stage, whose outputs are complete without.
    """

    def __init__(self, stage: str, params: Mapping[str, Any], root: Path) -> None:
        self._stage = stage
        self._params = params
        self._root = root
        self._client: MlflowClient | None = None
        self._run_id = ""
        self._waiting: list[tuple[str, float, int, int]] = []
        self._sent: set[tuple[str, int]] = set()
        self._last = time.monotonic()
        self._lost = False

    def progress(self, description: str, done: int, total: int, note: str) -> None:
        """Nothing to log; see `Listener`."""

    def said(self, text: str) -> None:
        """Nothing to log; see `Listener`."""

    def curve(self, name: str, step: int, values: Mapping[str, float]) -> None:
        """Log one step of a curve, together with others of the same seconds."""
        self._keep({f"{name}/{key}": value for key, value in values.items() if key != "iteration"}, step)
        if time.monotonic() - self._last > _LIVE_S:
            self._last = time.monotonic()
            self._try(self._send)

    def finish(self, figures: Figures) -> None:
        """Log the figures, and of the curves what was not told while the stage ran."""
        self._try(lambda: self._finish(figures))

    def fail(self) -> None:
        """Mark the run, if it was begun, as failed."""
        client = self._client
        if client is not None:
            self._try(lambda: client.set_terminated(self._run_id, "FAILED"))

    def _keep(self, values: Mapping[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        self._waiting += [(key, float(value), now, step) for key, value in values.items() if math.isfinite(value)]

    def _finish(self, figures: Figures) -> None:
        client = self._opened()
        from mlflow.entities import RunTag

        told = self._sent | {(key, step) for key, _, _, step in self._waiting}
        for path in sorted(self._root.glob(_HISTORIES[self._stage])) if self._stage in _HISTORIES else []:
            for key, value, step in _curve(path, self._root):
                if (key, step) not in told:
                    self._keep({key: value}, step)
        self._keep({key: value for key, value in figures.items() if not isinstance(value, str)}, 0)
        self._send()
        texts = [RunTag(key, value) for key, value in figures.items() if isinstance(value, str)]
        client.log_batch(self._run_id, tags=texts)
        client.set_terminated(self._run_id)

    def _opened(self) -> MlflowClient:
        if self._client is None:
            client = open_client(self._root)
            from mlflow.entities import Param

            experiment = experiment_id(client, self._root)
            run = client.create_run(experiment, run_name=self._stage, tags={"stage": self._stage})
            self._run_id = run.info.run_id
            settings = [Param(key, str(value)[:_PARAM_LENGTH]) for key, value in _flatten(self._params)]
            for start in range(0, len(settings), 100):
                client.log_batch(self._run_id, params=settings[start : start + 100])
            self._client = client
        return self._client

    def _send(self) -> None:
        client = self._opened()
        from mlflow.entities import Metric

        metrics = [Metric(*point) for point in self._waiting]
        for start in range(0, len(metrics), _BATCH):
            client.log_batch(self._run_id, metrics=metrics[start : start + _BATCH])
        self._sent |= {(metric.key, metric.step) for metric in metrics}
        self._waiting.clear()

    def _try(self, log: Callable[[], object]) -> None:
        """Do `log` unless logging has failed before; report its first failure."""
        if self._lost:
            return
        try:
            log()
        except Exception as error:
            self._lost = True
            console.print(f"warning: figures of {self._stage} were not logged to MLflow: {error}", highlight=False)


def _curve(path: Path, root: Path) -> Iterator[tuple[str, float, int]]:
    """Key, value and step of a training history (one row per iteration), the keys named after its folder."""
    folder = path.parent.relative_to(root / "models").as_posix()
    with open(path, newline="") as stream:
        for row_number, row in enumerate(csv.DictReader(stream)):
            step = int(float(row.get("iteration") or row_number))
            for key, text in row.items():
                if key != "iteration" and text and math.isfinite(value := float(text)):
                    yield f"{folder}/{key}", value, step


def _flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, dict) and item:
            yield from _flatten(item, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", item
