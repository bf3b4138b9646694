"""Raw policy outputs from joint targets: action = (target − base) / scale, with what the policy's contract says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.observations import CLIP
from asap_core.errors import ConfigError
from asap_core.robots.profile import RobotProfile
from asap_core.training.contract import PolicyContract

Float64 = NDArray[np.float64]
_AT_LIMIT = 1e-5
"""rad or raw units; targets are stored in single precision."""


@dataclass(frozen=True)
class ActionRule:
    """How a policy's joint targets come from its raw actions: target = base + scale · action."""

    joint_names: tuple[str, ...]
    base: Float64
    """(J,) rad; or (F, J), the reference joint angles from the first step's target on, of which the last stays."""
    scale: Float64
    """(J,) rad per unit action."""
    clip: float
    """Raw actions are clipped at ± this; infinite if they are not."""
    joint_lower: Float64
    """(J,) rad."""
    joint_upper: Float64
    """(J,) rad."""

    @classmethod
    def from_contract(
        cls, contract: PolicyContract, profile: RobotProfile, start_frame: int | None = None
    ) -> ActionRule:
        """The rule of a policy with a contract.

        Args:
            start_frame: reference frame of the first step; needed where the base is the reference, since a log does
                not say where in the clip it began.

        Raises:
            ConfigError: the contract is of another robot, it needs a start frame and there is none, or a motion.
        """
        if contract.robot != profile.name or contract.joint_names != tuple(profile.joint_names):
            raise ConfigError(f"the policy is made for robot {contract.robot!r}, not for {profile.name!r}")
        base = np.array(contract.default_joint_pos)
        if contract.action_base == "reference":
            if start_frame is None:
                raise ConfigError(
                    "the policy acts about its reference motion; say with --start-frame which frame of it the first "
                    "control step had"
                )
            if not contract.ref_joint_pos:
                raise ConfigError("the policy acts about a reference motion that its contract does not hold")
            reference = np.array(contract.ref_joint_pos)
            base = reference[min(start_frame + 1, len(reference) - 1) :]
        return cls(
            contract.joint_names, base, np.array(contract.action_scale), CLIP, profile.joint_lower, profile.joint_upper
        )

    @classmethod
    def from_values(
        cls,
        profile: RobotProfile,
        default: Mapping[str, float] | None,
        scale: Mapping[str, float] | float | None,
        clip: float = np.inf,
    ) -> ActionRule:
        """The rule of a policy that is only known by its numbers.

        Args:
            default: joint → rad of the pose at zero action.
            scale: rad per unit action, one number for all joints or one each.

        Raises:
            ConfigError: default or scale is missing for a joint, or a scale is not above zero.
        """
        names = tuple(profile.joint_names)
        if default is None or scale is None:
            missing = " and ".join(
                n for n, v in (("--action-default", default), ("--action-scale", scale)) if v is None
            )
            raise ConfigError(
                f"raw actions cannot be recovered without the policy's contract (--policy) or {missing}: action = "
                "(target - default) / scale"
            )
        scales = scale if isinstance(scale, Mapping) else dict.fromkeys(names, float(scale))
        for what, values in (("--action-default", default), ("--action-scale", scales)):
            lacking = [name for name in names if name not in values]
            if lacking:
                raise ConfigError(f"{what}: no value for {', '.join(lacking)}")
        steps = np.array([scales[name] for name in names], float)
        if not (np.isfinite(steps).all() and (steps > 0).all()):
            raise ConfigError(f"--action-scale: found {steps.min()}, expected numbers above 0 (rad per unit action)")
        base = np.array([default[name] for name in names], float)
        return cls(names, base, steps, clip, profile.joint_lower, profile.joint_upper)

    @classmethod
    def of_targets(cls, profile: RobotProfile) -> ActionRule:
        """The rule under which an action is the joint target itself, for logs whose policy nobody knows."""
        limits = (profile.joint_lower, profile.joint_upper)
        return cls(profile.joint_names, np.zeros(profile.num_joints), np.ones(profile.num_joints), np.inf, *limits)

    @classmethod
    def of_joints(cls, names: tuple[str, ...]) -> ActionRule:
        """The same for joints without known limits."""
        far = np.full(len(names), np.inf)
        return cls(names, np.zeros(len(names)), np.ones(len(names)), np.inf, -far, far)

    def recover(self, target: Float64) -> tuple[Float64, NDArray[np.bool_]]:
        """Raw actions (K, J) of joint targets (K, J) rad, and where they may have been cut.

        Returns:
            action, and saturated (K, J): the action is at the clip or beyond, or the target at a joint limit or
            beyond, so the policy may have asked for more.
        """
        action = (target - self._base_of(len(target))) / self.scale
        clipped = np.abs(action) >= self.clip - _AT_LIMIT
        at_limit = (target <= self.joint_lower + _AT_LIMIT) | (target >= self.joint_upper - _AT_LIMIT)
        return action, clipped | at_limit

    def apply(self, action: Float64) -> Float64:
        """Joint targets (K, J) rad of raw actions (K, J)."""
        out: Float64 = self._base_of(len(action)) + self.scale * action
        return out

    def _base_of(self, steps: int) -> Float64:
        return self.base if self.base.ndim == 1 else self.base[np.minimum(np.arange(steps), len(self.base) - 1)]
