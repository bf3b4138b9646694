"""The gate before deployment: a policy is deployable only if the target says that it is not worse than its controls."""

from __future__ import annotations

from dataclasses import dataclass

from asap_core.evaluation.closed_loop import ClosedLoopResult
from asap_core.evaluation.comparison import paired
from asap_core.metrics import Interval

CANDIDATE = "asap"
CONTROLS = ("finetune_only", "vanilla")
METRIC = "E_g_mpjpe"


@dataclass(frozen=True)
class GateVerdict:
    """The decision, in words with the interval that decided, and all intervals."""

    granted: bool
    reason: str
    intervals: dict[str, str]

    def as_dict(self) -> dict[str, object]:
        """As it stands in metrics.json."""
        return {
            "verdict": "granted" if self.granted else "refused",
            "reason": self.reason,
            "intervals": self.intervals,
        }


def gate(result: ClosedLoopResult, margin: float, confidence: float) -> GateVerdict:
    """Granted if, on the target, some run succeeds, and against each control success is not lower and the upper end of
    the paired two-sided interval of the E_g_mpjpe difference is at most `margin` of the control's mean.

    Args:
        margin: share of the control's mean error.
        confidence: of the interval.
    """
    reasons, intervals, passed = [], {}, []
    success = float(result.values("target", CANDIDATE, "success").mean())
    if success == 0:  # errors count the frames before a failure, so that a policy that fails early looks precise
        reasons.append(f"{CANDIDATE} succeeds in no run on the target")
    for control in CONTROLS:
        other = float(result.values("target", control, "success").mean())
        difference = paired(result, "target", CANDIDATE, control, METRIC, confidence)
        allowed = margin * float(result.values("target", control, METRIC).mean())
        intervals[f"{CANDIDATE} − {control}"] = _text(difference, allowed, confidence)
        if success < other:
            reasons.append(f"success {success:.3f} is lower than {other:.3f} of {control}")
        elif difference.high > allowed:
            reasons.append(f"against {control}: {_text(difference, allowed, confidence)}")
        else:
            passed.append(f"against {control}: {_text(difference, allowed, confidence)}")
    return GateVerdict(not reasons, "; ".join(reasons or passed), intervals)


def _text(difference: Interval, allowed: float, confidence: float) -> str:
    return (
        f"{METRIC} difference {difference.text()} mm ({confidence:.0%}, {difference.n} units), "
        f"upper end allowed up to {allowed:+.1f} mm"
    )
