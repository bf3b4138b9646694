"""Whether a delta action model may be fine-tuned with: a verdict with reasons, on rollouts that no fit has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from asap_core.metrics import bootstrap_interval
from asap_core.settings import Settings

Array = NDArray[np.floating]
Verdict = Literal["accepted", "rejected"]

_TAIL = 0.001
"""Share of the fit's rows at either end of a feature that do not count as its range."""
_MARGIN = 0.1
"""By which the range is widened, of its width."""
_AT_BOUND = 0.99


class AcceptanceSettings(Settings):
    """Section `align.acceptance`."""

    min_in_range: float = Field(default=0.95, ge=0, le=1)
    """Least share of held-out features within the range of those fitted on."""
    max_at_bound: float = Field(default=0.02, ge=0, le=1)
    """Most share of held-out corrections that sit at their bound."""
    max_work_share: float = Field(default=0.5, gt=0)
    """Most net work that the correction's torques do, as a share of the work that goes through the drives."""


@dataclass(frozen=True)
class Check:
    """One criterion."""

    name: str
    passed: bool
    reason: str
    """What was found and what was expected."""


@dataclass(frozen=True)
class Acceptance:
    """All criteria of a model."""

    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Verdict:
        """`accepted` if every check passed."""
        return "accepted" if all(c.passed for c in self.checks) else "rejected"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Of the checks that failed."""
        return tuple(c.reason for c in self.checks if not c.passed)

    def as_dict(self) -> dict[str, Any]:
        """For a report."""
        return {"verdict": self.verdict, "checks": [asdict(c) for c in self.checks]}


def beats_zero(zero_mm: Array, delta_mm: Array, episodes: Sequence[object]) -> Check:
    """Paired replay errors (S,) of held-out segments: the gain's 95 % interval over episodes must lie above 0.

    With one episode alone the interval is over its segments, and says so.
    """
    gain = bootstrap_interval(zero_mm - delta_mm, [str(e) for e in episodes])
    few = "" if len(set(episodes)) > 1 else "; one episode alone, which says nothing of others"
    share = 1.0 - delta_mm.mean() / max(float(zero_mm.mean()), 1e-9)
    reason = f"gain {gain.text(2)} mm over {gain.n} units, {share:.0%} of the error; expected above 0{few}"
    return Check("beats_zero", bool(gain.low > 0.0), reason)


def bounded(delta: Array, limit: float, most: float) -> Check:
    """Corrections (n, J) rad: finite, within ± limit, and rarely at it."""
    inside = bool(np.isfinite(delta).all() and np.abs(delta).max(initial=0.0) <= limit * (1.0 + 1e-6))
    share = float((np.abs(delta) > _AT_BOUND * limit).mean())
    reason = f"{share:.2%} of corrections at the bound of {limit:g} rad; expected at most {most:.2%} and none beyond"
    return Check("bounded", inside and share <= most, reason)


def in_range(fitted: Array, heldout: Array, least: float) -> Check:
    """Features (n, J, F): the share of held-out ones within the range of those that were fitted on."""
    low, high = np.quantile(fitted, [_TAIL, 1.0 - _TAIL], axis=0)
    margin = _MARGIN * (high - low) + 1e-9
    share = float(((heldout >= low - margin) & (heldout <= high + margin)).mean())
    reason = f"{share:.1%} of held-out features within the range fitted on; expected at least {least:.1%}"
    return Check("in_range", share >= least, reason)


def work_bounded(delta: Array, torque: Array, joint_vel: Array, kp: Array, most: float) -> Check:
    """Net work of the correction's torques kp Δq (n, J), beside the work that passes through the drives.

    Args:
        torque: (n, J) Nm of the drives.
        joint_vel: (n, J) rad/s.
    """
    drives = float(np.abs(torque * joint_vel).sum())
    work = float((kp * delta * joint_vel).sum())
    share = work / drives if drives > 0 else 0.0
    reason = f"the correction's torques do {share:+.2f} of the drives' work; expected within ± {most:g}"
    return Check("work_bounded", abs(share) <= most, reason)
