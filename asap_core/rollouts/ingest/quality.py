"""Which control steps of a log may be learned from: a mask per cause, and the runs that are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.ingest import health
from asap_core.rollouts.ingest.clock import Clocked
from asap_core.rollouts.ingest.steps import ControlSteps
from asap_core.settings import Settings

Mask = NDArray[np.bool_]

INFORMING = ("torque_saturated", "action_saturated", "warm")
"""Masks that mark rows without ruling them out: they are physics, or a warning."""


class QualitySettings(Settings):
    """Thresholds of the masks."""

    min_run_s: float = Field(default=1.0, gt=0)
    """Shorter runs of good rows are left out."""
    fall_tilt_deg: float = Field(default=45.0, gt=0, le=180)
    """The trunk's tilt from upright that is a fall if it lasts 0.1 s."""
    fall_height: float = Field(default=0.6, gt=0, le=1)
    """A root lower than this share of its median height has fallen."""
    fall_acc: float = Field(default=50.0, gt=0)
    """m/s²; a specific force beyond this is an impact of the trunk."""
    saturation: float = Field(default=0.95, gt=0, le=1)
    """Share of the torque limit from which a motor counts as saturated."""
    max_saturated: float = Field(default=0.03, ge=0, le=1)
    """Share of the rows within 1 s that may be saturated before they are ruled out, per joint."""
    hot_c: float = Field(default=90.0, gt=0)
    """°C from which a row is ruled out."""
    warm_c: float = Field(default=80.0, gt=0)
    """°C from which it is marked."""
    frozen_s: float = Field(default=0.06, gt=0)
    """Equal readings or an unchanged command for longer than this while the joints move are no data."""
    lifted_load: float = Field(default=0.15, ge=0, le=1)
    """Feet that bear less than this share of the weight for 0.3 s, not in flight, hang from a gantry."""


@dataclass(frozen=True)
class Quality:
    """Verdict on K control steps."""

    masks: Mapping[str, Mask]
    """Cause → (K,); every cause is present, also where no row has it."""
    usable: Mask
    """(K,) no cause rules it out and its run is long enough."""
    runs: tuple[tuple[int, int], ...]
    """[first, end) rows of the usable runs."""
    usable_s: float
    recorded_s: float

    def share(self, cause: str) -> float:
        """Share of the rows that have a cause."""
        return float(self.masks[cause].mean()) if len(self.usable) else 0.0


def judge(
    steps: ControlSteps,
    state: Clocked,
    imu: Clocked | None,
    profile: RobotProfile,
    settings: QualitySettings,
    root_pos: NDArray[np.floating] | None = None,
) -> Quality:
    """Judge every control step.

    Args:
        steps: of the log, K of them.
        state: the joint states they come from; may carry temperature, motor_error, crc_ok, emergency_stop.
        imu: the root's IMU stream, same clock.
        profile: torque limits, speed limits, weight.
        settings: thresholds.
        root_pos: (K, 3) m, NaN where the base is not known; None if it is known nowhere.
    """
    count = len(steps.time)
    masks: dict[str, Mask] = {
        "state_gap": ~steps.valid_state,
        "frozen": health.frozen(steps, state, settings.frozen_s),
        "encoder_glitch": health.at_ticks(steps, state, health.glitches(state, steps, profile)),
        "tracking_lost": health.tracking_lost(steps, settings.frozen_s),
        "emergency_stop": health.flagged(steps, state, "emergency_stop"),
        "crc_bad": ~health.flagged(steps, state, "crc_ok", default=True),
        "motor_error": health.motor_error(steps, state),
        "hot": health.warmer_than(steps, state, settings.hot_c),
        "warm": health.warmer_than(steps, state, settings.warm_c),
        "torque_saturated": np.asarray(health.saturated(steps, profile, settings.saturation).any(axis=1)),
        "saturated_long": health.saturated_long(steps, profile, settings.saturation, settings.max_saturated),
        "action_saturated": np.asarray(steps.saturated.any(axis=1)),
        "fall": health.fall(steps, imu, root_pos, settings),
        "lifted": health.lifted(steps, profile, settings.lifted_load),
    }
    if root_pos is not None:
        masks["base_gap"] = ~np.isfinite(root_pos).all(axis=1)
    bad = np.zeros(count, dtype=bool)
    for name, mask in masks.items():
        if name not in INFORMING:
            bad |= mask
    usable, runs = good_runs(~bad, max(1, round(settings.min_run_s / steps.control_dt)))
    masks["short_run"] = ~bad & ~usable
    return Quality(masks, usable, runs, float(usable.sum()) * steps.control_dt, count * steps.control_dt)


def good_runs(good: Mask, shortest: int) -> tuple[Mask, tuple[tuple[int, int], ...]]:
    """Rows in runs of at least `shortest` good rows, and those runs as [first, end)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]]).astype(np.int8)))
    runs = tuple((int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= shortest)
    usable = np.zeros(len(good), dtype=bool)
    for first, end in runs:
        usable[first:end] = True
    return usable, runs
