"""The border to Isaac Lab on ovphysx and a CPU: what each control step needs, straight from and to the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.profile import RobotProfile
from asap_core.simulators.isaaclab.scene_robot import SceneRobot
from asap_core.simulators.protocol import Array, Ids, RobotState


class OvphysxRobot(SceneRobot):
    """A `SceneRobot` without Isaac Lab's bookkeeping of each step, which takes a fifth of a step of 16 robots.

    The numbers are the same. Isaac Lab hears of the steps when it is next asked to write.
    """

    def __init__(self, scene: Any, profile: RobotProfile) -> None:
        super().__init__(scene, profile)
        names = ("root_pose", "root_velocity", "dof_position", "dof_velocity", "dof_position_target")
        view = self.articulation.root_view
        self._bindings = {name: view.binding_for(f"articulation_{name}") for name in (*names, "dof_actuation_force")}
        self._values = {name: np.zeros(binding.shape, np.float32) for name, binding in self._bindings.items()}
        self._forces = np.zeros((len(self._to_feet) * len(self.origins), 3), np.float32)
        self._unheard_s = 0.0

    def stepped(self, seconds: float) -> None:
        """To be told when the engine has taken steps."""
        self._unheard_s += seconds

    def joints(self) -> tuple[Array, Array]:
        """See `SceneRobot.joints`."""
        position, velocity = self._read("dof_position"), self._read("dof_velocity")
        return position[:, self._to_profile].astype(float), velocity[:, self._to_profile].astype(float)

    def foot_forces(self) -> Array:
        """See `SceneRobot.foot_forces`; needs no update of the scene."""
        self._feet.contact_view.read_net_normal_forces(self._forces)
        return self._forces.reshape(-1, len(self.origins), 3)[self._to_feet].transpose(1, 0, 2)

    def write_state(self, ids: Ids, state: RobotState) -> None:
        """See `SceneRobot.write_state`."""
        self._tell()
        super().write_state(ids, state)

    def write_root_velocity(self, ids: Ids, lin_vel: Array) -> None:
        """See `SceneRobot.write_root_velocity`."""
        self._tell()
        super().write_root_velocity(ids, lin_vel)

    def command_target(self, target: Array) -> None:
        """See `SceneRobot.command_target`; in force at once."""
        self._write("dof_position_target", target)

    def command_torque(self, torque: Array) -> None:
        """See `SceneRobot.command_torque`; in force at once."""
        self._write("dof_actuation_force", torque)

    def submit(self) -> None:
        """Nothing: commands are in force already."""

    def _root_motion(self) -> tuple[Array, Array]:
        return self._read("root_pose").astype(float), self._read("root_velocity").astype(float)

    def _tell(self) -> None:
        if self._unheard_s:
            self.articulation.update(self._unheard_s)
            self._unheard_s = 0.0

    def _read(self, name: str) -> NDArray[np.float32]:
        """In the engine's order; the same array each time, which spares the engine a look at it."""
        self._bindings[name].read(self._values[name])
        return self._values[name]

    def _write(self, name: str, values: Array) -> None:
        self._values[name][:] = values[:, self._to_engine]
        self._bindings[name].write(self._values[name])
