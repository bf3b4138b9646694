"""From a policy that acts in a simulator to a `Rollout`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.playback import Playback
from asap_core.environments.reference import ReferenceMotion
from asap_core.errors import StageError
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.simulators.protocol import RobotState


@dataclass(frozen=True)
class PolicyIdentity:
    """Which policy acted."""

    name: str
    sha256: str


def to_rollout(
    run: Playback, reference: ReferenceMotion, profile: RobotProfile, policy: PolicyIdentity, source: dict[str, Any]
) -> Rollout:
    """One episode per robot, from its start to the clip's end or to the last row before it failed.

    Args:
        run: the playback; robots that failed from the first row on give no episode.
        reference: the motion it followed.
        source: where this was done; `kind` is `twin` for a simulator that stands for a robot.

    Raises:
        StageError: no robot made a single step.
    """
    lengths = _alive_steps(run, reference.num_frames)
    robots = np.flatnonzero(lengths > 0)
    if not len(robots):
        raise StageError(f"policy {policy.name} on {reference.name}: every run failed in its first step")
    rows = [np.arange(lengths[n] + 1) for n in robots]
    place = (np.concatenate(rows), np.repeat(robots, lengths[robots] + 1))
    last = np.concatenate([r == r[-1] for r in rows])
    total = len(last)
    state = {name: np.stack([getattr(s, name) for s in run.states])[place] for name in RobotState.__dataclass_fields__}
    return Rollout(
        robot=profile.name,
        joint_names=tuple(profile.joint_names),
        control_dt=reference.control_dt,
        source=source,
        state=RobotState(**state),
        action=_before_each(run.action, place, last),
        joint_target=_before_each(run.joint_target, place, last),
        joint_torque=_before_each(run.torque, place, last),
        valid=~last,
        episode=np.repeat(np.arange(len(robots)), lengths[robots] + 1),
        frame=place[0] + run.start_frame[place[1]],
        start_phase=run.start_frame[place[1]] / (reference.num_frames - 1),
        motion=np.full(total, reference.name),
        policy=np.full(total, policy.name),
        policy_sha256=np.full(total, policy.sha256),
    )


def _alive_steps(run: Playback, num_frames: int) -> NDArray[np.intp]:
    """(N,) steps whose two states are both alive and within the clip."""
    alive = run.alive.sum(axis=0) - 1
    return np.minimum(alive, num_frames - 1 - run.start_frame)


def _before_each(
    values: NDArray[np.floating], place: tuple[NDArray[np.intp], NDArray[np.intp]], last: NDArray[np.bool_]
) -> NDArray[np.floating]:
    """What was done from each row; NaN in the last row of an episode."""
    padded = np.concatenate([values, np.full_like(values[:1], np.nan)])
    out = padded[place]
    out[last] = np.nan
    return out
