"""What every simulator backend offers: N robots side by side, stepped by joint position targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.kinematics import LinkStates

Array = NDArray[np.floating]
Ids = NDArray[np.intp]


@dataclass(frozen=True)
class RobotState:
    """State of N robots. World frame, metres, radians, seconds; quaternions wxyz; joints in profile order."""

    root_pos: Array
    """(N, 3) pelvis origin."""
    root_quat: Array
    """(N, 4) pelvis orientation, wxyz."""
    root_lin_vel: Array
    """(N, 3) velocity of the pelvis origin, world frame."""
    root_ang_vel: Array
    """(N, 3) angular velocity of the pelvis, world frame."""
    joint_pos: Array
    """(N, J)."""
    joint_vel: Array
    """(N, J)."""

    def take(self, ids: Ids) -> RobotState:
        """The states of some robots, copied."""
        return RobotState(**{name: getattr(self, name)[ids].copy() for name in self.__dataclass_fields__})


class TargetCorrection(Protocol):
    """What is added to joint targets inside the simulator, where the drives' torques are made."""

    def __call__(self, state: RobotState, joint_target: Array, time_s: float) -> Array:
        """Δq (N, J) rad for the physics step that begins in `state`.

        Args:
            joint_target: (N, J) rad in force, without the correction.
            time_s: s since the control step began; 0 in its first physics step.
        """


class Simulator(Protocol):
    """N independent robots of one profile on flat ground."""

    num_envs: int
    control_dt: float

    @property
    def state(self) -> RobotState:
        """A copy of the present state."""

    def set_state(self, ids: Ids, state: RobotState, past_target: Array | None = None) -> None:
        """Put robots `ids` (M,) exactly into `state` (M rows) and clear what they remember.

        Args:
            past_target: (M, P, J) rad, the last P targets, oldest first, where actions are delayed.
        """

    def set_root_velocity(self, ids: Ids, lin_vel: Array) -> None:
        """Give the roots of robots `ids` (M,) the velocity `lin_vel` (M, 3) m/s, world frame; nothing else changes."""

    def step(self, joint_target: Array, correction: TargetCorrection | None = None) -> None:
        """Hold `joint_target` (N, J) rad, plus `correction` at each physics step, under PD control for one step."""

    def link_states(self) -> LinkStates:
        """Positions, orientations and velocities of all links in the present state."""

    def joint_torque(self) -> Array:
        """(N, J) Nm that the PD law asks for in the present state under the last target, within the limits."""

    def foot_contact(self, links: LinkStates | None = None) -> NDArray[np.bool_]:
        """(N, F) whether a foot touches the ground.

        Args:
            links: those of the present state, where the caller has them.
        """
