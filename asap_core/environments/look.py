"""What rewards and observations see of the robots: states and links in single precision, worked out once a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asap_core.robots.kinematics import Kinematics, LinkStates
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import Ids, RobotState

_LINK_FIELDS = ("pos", "quat", "lin_vel", "ang_vel")


def single(state: RobotState) -> RobotState:
    """The same states in single precision."""
    return RobotState(**{name: value.astype(np.float32, copy=False) for name, value in state.__dict__.items()})


def single_links(links: LinkStates) -> LinkStates:
    """The same link states in single precision."""
    return LinkStates(**{name: getattr(links, name).astype(np.float32) for name in _LINK_FIELDS})


@dataclass(frozen=True)
class Look:
    """N robots at one time; all arrays float32."""

    state: RobotState
    links: LinkStates

    def renew(self, ids: Ids, other: Look) -> None:
        """Put the rows of `other` (M robots) in place of those of robots `ids` (M,)."""
        for name, value in self.state.__dict__.items():
            value[ids] = getattr(other.state, name)
        for name in _LINK_FIELDS:
            getattr(self.links, name)[ids] = getattr(other.links, name)


class Eyes:
    """Makes looks of states.

    Args:
        profile: the robot.
    """

    def __init__(self, profile: RobotProfile) -> None:
        self._kinematics = Kinematics(profile)

    def look(self, state: RobotState) -> Look:
        """A look at N robots in `state`, whose arrays are copied."""
        s = single(state)
        links = self._kinematics.forward_with_velocities(
            s.root_pos, s.root_quat, s.joint_pos, s.root_lin_vel, s.root_ang_vel, s.joint_vel
        )
        return Look(s, links)
