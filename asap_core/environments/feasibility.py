"""What stands between a reference and a robot that would follow it: terminations, joint limits, speeds, drives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.effort import drive_load
from asap_core.environments.preflight import Preflight, preflight
from asap_core.environments.reference import ReferenceMotion
from asap_core.environments.terminations import TerminationSettings
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile

Array = NDArray[np.floating]
Verdict = Literal["clear", "warned", "refused"]
MOST_IMPOSSIBLE = 0.5
"""Share of frames beyond what the robot can do above which a motion is refused."""
_LIMIT_TOLERANCE = 1e-3
"""rad; retargeted joints rest on their limits."""


@dataclass(frozen=True)
class Demand:
    """One quantity of every joint over the clip."""

    name: str
    unit: str
    value: Array
    """(T, J)."""
    allowed: float
    """Above it the robot cannot follow."""

    @property
    def beyond(self) -> NDArray[np.bool_]:
        """(T, J) where a joint is asked for more than it can do."""
        return np.asarray(self.value > self.allowed)

    def share(self) -> float:
        """Of the frames, those in which any joint is asked for more."""
        return float(self.beyond.any(axis=1).mean())


@dataclass(frozen=True)
class Feasibility:
    """What a robot's limits say of a reference at the control rate."""

    motion: str
    joint_names: tuple[str, ...]
    control_dt: float
    terminations: Preflight
    demands: tuple[Demand, ...]
    """Position beyond a limit (rad), speed and torque as shares of their limits."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """One text for each thing that is beyond what the robot or the environment allows."""
        ends = () if self.terminations.accepted else (self.terminations.text(),)
        return (*ends, *(self._reason(demand) for demand in self.demands if demand.beyond.any()))

    def _reason(self, demand: Demand) -> str:
        frame, joint = np.unravel_index(int(demand.value.argmax()), demand.value.shape)
        where = f"{self.joint_names[int(joint)]} at {frame * self.control_dt:.2f} s"
        return f"{demand.name}: {demand.value.max():.2f} {demand.unit} ({where}), {demand.share():.0%} of the frames"

    @property
    def verdict(self) -> Verdict:
        """Refused: an episode from the first frame would end at once, or most frames are beyond the robot."""
        impossible = max(demand.share() for demand in self.demands) > MOST_IMPOSSIBLE
        if self.terminations.ends[0] or impossible:
            return "refused"
        return "warned" if self.reasons else "clear"

    def text(self) -> str:
        """The verdict and its reasons, or how near the motion comes to each limit."""
        if self.reasons:
            return f"motion {self.motion!r} {self.verdict}: {'; '.join(self.reasons)}"
        position, *others = (demand.value.max() for demand in self.demands)
        shares = ", ".join(f"{value:.0%} of {d.name}" for d, value in zip(self.demands[1:], others, strict=True))
        return f"motion {self.motion!r} is within the robot's limits: {-position:.2f} rad at least, {shares} at most"

    def rows(self) -> list[dict[str, str | float]]:
        """For each joint and quantity the worst value, when it is, and the share of frames beyond what is allowed."""
        rows: list[dict[str, str | float]] = []
        for number, joint in enumerate(self.joint_names):
            row: dict[str, str | float] = {"joint": joint}
            for demand in self.demands:
                value = demand.value[:, number]
                row[f"{demand.name} {demand.unit}"] = float(value.max())
                row[f"{demand.name} at s"] = float(value.argmax() * self.control_dt)
                row[f"{demand.name} share"] = float(demand.beyond[:, number].mean())
            rows.append(row)
        return rows


def feasibility(
    reference: ReferenceMotion, profile: RobotProfile, settings: TerminationSettings, physics: PhysicsSettings
) -> Feasibility:
    """Judge a reference before anything is trained on it.

    Speeds are those of the path between control steps; torques are the lower bound of `effort.drive_load`. A
    reference that is not finite has no torques.
    """
    joint_pos = reference.state.joint_pos
    speed = np.abs(np.diff(joint_pos, axis=0, append=joint_pos[-1:])) / reference.control_dt
    beyond = np.maximum(profile.joint_lower - joint_pos, joint_pos - profile.joint_upper)
    ends = preflight(reference, profile, settings)
    load = np.zeros_like(joint_pos)
    if all(np.isfinite(value).all() for value in reference.state.__dict__.values()):
        load = drive_load(reference, profile, physics)
    return Feasibility(
        motion=reference.name,
        joint_names=profile.joint_names,
        control_dt=reference.control_dt,
        terminations=ends,
        demands=(
            Demand("position", "rad beyond its limit", beyond, _LIMIT_TOLERANCE),
            Demand("speed", "of its limit", speed / profile.joint_velocity_limit, 1.0),
            Demand("torque", "of its limit", load, 1.0),
        ),
    )
