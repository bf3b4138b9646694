"""A stage as a Prefect flow: the same function that runs without Prefect, seen in its UI with its figures."""

from __future__ import annotations

from pathlib import Path

from prefect import Flow, flow
from prefect.artifacts import create_table_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from asap_core.errors import AsapError
from tasks.stages import Figures, check_stage, run_stage


def stage_flow(stage: str) -> Flow[[str], State[Figures]]:
    """The flow of one stage. It takes the project's root and ends with its figures, or failed with the error."""
    check_stage(stage)

    @flow(name=stage)
    def run(root: str = ".") -> State[Figures]:
        try:
            figures = run_stage(stage, Path(root))
        except AsapError as error:
            return Failed(message=str(error))
        rows = [{"figure": key, "value": value} for key, value in figures.items()]
        create_table_artifact(table=rows, key=f"stage-{stage}", description=f"Figures of stage `{stage}`")
        return Completed(data=figures)

    return run
