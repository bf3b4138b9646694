"""A rival that is shown less, or worse, data than there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.alignment.corrected import Corrected, Rival
from asap_core.rollouts.record import Rollout

BLOCK = 50
"""Control steps of the pieces that are kept: the longest horizon, from whose multiples replays start."""


@dataclass(frozen=True)
class AlteredDataRival:
    """`rival`, fitted and chosen on altered rollouts.

    Attributes:
        alter: what is done to the rollouts that are fitted on.
        alter_validation: the same for those that choose among candidates; None leaves them.
        alteration: what both depend on, as JSON.
    """

    rival: Rival
    name: str
    alteration: Any
    alter: Callable[[Rollout], Rollout]
    alter_validation: Callable[[Rollout], Rollout] | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Rival`."""
        return {"rival": dict(self.rival.identity), "alteration": self.alteration}

    def fit(self, fit: Rollout, validation: Rollout, seed: int, cache: Path) -> Corrected:
        """See `Rival`."""
        chosen_on = self.alter_validation(validation) if self.alter_validation else validation
        return self.rival.fit(self.alter(fit), chosen_on, seed, cache)


def with_samples(rollout: Rollout, samples: int) -> Rollout:
    """At most `samples` transitions, at least one piece of `BLOCK`, spread evenly over all pieces there are."""
    starts = rollout.segment_starts(BLOCK)
    count = min(max(1, samples // BLOCK), len(starts))
    chosen = starts[np.linspace(0, len(starts) - 1, count).round().astype(np.intp)]
    usable = np.zeros(rollout.num_rows, dtype=bool)
    usable[(chosen[:, None] + np.arange(BLOCK)).ravel()] = True
    return replace(rollout, valid=rollout.valid & usable)


def with_noise(rollout: Rollout, std: float, seed: int) -> Rollout:
    """Gaussian noise on what is measured: `std` rad of joints and m of the root, ten times that per second of rates."""
    rng, state = np.random.default_rng(seed), rollout.state
    size = {
        "joint_pos": std,
        "joint_vel": 10 * std,
        "root_pos": std,
        "root_lin_vel": 10 * std,
        "root_ang_vel": 10 * std,
    }
    noisy = {name: getattr(state, name) + rng.normal(0.0, s, getattr(state, name).shape) for name, s in size.items()}
    return replace(rollout, state=replace(state, **noisy))
