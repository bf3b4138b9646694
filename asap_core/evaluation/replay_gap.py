"""How far the nominal simulator drifts from what a robot did, and how far it would from itself.

A segment's recorded targets are replayed from its recorded start. Two things make the result differ from the record:
the physics, and errors of the recorded states. The floor is a rough upper bound of what the second does alone: the
segment is simulated nominally from its recorded start, taken for the truth, and again from that start with the errors
of `StateErrors`. An error below the floor says nothing against the simulator; one above it does.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asap_core.alignment.replay import HORIZONS_S, Segments, cut_segments, horizon_steps, replay
from asap_core.metrics import Interval, bootstrap_interval
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.rotations import quat_mul, rotvec_to_quat
from asap_core.simulators.protocol import RobotState, Simulator

Array = NDArray[np.floating]


@dataclass(frozen=True)
class StateErrors:
    """Standard deviations per axis taken for what ingest gets wrong in a state.

    Rounded up from logs of a twin that stands and moves, mocap noise 0.3 mm and 0.11°: not measured on each log.
    """

    root_pos: float = 4e-4
    """m, level."""
    root_height: float = 1e-4
    """m, above the floor that ingest finds. Places are wrong by the same through a segment."""
    root_turn: float = 1e-3
    """rad."""
    root_lin_vel: float = 1e-3
    """m/s."""
    root_ang_vel: float = 0.015
    """rad/s."""
    joint_pos: float = 2e-4
    """rad."""
    joint_vel: float = 0.01
    """rad/s."""


_BY_BASE = {"mocap": StateErrors(root_lin_vel=4e-3, root_ang_vel=0.08), "mocap+imu": StateErrors()}
_ESTIMATED = StateErrors(root_pos=0.02, root_lin_vel=0.05)
"""A guess: without mocap they depend on the log."""


def errors_of(bases: Set[str]) -> StateErrors:
    """The errors of logs whose bases were had in these ways: those of the least exact one."""
    if not bases or bases - _BY_BASE.keys():
        return _ESTIMATED
    return _BY_BASE["mocap" if "mocap" in bases else "mocap+imu"]


@dataclass(frozen=True)
class ReplayGapRow:
    """One horizon; mm, mean over links and the horizon, intervals bootstrapped over recorded episodes."""

    horizon_s: float
    segments: int
    error: Interval
    floor: Interval


def replay_gap(
    rollout: Rollout, profile: RobotProfile, simulator: Simulator, errors: StateErrors | None = None, seed: int = 0
) -> tuple[ReplayGapRow, ...]:
    """The table over `HORIZONS_S`, of segments of the longest, half of it apart.

    Args:
        rollout: of any split.
        profile: its robot.
        simulator: nominal.
        errors: of the recorded states; by what the rollout says of its base if left out.
        seed: of the floor's errors.

    Raises:
        StageError: no episode lasts the longest horizon.
    """
    errors = errors or errors_of({str(rollout.source.get("base_velocity"))})
    steps = horizon_steps(HORIZONS_S[-1], simulator.control_dt)
    segments = cut_segments(rollout, profile, steps, steps // 2)
    rng = np.random.default_rng(seed)
    nominal = replay(simulator, profile, segments)
    size = [errors.root_pos, errors.root_pos, errors.root_height]
    place = rng.normal(0.0, 1.0, (segments.num, 3)) * size
    measured = replace(segments, start=_measured(segments.start, place, errors, rng))
    again = replay(simulator, profile, measured)
    seen = nominal + place[:, None, None]
    distances = [1000.0 * np.linalg.norm(a - b, axis=-1).mean(axis=-1) for a, b in
                 ((nominal, segments.link_pos), (again, seen))]  # fmt: skip
    return tuple(_row(h, segments, *(d[:, : horizon_steps(h, simulator.control_dt)] for d in distances))
                 for h in HORIZONS_S)  # fmt: skip


def _row(horizon_s: float, segments: Segments, error: Array, floor: Array) -> ReplayGapRow:
    """`error` and `floor` (S, H) mm."""
    clusters = segments.episode.tolist()
    intervals = (bootstrap_interval(values.mean(axis=1), clusters) for values in (error, floor))
    return ReplayGapRow(horizon_s, segments.num, *intervals)


def _measured(state: RobotState, place: Array, errors: StateErrors, rng: np.random.Generator) -> RobotState:
    def noisy(values: Array, size: float) -> Array:
        return np.asarray(values + rng.normal(0.0, size, values.shape))

    turn = rotvec_to_quat(rng.normal(0.0, errors.root_turn, state.root_pos.shape))
    return RobotState(
        root_pos=state.root_pos + place,
        root_quat=quat_mul(state.root_quat, turn),
        root_lin_vel=noisy(state.root_lin_vel, errors.root_lin_vel),
        root_ang_vel=noisy(state.root_ang_vel, errors.root_ang_vel),
        joint_pos=noisy(state.joint_pos, errors.joint_pos),
        joint_vel=noisy(state.joint_vel, errors.joint_vel),
    )
