"""Choosing among corrected simulators by multi-step replay on data unseen by the fits; zero stays unless beaten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from asap_core.alignment.corrected import Corrected
from asap_core.alignment.replay import (
    HORIZONS_S,
    Segments,
    cut_segments,
    horizon_errors,
    horizon_steps,
    replay_distance,
)
from asap_core.metrics import bootstrap_interval
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.simulators.settings import SimulationSettings

Array = NDArray[np.floating]
_MOST_ENVS = 64


def choose(
    candidates: Sequence[Corrected], validation: Rollout, profile: RobotProfile, settings: SimulationSettings
) -> Corrected:
    """The candidate of least mean replay error at the longest horizon, if it beats the first one surely.

    The first is the one that stays when nothing is proven, mostly zero: the paired difference to it must have a 95 %
    interval, bootstrapped over episodes, above 0. The report says what every candidate reached.
    """
    steps = horizon_steps(HORIZONS_S[-1], settings.physics.control_dt)
    segments = cut_segments(validation, profile, steps, steps // 2)
    distances = [_distance(c, segments, profile, settings) for c in candidates]
    means = [float(d.mean()) for d in distances]
    best = int(np.argmin(means))
    gain = bootstrap_interval(
        1000.0 * (distances[0] - distances[best]).mean(axis=1), [int(e) for e in segments.episode]
    )
    chosen = candidates[best if gain.low > 0 else 0]
    table = {
        c.name: {f"{h}s": v for h, v in horizon_errors(d, settings.physics.control_dt).items()}
        for c, d in zip(candidates, distances, strict=True)
    }
    verdict = {"validation_mm": table, "best": candidates[best].name, "gain_mm": gain.as_dict()}
    return replace(chosen, report={**candidates[best].report, **chosen.report, **verdict})


def _distance(corrected: Corrected, segments: Segments, profile: RobotProfile, settings: SimulationSettings) -> Array:
    simulator = corrected.simulator(profile, settings, min(segments.num, _MOST_ENVS))
    return replay_distance(simulator, profile, segments, corrected.correction)
