"""What a screen says of a clip: accepted or not, and every reason with the frames it rests on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.rotations import Array

EDGE = 3
"""Frames at both ends in which derivatives are not trusted, and which no rule counts."""
MIN_FRAMES = 12
_TEXT_RANGES = 5
"""So many ranges of frames are spelled out in a text."""


@dataclass(frozen=True)
class Reason:
    """One rule that a clip breaks."""

    rule: str
    found: float
    limit: float
    unit: str
    frames: list[list[int]]
    """The ranges [first, last] of frames that break it."""
    detail: str = ""
    """The worst value, and its frame."""

    def text(self) -> str:
        """For a person: rule, found, limit and where."""
        shown = [f"{first}-{last}" for first, last in self.frames[:_TEXT_RANGES]]
        if len(self.frames) > _TEXT_RANGES:
            shown.append(f"and {len(self.frames) - _TEXT_RANGES} more")
        where = f" (frames {', '.join(shown)})" if shown else ""
        detail = f"; {self.detail}" if self.detail else ""
        return f"{self.rule}: found {self.found:.2f}, limit {self.limit:.2f} {self.unit}{detail}{where}"


@dataclass(frozen=True)
class Verdict:
    """Of one clip: accepted if no rule is broken."""

    accepted: bool
    reasons: list[Reason]
    figures: dict[str, float]
    score: float = 1.0
    """Share of the frames that no rule objects to."""
    per_frame: dict[str, Array] = field(default_factory=dict, compare=False, repr=False)
    """What the rules measured, (T,) each; by rule, in the unit of the rule's detail."""

    @property
    def rules(self) -> frozenset[str]:
        """The rules that are broken."""
        return frozenset(reason.rule for reason in self.reasons)

    def to_header(self) -> dict[str, Any]:
        """As a JSON object, without the values per frame."""
        return {
            "accepted": self.accepted,
            "score": self.score,
            "reasons": [asdict(reason) for reason in self.reasons],
            "texts": [reason.text() for reason in self.reasons],
            "figures": self.figures,
        }


class Trial:
    """Collects what speaks against the T frames of a clip."""

    def __init__(self, num_frames: int) -> None:
        self._inner = np.zeros(num_frames, bool)
        self._inner[EDGE : num_frames - EDGE] = True
        self._objected = np.zeros(num_frames, bool)
        self._reasons: list[Reason] = []
        self._per_frame: dict[str, Array] = {}
        self.figures: dict[str, float] = {}

    def share(self, rule: str, bad: NDArray[np.bool_], limit: float, values: Array, unit: str) -> None:
        """A rule that may be broken in a share of the frames, `limit`; `values` (T,) in `unit` decided over `bad`."""
        found = float(bad[self._inner].mean())
        self._note(rule, bad, values)
        self.figures[f"{rule}_share"] = found
        if found > limit:
            self._reasons.append(Reason(rule, found, limit, "of the frames", ranges(bad), _worst(bad, values, unit)))

    def peak(self, rule: str, values: Array, limit: float, unit: str) -> None:
        """A rule that no frame may break: `values` (T,) in `unit` stay below `limit`."""
        bad = values > limit
        self._note(rule, bad, values)
        self.figures[f"{rule}_peak"] = float(values.max())
        if bad.any():
            self._reasons.append(Reason(rule, float(values.max()), limit, unit, ranges(bad)))

    def verdict(self) -> Verdict:
        """The clip's."""
        score = float(1.0 - self._objected.mean())
        return Verdict(not self._reasons, self._reasons, self.figures, score, self._per_frame)

    def _note(self, rule: str, bad: NDArray[np.bool_], values: Array) -> None:
        self._objected |= bad
        self._per_frame[rule] = values


def too_short(num_frames: int) -> Verdict | None:
    """The verdict on a clip with too few frames to differentiate, or none."""
    if num_frames >= MIN_FRAMES:
        return None
    reason = Reason("short", float(num_frames), float(MIN_FRAMES), "frames", [[0, num_frames - 1]])
    return Verdict(False, [reason], {}, 0.0)


def ranges(mask: NDArray[np.bool_]) -> list[list[int]]:
    """The [first, last] frames of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [[int(a), int(b) - 1] for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _worst(bad: NDArray[np.bool_], values: Array, unit: str) -> str:
    frames = np.flatnonzero(bad)
    frame = int(frames[np.abs(values[frames]).argmax()])
    return f"worst {values[frame]:.2f} {unit} in frame {frame}"
