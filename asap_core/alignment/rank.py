"""Where a delta stands among its rivals on the same rollouts: printed beside its acceptance, never required."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from asap_core.alignment.corrected import Corrected, Rival
from asap_core.alignment.replay import HORIZONS_S, cut_segments, horizon_steps, replay_distance
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.rollouts.settings import Split
from asap_core.simulators.settings import SimulationSettings

_MOST_ENVS = 64


@dataclass(frozen=True)
class Rank:
    """Held-out replay errors at the longest horizon, mm, best first."""

    errors_mm: Mapping[str, float]

    @property
    def place(self) -> int:
        """Of the delta; 1 is best. An equal error counts for it."""
        return 1 + sum(error < self.errors_mm["delta"] for error in self.errors_mm.values())

    def text(self) -> str:
        """`2 of 4: sysid 5.1, delta 6.0, delta_dynamics 21.3, zero 39.5 mm`."""
        parts = ", ".join(f"{name} {error:.1f}" for name, error in self.errors_mm.items())
        return f"{self.place} of {len(self.errors_mm)}: {parts} mm"


def rank_delta(
    delta_mm: float,
    rivals: Sequence[Rival],
    rollouts: Mapping[Split, Rollout],
    profile: RobotProfile,
    simulation: SimulationSettings,
    seed: int,
    cache: Path,
) -> Rank:
    """Fit `rivals` on the same splits as the delta and hold all against the held-out one; zero is always among them.

    Args:
        delta_mm: the delta's mean error on `heldout` at the longest of `HORIZONS_S`.
        cache: unfinished fits are kept under it.
    """
    fits = {"zero": Corrected("zero", simulation.physics)}
    for rival in rivals:
        fits[rival.name] = rival.fit(rollouts["fit"], rollouts["validation"], seed, cache / rival.name)
    errors = {name: _error_mm(fit, rollouts["heldout"], profile, simulation) for name, fit in fits.items()}
    errors["delta"] = delta_mm
    return Rank(dict(sorted(errors.items(), key=lambda item: (item[1], item[0] != "delta"))))


def _error_mm(corrected: Corrected, rollout: Rollout, profile: RobotProfile, simulation: SimulationSettings) -> float:
    steps = horizon_steps(HORIZONS_S[-1], simulation.physics.control_dt)
    segments = cut_segments(rollout, profile, steps, steps // 2)
    simulator = corrected.simulator(profile, simulation, min(segments.num, _MOST_ENVS))
    return float(1000.0 * replay_distance(simulator, profile, segments, corrected.correction).mean())
