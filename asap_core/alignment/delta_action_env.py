"""The paper's delta action task: robots replay recorded targets, actions correct them, closeness to the record pays.

It is the tracking environment with a record as its reference: observations, rewards and terminations are the same.
Source: ASAP §III-B and Table II; the bounded form of the norm term.
"""

from __future__ import annotations

import numpy as np

from asap_core.environments.motion_set import MotionSet, Reference
from asap_core.environments.reference import ReferenceMotion
from asap_core.environments.rewards import RewardContext
from asap_core.environments.settings import TrackingSettings
from asap_core.environments.tracking import TrackingEnv
from asap_core.errors import StageError
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.simulators.protocol import Array, Ids, Simulator

EPISODE_S = 1.0
NORM_WEIGHT = 0.1
"""Of exp(−‖Δq‖/limit) − 1, which is 0 without a correction."""


class Recorded:
    """Pieces of rollouts, `EPISODE_S` long, as a reference, with the joint targets that were in force.

    Args:
        rollout: of one robot and rate.
        profile: that robot.

    Raises:
        StageError: no episode is that long.
    """

    def __init__(self, rollout: Rollout, profile: RobotProfile) -> None:
        steps = round(EPISODE_S / rollout.control_dt)
        starts = rollout.segment_starts(steps)
        if not len(starts):
            raise StageError(f"no episode of the rollouts has {steps} usable control steps in a row")
        pieces = [start + np.arange(steps + 1) for start in starts]
        self.reference: Reference = MotionSet(
            tuple(_piece(rollout, rows, f"{number}", profile) for number, rows in enumerate(pieces))
        )
        self.joint_target: Array = np.concatenate([rollout.joint_target[rows[[*range(steps), -2]]] for rows in pieces])
        """(T, J) rad in force from each frame on; in a piece's last frame, that of the one before."""


def _piece(rollout: Rollout, rows: Ids, name: str, profile: RobotProfile) -> ReferenceMotion:
    s = rollout.state.take(rows)
    links = Kinematics(profile).forward_with_velocities(
        s.root_pos, s.root_quat, s.joint_pos, s.root_lin_vel, s.root_ang_vel, s.joint_vel
    )
    return ReferenceMotion(name, rollout.control_dt, s, (len(rows) - 1) * rollout.control_dt, links)


def delta_settings(tracking: TrackingSettings, delta_limit: float) -> TrackingSettings:
    """`tracking` for this task: starts exactly on the record, and an action of 1 is the largest correction, rad."""
    exact = tracking.initialisation.model_copy(
        update={"from_start": 1.0, "joint_pos_noise": 0.0, "joint_vel_noise": 0.0, "root_vel_noise": 0.0}
    )
    return tracking.model_copy(
        update={"initialisation": exact, "action_base": "default", "action_scale": delta_limit, "reference_lead": 0}
    )


class DeltaActionEnv(TrackingEnv):
    """N robots replay a record. In place of the reference's next joint angles they see the recorded target.

    Args:
        simulator: the nominal one.
        profile: the robot.
        recorded: what is replayed.
        settings: see `delta_settings`.
        seed: of starts and observation noise.
    """

    def __init__(
        self, simulator: Simulator, profile: RobotProfile, recorded: Recorded, settings: TrackingSettings, seed: int
    ) -> None:
        self._recorded = recorded.joint_target
        super().__init__(simulator, profile, recorded.reference, settings, seed)

    def joint_target(self, action: Array) -> Array:
        """(N, J) rad: what was recorded, corrected by actions within ±1 times the limit."""
        return self._recorded[self._frame] + self._scale * np.clip(action, -1.0, 1.0)

    def _shown_joint_pos(self, ahead: Ids) -> Array:
        return self._recorded[self._frame]

    def _reward(self, context: RewardContext) -> Array:
        norm = np.linalg.norm(np.clip(context.action, -1.0, 1.0), axis=1)
        return super()._reward(context) + NORM_WEIGHT * self.simulator.control_dt * (np.exp(-norm) - 1.0)
