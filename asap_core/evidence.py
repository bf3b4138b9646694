"""What a foreign file means, decided once, with a figure: the record of one such decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Decision:
    """One question about a file and what the data say."""

    question: str
    """What was asked, with the part of the file: 'quaternion order of lowstate'."""
    answer: str | None
    """None where the data do not settle it."""
    figure: float
    """Score of the answer, or of the best candidate where none is good enough."""
    runner_up: str | None
    """The next best candidate, None if there is only one."""
    margin: float
    """Best score minus the runner-up's (below 0 where less is better); infinite if there is only one candidate."""
    how: str
    """What the figure is, in words and numbers."""
    option: str
    """The command line option that settles it, such as '--quat-order'."""
    unit: str = ""
    """Of the figure; empty for a share or a score without one."""

    @property
    def text(self) -> str:
        """One line for the user."""
        if self.answer is None:
            return f"{self.question}: not decided ({self.how}); settle it with {self.option}"
        unit = f" {self.unit}" if self.unit else ""
        other = "" if self.runner_up is None else f", next {self.runner_up} {self.figure - self.margin:.3g}{unit}"
        return f"{self.question}: {self.answer} ({self.how}; {self.figure:.3g}{unit}{other})"


def decide(
    question: str,
    scores: Mapping[str, float],
    how: str,
    option: str,
    least_margin: float,
    least_score: float = float("-inf"),
) -> Decision:
    """The best-scored candidate, or no answer where it is not good enough or not far enough from the next.

    Args:
        scores: candidate → score, the higher the better; at least one.
        least_margin: what the best must lead by.
        least_score: what the best must reach.
    """
    ranked = sorted(scores, key=lambda name: -scores[name])
    best = ranked[0]
    runner_up = ranked[1] if len(ranked) > 1 else None
    margin = float("inf") if runner_up is None else scores[best] - scores[runner_up]
    good = scores[best] >= least_score and margin >= least_margin
    return Decision(question, best if good else None, float(scores[best]), runner_up, float(margin), how, option)


def given(question: str, answer: str, how: str, option: str) -> Decision:
    """A decision that the user or the file's format made; nothing was weighed."""
    return Decision(question, answer, 1.0, None, float("inf"), how, option)


def undecided(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Those without an answer."""
    return tuple(decision for decision in decisions if decision.answer is None)
