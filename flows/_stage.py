"""A stage as a Prefect flow: the same function that runs without Prefect, in its UI with progress and figures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from prefect import Flow, flow, get_run_logger
from prefect.artifacts import create_table_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from asap_core.errors import AsapError
from asap_core.progress import heard_by
from tasks.stages import Figures, check_stage, run_stage

_PROGRESS_S = 10.0
"""s between two lines of progress."""


def stage_flow(stage: str) -> Flow[[str], State[Figures]]:
    """The flow of one stage. It takes the project's root and ends with its figures, or failed with the error."""
    check_stage(stage)

    @flow(name=stage)
    def run(root: str = ".") -> State[Figures]:
        try:
            with heard_by(_FlowLog()):
                figures = run_stage(stage, Path(root))
        except AsapError as error:
            return Failed(message=str(error))
        rows = [{"figure": key, "value": value} for key, value in figures.items()]
        create_table_artifact(table=rows, key=f"stage-{stage}", description=f"Figures of stage `{stage}`")
        return Completed(data=figures)

    return run


class _FlowLog:
    """What a stage tells on its way, in the log of the flow run around it: a line of progress now and then."""

    def __init__(self) -> None:
        self._logger = get_run_logger()
        self._last = 0.0

    def progress(self, description: str, done: int, total: int, note: str) -> None:
        """See `Listener`."""
        if done == total or time.monotonic() - self._last > _PROGRESS_S:
            self._last = time.monotonic()
            self._logger.info("%s: %d/%d %s", description, done, total, note)

    def curve(self, name: str, step: int, values: Mapping[str, float]) -> None:
        """MLflow has the curves; see `Listener`."""

    def said(self, text: str) -> None:
        """See `Listener`."""
        self._logger.info(text)
