"""A simulator that is another one in everything that a subclass does not change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.kinematics import LinkStates
from asap_core.simulators.protocol import Array, Ids, RobotState, Simulator, TargetCorrection


class WrappedSimulator:
    """See `Simulator`; every call goes to `simulator`."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self.num_envs = simulator.num_envs
        self.control_dt = simulator.control_dt

    @property
    def state(self) -> RobotState:
        """See `Simulator.state`."""
        return self._simulator.state

    def set_state(self, ids: Ids, state: RobotState, past_target: Array | None = None) -> None:
        """See `Simulator.set_state`."""
        self._simulator.set_state(ids, state, past_target)

    def set_root_velocity(self, ids: Ids, lin_vel: Array) -> None:
        """See `Simulator.set_root_velocity`."""
        self._simulator.set_root_velocity(ids, lin_vel)

    def step(self, joint_target: Array, correction: TargetCorrection | None = None) -> None:
        """See `Simulator.step`."""
        self._simulator.step(joint_target, correction)

    def link_states(self) -> LinkStates:
        """See `Simulator.link_states`."""
        return self._simulator.link_states()

    def joint_torque(self) -> Array:
        """See `Simulator.joint_torque`."""
        return self._simulator.joint_torque()

    def foot_contact(self, links: LinkStates | None = None) -> NDArray[np.bool_]:
        """See `Simulator.foot_contact`."""
        return self._simulator.foot_contact(links)
