"""When an episode fails, and the curriculum that tightens it (paper §III-A: 1.5 m at first, 0.3 m later)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from asap_core.rotations import projected_gravity
from asap_core.settings import Settings
from asap_core.simulators.protocol import RobotState


class TerminationSettings(Settings):
    """Limits of an episode. The curriculum's levels are shares of the way from an episode's start to the clip's end,
    so that they mean the same for a short and a long clip."""

    tilt: float = Field(default=0.8, gt=0, le=1)
    """A horizontal component of gravity in the pelvis frame beyond this ends the episode (0.8 is about 53°)."""
    distance_start: float = Field(default=1.5, gt=0)
    """m, distance of any link from its reference that ends an episode at first."""
    distance_end: float = Field(default=0.3, gt=0)
    """m, the same when the curriculum is done."""
    distance_highest: float | None = Field(default=None, gt=0)
    """m, to which the distance may grow; None: `distance_start`."""
    degree: float = Field(default=1e-3, gt=0)
    """Relative change of the distance for each step in which an episode ends."""
    level_up: float = Field(default=0.8, gt=0, le=1)
    """Mean share covered above which the distance shrinks."""
    level_down: float = Field(default=0.6, ge=0, le=1)
    """Mean share covered below which the distance grows."""
    memory: float = Field(default=500.0, ge=1)
    """Episodes over which that mean runs."""

    @model_validator(mode="after")
    def _limits_are_in_order(self) -> TerminationSettings:
        for low, high in (("distance_end", "distance_start"), ("level_down", "level_up")):
            if getattr(self, low) > getattr(self, high):
                raise ValueError(f"{low} is {getattr(self, low)}, expected at most {high} = {getattr(self, high)}")
        if self.distance_highest is not None and self.distance_highest < self.distance_start:
            raise ValueError(f"distance_highest is {self.distance_highest}, expected at least {self.distance_start}")
        return self

    def fixed_at(self, distance: float) -> TerminationSettings:
        """The same with a distance limit, m, that stays."""
        limits = ("distance_start", "distance_end", "distance_highest")
        return self.model_copy(update=dict.fromkeys(limits, distance))


class TerminationCurriculum:
    """The distance limit and the running mean of how much of their way episodes cover."""

    def __init__(self, settings: TerminationSettings) -> None:
        self.settings = settings
        self.distance = settings.distance_start
        self.mean_share = 0.0

    def update(self, shares: NDArray[np.floating]) -> int:
        """Take in the shares (n,) that the episodes ending in this step covered; n ≥ 1 makes one update.

        Returns:
            1 while episodes are long, −1 while they are short, 0 in between or without an update.
        """
        if len(shares) == 0:
            return 0
        s = self.settings
        weight = min(1.0, len(shares) / s.memory)
        self.mean_share += weight * (float(np.mean(shares)) - self.mean_share)
        level = int(self.mean_share > s.level_up) - int(self.mean_share < s.level_down)
        self.distance *= 1.0 - s.degree * level
        highest = s.distance_highest or s.distance_start
        self.distance = float(np.clip(self.distance, s.distance_end, highest))
        return level


def tilt_of(root_quat: NDArray[np.floating]) -> NDArray[np.floating]:
    """(N,) larger horizontal component of gravity in the pelvis frame of orientations (N, 4)."""
    return np.asarray(np.abs(projected_gravity(root_quat)[:, :2]).max(axis=1))


def failed(
    state: RobotState, link_distance: NDArray[np.floating], distance_limit: float, tilt_limit: float
) -> NDArray[np.bool_]:
    """(N,) robots that are tilted, or with a link farther than `distance_limit` from its reference, or not finite.

    Args:
        state: N robots.
        link_distance: (N, L) m.
        distance_limit: m.
        tilt_limit: see `TerminationSettings.tilt`.
    """
    tilted = tilt_of(state.root_quat) > tilt_limit
    far = (link_distance > distance_limit).any(axis=1)
    return np.asarray(tilted | far | ~finite(state), bool)


def finite(state: RobotState) -> NDArray[np.bool_]:
    """(N,) robots whose every number is finite."""
    return np.logical_and.reduce([np.isfinite(value).all(axis=1) for value in state.__dict__.values()])
