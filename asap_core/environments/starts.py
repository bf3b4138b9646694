"""Where in the clip episodes start, and how far from the reference (reference state initialisation)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from asap_core.rotations import quat_mul, rotvec_to_quat
from asap_core.settings import Settings
from asap_core.simulators.protocol import Ids, RobotState

_BIN_S = 1.0
_DECAY = 0.8
_BINS_AHEAD = 3
"""A start is worth drawing for failures in its own second and, less by `_DECAY` for each, the next ones."""
_FORGET = 0.001
"""Weight of one step's failures in their running mean (BeyondMimic)."""


class InitialisationSettings(Settings):
    """Episodes start anywhere in the motion, disturbed by Gaussian noise."""

    from_start: float = Field(default=0.3, ge=0, le=1)
    """Share of the episodes that start at the clip's first frame, where every run on a robot starts."""
    failure_weight: float = Field(default=0.0, ge=0, le=1)
    """Share of the episodes that start where earlier ones failed, or shortly before (BeyondMimic, 2508.08241)."""
    joint_pos_noise: float = Field(default=0.02, ge=0)
    """rad; also of the tilt."""
    joint_vel_noise: float = Field(default=0.1, ge=0)
    """rad/s."""
    root_vel_noise: float = Field(default=0.04, ge=0)
    """m/s and rad/s."""
    root_pos_noise: float = Field(default=0.0, ge=0)
    """m."""
    root_turn: float = Field(default=0.0, ge=0)
    """rad; the root is turned about a random axis by an angle uniform between 0 and this."""


class StartSampler:
    """Draws start frames, and remembers in which second of the clip episodes fail.

    Args:
        settings: shares of the ways to draw.
        num_frames: of the clip.
        control_dt: s per frame.
    """

    def __init__(self, settings: InitialisationSettings, num_frames: int, control_dt: float) -> None:
        self._settings = settings
        self._last = num_frames - 1
        self._per_bin = max(1, round(_BIN_S / control_dt))
        self.failures = np.zeros(-(-self._last // self._per_bin))
        """(B,) running mean of failures per step in each second."""

    def draw(self, rng: np.random.Generator, count: int) -> Ids:
        """(count,) frames, none of them the last."""
        frames = rng.integers(0, self._last, count)
        if self._settings.failure_weight:
            chosen = rng.random(count) < self._settings.failure_weight
            frames[chosen] = self._near_failures(rng, int(chosen.sum()))
        frames[rng.random(count) < self._settings.from_start] = 0
        return frames

    def _near_failures(self, rng: np.random.Generator, count: int) -> Ids:
        bins = rng.choice(len(self.failures), count, p=self.bin_shares())
        return np.minimum(bins * self._per_bin + rng.integers(0, self._per_bin, count), self._last - 1)

    def bin_shares(self) -> NDArray[np.floating]:
        """(B,) probability of each second; uniform before anything has failed."""
        padded = np.concatenate([self.failures, np.zeros(_BINS_AHEAD - 1)])
        score = sum(_DECAY**k * padded[k : k + len(self.failures)] for k in range(_BINS_AHEAD))
        total = np.sum(score)
        return np.full(len(self.failures), 1 / len(self.failures)) if total == 0 else np.asarray(score / total)

    def count_failures(self, frames: Ids) -> None:
        """Take in the frames (n,) in which episodes failed in this step."""
        counts = np.bincount(np.minimum(frames, self._last - 1) // self._per_bin, minlength=len(self.failures))
        self.failures += _FORGET * (counts - self.failures)


def disturbed(clean: RobotState, settings: InitialisationSettings, rng: np.random.Generator) -> RobotState:
    """Reference states (N) with noise."""
    n = len(clean.root_pos)
    tilt = rotvec_to_quat(rng.normal(0.0, settings.joint_pos_noise, (n, 3)))
    state = RobotState(
        root_pos=clean.root_pos,
        root_quat=quat_mul(tilt, clean.root_quat),
        root_lin_vel=clean.root_lin_vel + rng.normal(0.0, settings.root_vel_noise, (n, 3)),
        root_ang_vel=clean.root_ang_vel + rng.normal(0.0, settings.root_vel_noise, (n, 3)),
        joint_pos=clean.joint_pos + rng.normal(0.0, settings.joint_pos_noise, clean.joint_pos.shape),
        joint_vel=clean.joint_vel + rng.normal(0.0, settings.joint_vel_noise, clean.joint_vel.shape),
    )
    if settings.root_pos_noise:
        state = replace(state, root_pos=state.root_pos + rng.normal(0.0, settings.root_pos_noise, (n, 3)))
    if settings.root_turn:
        axis = rng.normal(size=(n, 3))
        turn = rng.uniform(0.0, settings.root_turn, (n, 1)) * axis / np.linalg.norm(axis, axis=1, keepdims=True)
        state = replace(state, root_quat=quat_mul(rotvec_to_quat(turn), state.root_quat))
    return state
