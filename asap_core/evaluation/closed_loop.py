"""Closed-loop protocol (paper, Table IV): policies track the motion from the same perturbed starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.playback import ActingRule, perturbed_starts, play
from asap_core.environments.reference import ReferenceMotion
from asap_core.evaluation.settings import EvaluateSettings
from asap_core.metrics import TrackingErrors, tracking_errors
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import Simulator

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Contestant:
    """A policy of one arm. `vanilla` has the one seed 0."""

    arm: str
    seed: int
    policy: Callable[[NDArray[np.float32]], NDArray[np.floating]]
    rule: ActingRule


@dataclass(frozen=True)
class ClosedLoopRow:
    """One start of one policy on one world (`target` or `nominal`)."""

    world: str
    arm: str
    seed: int
    start: int
    errors: TrackingErrors


@dataclass(frozen=True)
class ClosedLoopResult:
    """All rows, and the distance to the reference over time."""

    rows: tuple[ClosedLoopRow, ...]
    gap: dict[tuple[str, str], Array]
    """(world, arm) → (T,) mm, mean over links, starts and seeds, runs that have failed left out (NaN when all have)."""

    def values(self, world: str, arm: str, metric: str) -> Array:
        """One figure of each row of an arm, ordered by seed and start."""
        return np.array([r.errors.as_dict()[metric] for r in self.rows if (r.world, r.arm) == (world, arm)])

    def seeds(self, world: str, arm: str) -> list[int]:
        """The seed of each of these rows."""
        return [r.seed for r in self.rows if (r.world, r.arm) == (world, arm)]

    @property
    def arms(self) -> list[str]:
        """Arms in the order in which they ran."""
        return list(dict.fromkeys(r.arm for r in self.rows))


def closed_loop(
    contestants: list[Contestant],
    worlds: dict[str, Simulator],
    reference: ReferenceMotion,
    profile: RobotProfile,
    settings: EvaluateSettings,
    seed: int,
    advance: Callable[[str], None],
) -> ClosedLoopResult:
    """Every policy on every world from the same `settings.starts` disturbed first frames.

    Args:
        contestants: the policies.
        worlds: `target` and `nominal`, each with `settings.starts` robots.
        reference: the motion; errors are against its frame of the same time.
        seed: of the starts.
        advance: called after each run with a note.
    """
    frames = np.zeros(settings.starts, np.intp)
    starts = perturbed_starts(reference, frames, seed, settings.joint_pos_noise, settings.joint_vel_noise)
    rows: list[ClosedLoopRow] = []
    gaps: dict[tuple[str, str], list[Array]] = {}
    for world, simulator in worlds.items():
        for who in contestants:
            run = play(who.policy, who.rule, reference, profile, simulator, starts, frames)
            for n in range(settings.starts):
                errors = tracking_errors(run.link_pos[:, n], reference.links.pos, run.alive[:, n])
                rows.append(ClosedLoopRow(world, who.arm, who.seed, n, errors))
            gaps.setdefault((world, who.arm), []).append(np.where(run.alive, run.mean_distance, np.nan))
            success = np.mean([r.errors.success for r in rows[-settings.starts :]])
            advance(f"{who.arm} on {world}: success {success:.2f}")
    return ClosedLoopResult(tuple(rows), {key: _mean_gap(runs) for key, runs in gaps.items()})


def _mean_gap(runs: list[Array]) -> Array:
    together = np.concatenate(runs, axis=1)
    alive = np.isfinite(together)
    total = np.where(alive, together, 0.0).sum(axis=1)
    count = alive.sum(axis=1)
    return np.where(count > 0, 1000.0 * total / np.maximum(count, 1), np.nan)
