"""The seam through which a delta action model acts inside the simulator."""

from __future__ import annotations

from typing import Protocol

from asap_core.simulators.protocol import Array, Ids, RobotState, TargetCorrection


class ActionCorrection(TargetCorrection, Protocol):
    """A correction of joint targets with a memory of N robots. It is never part of what is deployed."""

    def reset(self, ids: Ids) -> None:
        """Forget everything about robots `ids`."""

    def recall(self, state: RobotState, joint_target: Array) -> None:
        """Remember a past control step, (N rows each): `joint_target` was in force from `state` on."""
