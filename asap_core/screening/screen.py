"""`screen`: the verdict on one clip, with a reason and the frames for everything that speaks against it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.motions.human import HumanMotion
from asap_core.rotations import Array
from asap_core.screening.dynamics import GRAVITY, Demand, contact_demand, contact_residual, support_distance
from asap_core.screening.settings import ScreenSettings

_EDGE = 3
"""Frames at both ends in which second differences are not trusted."""
_MIN_FRAMES = 12
_MAX_RANGES = 5


@dataclass(frozen=True)
class Reason:
    """One rule that a clip breaks."""

    rule: str
    """short, speed, float, penetration, slide, infeasible or balance."""
    found: float
    limit: float
    unit: str
    frames: list[list[int]]
    """The first ranges [first, last] of frames that break it."""

    def text(self) -> str:
        """For a person: rule, found, limit and where."""
        where = ", ".join(f"{first}-{last}" for first, last in self.frames)
        return f"{self.rule}: found {self.found:.2f}, limit {self.limit:.2f} {self.unit} (frames {where})"


@dataclass(frozen=True)
class Verdict:
    """Of one clip: accepted if no rule is broken."""

    accepted: bool
    reasons: list[Reason]
    figures: dict[str, float]

    def to_header(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def screen(motion: HumanMotion, settings: ScreenSettings) -> Verdict:
    """Judge a clip by its speed, its feet, its balance and the contact forces that it asks for.

    A clip that stands within `ground_tolerance` of z = 0 is judged as if it stood on it. A float or a depth beyond that
    is never corrected away.
    """
    if motion.num_frames < _MIN_FRAMES:
        frames = [[0, motion.num_frames - 1]]
        return Verdict(False, [Reason("short", float(motion.num_frames), float(_MIN_FRAMES), "frames", frames)], {})
    demand, level = _grounded(contact_demand(motion), settings.ground_tolerance)
    height = demand.soles[..., 2]
    low = height < settings.contact_height
    bears = low & (demand.sole_speed < settings.contact_speed)
    residual = contact_residual(demand, bears, settings.friction)
    lowest = height.min(axis=1)
    falls = np.abs(demand.force[:, 2]) < GRAVITY / 2
    speed = np.linalg.norm(np.diff(motion.root_translation, axis=0), axis=1) * motion.fps
    beside = support_distance(demand, bears)
    slow = demand.com_speed < settings.balance_speed
    rules = [
        _speed_rule(speed, settings.max_root_speed),
        _fraction_rule("float", (lowest > settings.float_height) & ~falls, settings.max_floating),
        _fraction_rule("penetration", lowest < -settings.penetration_depth, settings.max_penetrating),
        _fraction_rule("slide", (low.sum(axis=1) > 0) & (bears.sum(axis=1) == 0), settings.max_sliding),
        _fraction_rule("infeasible", residual > settings.residual, settings.max_infeasible),
        _fraction_rule("balance", (beside > settings.balance_distance) & slow, settings.max_unbalanced),
    ]
    reasons = [reason for reason in rules if reason is not None]
    figures = {
        "infeasible_fraction": float((residual[_EDGE:-_EDGE] > settings.residual).mean()),
        "residual_mean": float(residual[_EDGE:-_EDGE].mean()),
        "max_root_speed": float(speed.max()),
        "ground_level": level,
        "lowest_sole": float(lowest.min()),
        "unbalanced_fraction": float(((beside > settings.balance_distance) & slow)[_EDGE:-_EDGE].mean()),
    }
    return Verdict(not reasons, reasons, figures)


def _grounded(demand: Demand, tolerance: float) -> tuple[Demand, float]:
    """The demand with the standing level at z = 0 if it is within `tolerance` of it, and that level, m."""
    level = float(np.percentile(demand.soles[..., 2].min(axis=1), 10))
    if abs(level) > tolerance:
        return demand, level
    shift = np.array([0.0, 0.0, level])
    return replace(demand, com=demand.com - shift, soles=demand.soles - shift), level


def _ranges(mask: NDArray[np.bool_]) -> list[list[int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [[int(a), int(b) - 1] for a, b in zip(edges[::2], edges[1::2], strict=True)][:_MAX_RANGES]


def _speed_rule(speed: Array, limit: float) -> Reason | None:
    if speed.max() <= limit:
        return None
    return Reason("speed", float(speed.max()), limit, "m/s of the root", _ranges(speed > limit))


def _fraction_rule(rule: str, bad: NDArray[np.bool_], limit: float) -> Reason | None:
    fraction = float(bad[_EDGE:-_EDGE].mean())
    return None if fraction <= limit else Reason(rule, fraction, limit, "of the frames", _ranges(bad))
