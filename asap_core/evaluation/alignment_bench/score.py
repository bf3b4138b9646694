"""The share of the open-loop error that an alignment closes, with its interval over episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.alignment.corrected import Corrected
from asap_core.alignment.replay import HORIZONS_S, cut_segments, horizon_steps, replay
from asap_core.metrics import Interval
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.simulators.settings import SimulationSettings

Array = NDArray[np.floating]
_REPLAY_ENVS = 64
_RESAMPLES = 2000
FIGURES = ("E_g_mpjpe", "E_mpjpe", "E_acc", "E_vel")
"""Of the paper's Table III: mm, mm, mm/frame², mm/frame; over the 24 links, a frame is a control step."""


@dataclass(frozen=True)
class SegmentErrors:
    """Replay errors of S segments of the longest horizon, half of it apart."""

    figures: Array
    """(S, 3, 4): each of `FIGURES` over each of `HORIZONS_S`."""
    episode: tuple[str, ...]
    """(S,) motion and number of the episode; segments of one are not independent."""

    @property
    def error_mm(self) -> Array:
        """(S, 3) mean link distance."""
        return self.figures[..., 0]

    @classmethod
    def joined(cls, parts: Sequence[SegmentErrors]) -> SegmentErrors:
        """All segments of several parts."""
        return cls(np.concatenate([p.figures for p in parts]), tuple(e for p in parts for e in p.episode))


def segment_errors(
    corrected: Corrected, rollout: Rollout, profile: RobotProfile, settings: SimulationSettings
) -> SegmentErrors:
    """Replay all segments of `rollout` in the corrected simulator."""
    control_dt = settings.physics.control_dt
    steps = horizon_steps(HORIZONS_S[-1], control_dt)
    segments = cut_segments(rollout, profile, steps, steps // 2)
    simulator = corrected.simulator(profile, settings, min(segments.num, _REPLAY_ENVS))
    error = 1000.0 * (replay(simulator, profile, segments, corrected.correction) - segments.link_pos)
    figures = [figures_of(error[:, : horizon_steps(h, control_dt)]) for h in HORIZONS_S]
    motion_of = {int(e): str(m) for e, m in zip(rollout.episode, rollout.motion, strict=True)}
    names = tuple(f"{motion_of[int(e)]}/{int(e)}" for e in segments.episode)
    return SegmentErrors(np.stack(figures, axis=1), names)


def figures_of(error: Array) -> Array:
    """(S, 4) `FIGURES` of link errors (S, H, L, 3) mm after each step; link 0 is the root."""
    parts = (error, error - error[:, :, :1], np.diff(error, n=2, axis=1), np.diff(error, axis=1))
    return np.stack([np.linalg.norm(part, axis=-1).mean(axis=(1, 2)) for part in parts], axis=1)


def closed_share(errors: SegmentErrors, zero: SegmentErrors, confidence: float = 0.95, seed: int = 0) -> list[Interval]:
    """1 − error / uncorrected error for each of `HORIZONS_S`, bootstrapped over whole episodes, both sides paired.

    Raises:
        ValueError: the two are not of the same segments.
    """
    if errors.episode != zero.episode:
        raise ValueError("errors of different segments cannot be paired")
    names = list(dict.fromkeys(errors.episode))
    index = np.array([names.index(e) for e in errors.episode])
    sums = [np.zeros((len(names), len(HORIZONS_S))) for _ in range(2)]
    for total, part in zip(sums, (errors, zero), strict=True):
        np.add.at(total, index, part.error_mm)
    drawn = np.random.default_rng(seed).integers(0, len(names), (_RESAMPLES, len(names)))
    shares = 1.0 - sums[0][drawn].sum(axis=1) / sums[1][drawn].sum(axis=1)
    tail = (1.0 - confidence) / 2
    low, high = np.quantile(shares, [tail, 1.0 - tail], axis=0)
    mean = 1.0 - sums[0].sum(axis=0) / sums[1].sum(axis=0)
    return [Interval(float(m), float(a), float(b), len(names)) for m, a, b in zip(mean, low, high, strict=True)]
