"""What is gathered while a log is read: decisions, contradictions, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from asap_core.evidence import Decision, given


class Reading:
    """The notes on one log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.decisions: list[Decision] = []
        self.contradictions: list[str] = []
        self.left_out: dict[str, str] = {}

    def add(self, decision: Decision) -> Decision:
        """Note a decision and hand it back."""
        self.decisions.append(decision)
        return decision

    def contradict(self, text: str) -> None:
        """Note where data and format, or data and data, disagree."""
        self.contradictions.append(text)

    def settle(self, found: Decision, option: str | None, declared: str | None) -> str | None:
        """Note a decision after the user's word, which counts, and the format's, which counts where data are silent."""
        if option is not None:
            found = given(found.question, option, "the option says so", found.option)
        elif found.answer is None and declared is not None:
            found = replace(
                given(found.question, declared, f"the format says so; {found.how}", found.option), figure=found.figure
            )
        elif declared is not None and found.answer != declared:
            self.contradict(f"{found.question}: the data say {found.answer}, the format {declared} ({found.how})")
        return self.add(found).answer


def known(declared: Mapping[str, str], key: str, valid: Mapping[str, object] | tuple[str, ...]) -> str | None:
    """What a format says, if it is among the valid answers."""
    value = declared.get(key)
    return value if value in valid else None
