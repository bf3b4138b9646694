"""The decision of a person that new models may be registered, checked once more in code."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from asap_core.errors import StageError
from asap_core.files import sha256_file

EVALUATION = Path("evaluation/metrics.json")


class Decision(BaseModel):
    """What a person answers. No field has a default: an empty form must not approve anything."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["approve", "refuse"]
    approver: str
    """Who answers for it."""


def evaluation_digest(root: Path) -> str:
    """Digest of the figures that a person is shown."""
    return sha256_file(root / EVALUATION)


def is_approved(decision: Decision, shown: str, root: Path) -> bool:
    """Whether registration may go on.

    Args:
        decision: the person's answer.
        shown: `evaluation_digest` of what the person was shown.
        root: the project.

    Raises:
        StageError: it was approved without a name, or the evaluation changed since it was shown.
    """
    if decision.decision != "approve":
        return False
    if not decision.approver.strip():
        raise StageError("approval field approver: found an empty name, expected who answers for the approval")
    if evaluation_digest(root) != shown:
        raise StageError(f"{EVALUATION}: changed since it was shown for approval; start the loop again")
    return True
