"""The loop from collection to fine-tuned policy: collect → align → finetune → evaluate → approval → register.

Every stage runs through DVC, so that the loop, `dvc repro` and `asap run` are one pipeline with one writer, and each
stage shows up in Prefect as a flow run of its own. The loop's decisions (what is stale, what was approved) are plain
functions in `tasks`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, pause_flow_run, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.client.schemas.objects import State
from prefect.input import RunInput
from prefect.states import Completed

from tasks.approval import Decision, evaluation_digest, is_approved
from tasks.dvc import is_current, reproduce
from tasks.registry import MANIFEST, read_manifest
from tasks.summary import comparison_rows, read_metrics

ROUND = ("collect", "align", "finetune", "evaluate")
_DAY_S = 86400


class Approval(Decision, RunInput):
    """Register these models?"""


@task(task_run_name="{stage}")
def run_stage_through_dvc(stage: str, root: str, timeout_s: float) -> None:
    """Bring one stage, and whatever it depends on, up to date; killed with its children after `timeout_s`."""
    logger = get_run_logger()
    reproduce(stage, Path(root), timeout_s, logger.info)


@task
def publish_evaluation(root: str) -> str:
    """Show the comparison and the gate's verdict as artefacts; returns the digest of what was shown."""
    metrics = read_metrics(Path(root))
    create_table_artifact(table=comparison_rows(metrics), key="comparison", description="On the target")
    create_markdown_artifact(_gate_text(metrics["gate"]), key="gate", description="May the policy be deployed?")
    return evaluation_digest(Path(root))


@task
def publish_registry(root: str) -> None:
    """Show what is registered now."""
    entries = read_manifest(Path(root)).models
    rows = [
        {"model": entry.model, "arm": entry.arm, "aliases": ", ".join(entry.aliases), "sha256": entry.sha256[:12]}
        for entry in entries
    ]
    create_table_artifact(table=rows, key="registry", description=str(MANIFEST))


@flow(name="loop", persist_result=False)
def loop(root: str = ".", stage_timeout_s: float = 3600, approval_timeout_s: int = _DAY_S) -> State[None]:
    """One round. Ends `Unchanged` if everything is registered already, `Refused` if the person says so.

    Args:
        root: the project's folder.
        stage_timeout_s: a stage that takes longer is killed and the round fails.
        approval_timeout_s: how long to wait for a person; after that the round fails and nothing is registered.
    """
    if is_current("register", Path(root)):
        return Completed(name="Unchanged", message="nothing has changed since the last registration")
    for stage in ROUND:
        run_stage_through_dvc(stage, root, stage_timeout_s)
    shown = publish_evaluation(root)
    answer = pause_flow_run(wait_for_input=Approval, timeout=approval_timeout_s)
    if not is_approved(answer, shown, Path(root)):
        return Completed(name="Refused", message=f"registration refused by {answer.approver or 'nobody named'}")
    run_stage_through_dvc("register", root, stage_timeout_s)
    publish_registry(root)
    return Completed(message=f"registered, approved by {answer.approver}")


def _gate_text(gate: dict[str, Any]) -> str:
    lines = [f"**{gate['verdict']}**: {gate['reason']}", ""]
    lines += [f"* `{name}`: {interval}" for name, interval in gate.get("intervals", {}).items()]
    return "\n".join(lines)
