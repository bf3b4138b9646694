"""Which format a file has; where several share one layout, what the doctor found inside tells them apart."""

from __future__ import annotations

from collections.abc import Sequence

from asap_core.evidence import Decision
from asap_core.motions.formats.format import Candidate

_TRACKING = ("beyondmimic_npz", "mjlab_npz", "unitree_rl_lab_npz")
_CSV = ("lafan_csv", "kimodo_csv")


def decide_format(candidates: Sequence[Candidate], found: Sequence[Decision]) -> Decision:
    """The surest candidate, or among formats of one layout the one whose conventions the clip keeps.

    Args:
        candidates: what `sniff` found, at least one.
        found: the decisions on the file's first clip.
    """
    best = candidates[0]
    twins = [candidate for candidate in candidates if candidate.confidence == best.confidence]
    answers = {decision.question: decision.answer for decision in found}
    names = {candidate.format.id for candidate in twins}
    chosen: str | None = best.format.id
    why = best.reason
    if names >= set(_CSV):
        chosen, why = _pose_csv(answers.get("quaternion order"))
    elif names & set(_TRACKING):
        chosen, why = _tracking(answers)
    others = [candidate for candidate in candidates if candidate.format.id != chosen]
    runner_up = others[0].format.id if others else None
    margin = best.confidence - others[0].confidence if others else float("inf")
    return Decision("format", chosen, best.confidence, runner_up, margin, why, "")


def _pose_csv(quat: str | None) -> tuple[str | None, str]:
    if quat is None:
        return None, "36 numbers a line: lafan_csv (xyzw) or kimodo_csv (wxyz)"
    name = "lafan_csv" if quat == "xyzw" else "kimodo_csv"
    return name, f"36 numbers a line without header, quaternions {quat}"


def _tracking(answers: dict[str, str | None]) -> tuple[str | None, str]:
    order = answers.get("joint order")
    if order is None:
        return None, f"one layout of {', '.join(_TRACKING)}, told apart by the joint order"
    if not order.endswith(("_isaac", "isaac29")):
        return "mjlab_npz", f"joints in MJCF order ({order})"
    if order == "isaac29":
        return "beyondmimic_npz", "29 joints in Isaac order; unitree_rl_lab writes the same"
    return "unitree_rl_lab_npz", f"fewer joints in Isaac order ({order})"
