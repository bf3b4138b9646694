"""Open-loop replay: recorded nominal targets, applied in the nominal simulator from recorded full states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.correction import ActionCorrection
from asap_core.errors import StageError
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.simulators.protocol import RobotState, Simulator

Array = NDArray[np.floating]

HORIZONS_S = (0.25, 0.5, 1.0)
"""Horizons of every open-loop table (paper, Table III)."""


JOINT_ARM_M = 0.15
"""Turns a joint angle's error into a length; the feet and hands, which no link origin shows turning, have about it."""

PAST_STEPS = 8
"""Control steps before a segment that a delay or a correction's history may look back on."""


def horizon_steps(horizon_s: float, control_dt: float) -> int:
    """Whole control steps within a horizon."""
    return int(horizon_s / control_dt + 1e-9)


def horizon_key(horizon_s: float) -> str:
    """`open_loop_0.25s`, `open_loop_1.0s`: the stem of a figure's name."""
    return f"open_loop_{float(horizon_s)}s"


@dataclass(frozen=True)
class Past:
    """The P recorded control steps before each of S segments, oldest first."""

    states: tuple[RobotState, ...]
    """P times S rows."""
    joint_target: Array
    """(S, P, J) rad, nominal."""
    known: NDArray[np.bool_]
    """(S, P); what lies before an episode's start is not: there stand its first state and joint positions."""

    def take(self, index: NDArray[np.intp]) -> Past:
        """That of some segments."""
        states = tuple(state.take(index) for state in self.states)
        return Past(states, self.joint_target[index], self.known[index])


@dataclass(frozen=True)
class Segments:
    """S recorded pieces of H control steps."""

    start: RobotState
    """S rows."""
    joint_target: Array
    """(S, H, J) rad, nominal."""
    link_pos: Array
    """(S, H, L, 3) m, recorded after each step."""
    joint_pos: Array
    """(S, H, J) rad, likewise."""
    episode: NDArray[np.int64]
    """(S,) where a segment comes from; segments of one episode are not independent."""
    past: Past

    @property
    def num(self) -> int:
        """S."""
        return len(self.joint_target)

    @property
    def steps(self) -> int:
        """H."""
        return self.joint_target.shape[1]

    def take(self, index: NDArray[np.intp]) -> Segments:
        """Some of the segments."""
        return Segments(
            start=self.start.take(index),
            joint_target=self.joint_target[index],
            link_pos=self.link_pos[index],
            joint_pos=self.joint_pos[index],
            episode=self.episode[index],
            past=self.past.take(index),
        )


def cut_segments(rollout: Rollout, profile: RobotProfile, steps: int, stride: int | None = None) -> Segments:
    """Segments of `steps` usable transitions, `stride` (default `steps`) rows apart.

    Raises:
        StageError: no episode is that long.
    """
    starts = rollout.segment_starts(steps, stride)
    if not len(starts):
        raise StageError(f"no episode of the rollouts has {steps} usable control steps in a row")
    rows = starts[:, None] + np.arange(steps)
    after = (rows + 1).ravel()
    poses = Kinematics(profile).forward(
        rollout.state.root_pos[after], rollout.state.root_quat[after], rollout.state.joint_pos[after]
    )
    return Segments(
        start=rollout.state.take(starts),
        joint_target=rollout.joint_target[rows],
        link_pos=poses.pos.reshape(len(starts), steps, -1, 3),
        joint_pos=rollout.state.joint_pos[rows + 1],
        episode=rollout.episode[starts],
        past=_past(rollout, starts),
    )


