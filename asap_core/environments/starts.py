"""Which motion episodes track, where in it they start and how far from it (reference state initialisation)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from asap_core.environments.motion_set import Reference
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
    """Draws start frames, and remembers in which second of which motion episodes fail.

    Every frame is as likely as any other, so that a motion's share is that of its duration. Failures change this for
    the share `failure_weight` of the episodes; the others are the floor under each motion's share.

    Args:
        settings: shares of the ways to draw.
        reference: the motion or motions.
        control_dt: s per frame.
    """

    def __init__(self, settings: InitialisationSettings, reference: Reference, control_dt: float) -> None:
        self._settings = settings
        self._per_bin = max(1, round(_BIN_S / control_dt))
        self._first, last = reference.first_frame, reference.last_frame
        frames = np.arange(reference.num_frames)
        self._startable = frames[frames < last]
        within = np.minimum(frames, last - 1) - self._first
        opens_bin = (within % self._per_bin == 0) & (frames < last)
        self._bin_start = frames[opens_bin]
        self._bin_of = np.cumsum(opens_bin) - 1
        """(T,) second of each frame; a motion's last frame counts to the one before."""
        self._latest = last[opens_bin] - 1
        """(B,) the last frame of each second's motion in which an episode may start."""
        self.failures = np.zeros(len(self._bin_start))
        """(B,) running mean of failures per step in each second of each motion."""

    def draw(self, rng: np.random.Generator, count: int) -> Ids:
        """(count,) frames, none of them a motion's last."""
        frames = self._startable[rng.integers(0, len(self._startable), count)]
        if self._settings.failure_weight:
            chosen = rng.random(count) < self._settings.failure_weight
            frames[chosen] = self._near_failures(rng, int(chosen.sum()))
        at_first = rng.random(count) < self._settings.from_start
        frames[at_first] = self._first[frames[at_first]]
        return frames

    def _near_failures(self, rng: np.random.Generator, count: int) -> Ids:
        bins = rng.choice(len(self.failures), count, p=self.bin_shares())
        return np.minimum(self._bin_start[bins] + rng.integers(0, self._per_bin, count), self._latest[bins])

    def bin_shares(self) -> NDArray[np.floating]:
        """(B,) probability of each second; uniform before anything has failed."""
        count = len(self.failures)
        score = self.failures.copy()
        for k in range(1, min(_BINS_AHEAD, count)):
            same_motion = self._latest[k:] == self._latest[:-k]
            score[:-k] += _DECAY**k * self.failures[k:] * same_motion
        total = np.sum(score)
        return np.full(count, 1 / count) if total == 0 else np.asarray(score / total)

    def count_failures(self, frames: Ids) -> None:
        """Take in the frames (n,) in which episodes failed in this step."""
        counts = np.bincount(self._bin_of[frames], minlength=len(self.failures))
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
