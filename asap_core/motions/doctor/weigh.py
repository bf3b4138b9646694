"""From figures in which less is better to a decision."""

from __future__ import annotations

from collections.abc import Mapping

from asap_core.evidence import Decision


def least(
    question: str, figures: Mapping[str, float], unit: str, how: str, option: str, share: float, apart: float
) -> Decision:
    """The candidate with the smallest figure; no answer unless it is below `share` of the next and `apart` away.

    Args:
        figures: candidate → figure in `unit`, less is better; at least one.
    """
    ranked = sorted(figures, key=lambda name: figures[name])
    best = figures[ranked[0]]
    if len(ranked) == 1:
        return Decision(question, ranked[0], best, None, float("inf"), how, option, unit)
    following = figures[ranked[1]]
    clear = best <= share * following and following - best >= apart
    words = how if clear else f"{how}; best {_list(figures, ranked, unit)}"
    answer = ranked[0] if clear else None
    return Decision(question, answer, best, ranked[1], best - following, words, option, unit)


def _list(figures: Mapping[str, float], ranked: list[str], unit: str) -> str:
    return ", ".join(f"{name} {figures[name]:.3g} {unit}".strip() for name in ranked[:3])