def _past(rollout: Rollout, starts: NDArray[np.int64]) -> Past:
    """What was recorded before rows `starts`, as far back as every transition between is usable."""
    usable = np.zeros(rollout.num_rows, dtype=bool)
    usable[rollout.transitions()] = True
    back = np.arange(PAST_STEPS, 0, -1)
    rows = starts[:, None] - back
    reach = usable[np.maximum(rows, 0)] & (rows >= 0)
    known = np.flip(np.logical_and.accumulate(np.flip(reach, axis=1), axis=1), axis=1)
    first = starts - known.sum(axis=1)
    rows = np.where(known, rows, first[:, None])
    target = np.where(known[..., None], rollout.joint_target[rows], rollout.state.joint_pos[rows])
    return Past(tuple(rollout.state.take(column) for column in rows.T), target, known)


def replay(
    simulator: Simulator, profile: RobotProfile, segments: Segments, correction: ActionCorrection | None = None
) -> Array:
    """Link positions (S, H, L, 3) m that the simulator reaches under recorded targets plus correction.

    Delays and corrections with a memory begin with what was recorded before the segment.
    """
    return replay_with_joints(simulator, profile, segments, correction)[0]


def replay_with_joints(
    simulator: Simulator, profile: RobotProfile, segments: Segments, correction: ActionCorrection | None = None
) -> tuple[Array, Array]:
    """The same, and the joint positions (S, H, J) rad."""
    links, joints = np.empty_like(segments.link_pos), np.empty_like(segments.joint_pos)
    kinematics = Kinematics(profile)
    for begin in range(0, segments.num, simulator.num_envs):
        real = np.arange(begin, min(begin + simulator.num_envs, segments.num))
        filled = segments.take(np.resize(real, simulator.num_envs))
        root_pos, root_quat, joint_pos = (part[: len(real)] for part in _states(simulator, filled, correction))
        shape = (len(real) * segments.steps, -1)
        poses = kinematics.forward(root_pos.reshape(shape), root_quat.reshape(shape), joint_pos.reshape(shape))
        links[real] = poses.pos.reshape(len(real), *segments.link_pos.shape[1:])
        joints[real] = joint_pos
    return links, joints


def _states(simulator: Simulator, segments: Segments, correction: ActionCorrection | None) -> list[Array]:
    """Root positions, root quaternions and joint positions (N, H, …) after each replayed step."""
    everyone = np.arange(simulator.num_envs)
    simulator.set_state(everyone, segments.start, segments.past.joint_target)
    if correction is not None:
        _recall(segments.past, correction)
    states = []
    for step in range(segments.steps):
        simulator.step(segments.joint_target[:, step], correction)
        states.append(simulator.state)
    return [np.stack([getattr(s, name) for s in states], axis=1) for name in ("root_pos", "root_quat", "joint_pos")]


def _recall(past: Past, correction: ActionCorrection) -> None:
    """The correction has then seen what was recorded before the segments, and nothing else."""
    correction.reset(np.arange(len(past.known)))
    for step, state in enumerate(past.states):
        correction.recall(state, past.joint_target[:, step])
        correction.reset(np.flatnonzero(~past.known[:, step]))


def replay_distance(
    simulator: Simulator, profile: RobotProfile, segments: Segments, correction: ActionCorrection | None = None
) -> Array:
    """Mean distance of all links to the record, (S, H) m, after each replayed step."""
    reached = replay(simulator, profile, segments, correction)
    return np.linalg.norm(reached - segments.link_pos, axis=-1).mean(axis=-1)


def coordinates(link_pos: Array, joint_pos: Array) -> Array:
    """What fits compare, (S, H, 3 L + J) m: link positions (S, H, L, 3), and joint angles (S, H, J) on an arm."""
    return np.concatenate([link_pos.reshape(*link_pos.shape[:2], -1), JOINT_ARM_M * joint_pos], axis=-1)


def horizon_errors(distance: Array, control_dt: float) -> dict[float, float]:
    """Mean over segments and horizon of `replay_distance` (S, H), mm, for each of `HORIZONS_S`."""
    return {h: float(1000.0 * distance[:, : horizon_steps(h, control_dt)].mean()) for h in HORIZONS_S}
