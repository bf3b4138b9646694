"""The policy contract: everything that must be known to run a policy, carried in its ONNX metadata."""

from __future__ import annotations

import json
from typing import Literal

import numpy as np
from pydantic import ValidationError

from asap_core.environments.motion_set import Reference
from asap_core.environments.observations import ObservationSettings
from asap_core.environments.playback import ActingRule
from asap_core.environments.reference import ReferenceMotion
from asap_core.environments.settings import TrackingSettings
from asap_core.environments.tracking import action_scale
from asap_core.errors import ContractError
from asap_core.robots.profile import RobotProfile
from asap_core.settings import Settings

METADATA_KEY = "asap_contract"
_CLIP_TOLERANCE = 1e-6
"""rad."""


class PolicyContract(Settings):
    """Numbers are float64 and survive the round trip through JSON exactly. Joints are in the order of `joint_names`.

    A policy whose observation holds the reference's joint angles ahead runs on any motion of its rate
    (`follows_any_motion`); every other one on the clip that it was trained on.
    """

    format_version: int = 1
    kind: Literal["tracking_policy"] = "tracking_policy"
    robot: str
    motion: str
    """The motion that it was trained on, or the names of several."""
    control_dt: float
    clip_length_s: float | None
    """s; None after training on several motions."""
    joint_names: tuple[str, ...]
    default_joint_pos: tuple[float, ...]
    kp: tuple[float, ...]
    kd: tuple[float, ...]
    joint_torque_limit: tuple[float, ...]
    action_base: Literal["default", "reference"]
    action_scale: tuple[float, ...]
    phase_length_s: float | None = None
    """Seconds after which the phase is 1; None: `clip_length_s`."""
    observation: ObservationSettings
    ref_joint_pos: tuple[tuple[float, ...], ...]
    """(T, J) rad at the control rate: the clip that base and observation refer to; empty after several motions."""

    @classmethod
    def of(cls, profile: RobotProfile, reference: Reference, settings: TrackingSettings) -> PolicyContract:
        """The contract of a policy trained on `reference` with `settings`."""
        clip = reference if isinstance(reference, ReferenceMotion) else None
        length = clip.clip_length_s if clip is not None and settings.phase == "clip" else None
        scale = action_scale(settings, profile)
        return cls.of_rule(profile, reference, ActingRule(settings.actor, settings.action_base, scale, length))

    @classmethod
    def of_rule(cls, profile: RobotProfile, reference: Reference, rule: ActingRule) -> PolicyContract:
        """The contract of a policy that sees and acts by `rule`."""
        clip = reference if isinstance(reference, ReferenceMotion) else None
        return cls(
            robot=profile.name,
            motion=reference.name,
            control_dt=reference.control_dt,
            clip_length_s=None if clip is None else clip.length_s,
            joint_names=profile.joint_names,
            default_joint_pos=tuple(profile.default_joint_pos.tolist()),
            kp=tuple(profile.kp.tolist()),
            kd=tuple(profile.kd.tolist()),
            joint_torque_limit=tuple(profile.joint_torque_limit.tolist()),
            action_base=rule.action_base,
            action_scale=tuple(rule.action_scale.tolist()),
            phase_length_s=rule.phase_length_s,
            observation=rule.observation,
            ref_joint_pos=() if clip is None else tuple(tuple(row) for row in clip.state.joint_pos.tolist()),
        )

    @property
    def follows_any_motion(self) -> bool:
        """Its observation holds the reference's joint angles ahead."""
        return "ref_dof_pos_future" in self.observation.terms

    @property
    def rule(self) -> ActingRule:
        """What a control loop needs."""
        return ActingRule(self.observation, self.action_base, np.array(self.action_scale), self.phase_length_s)

    def to_json(self) -> str:
        """One line of JSON with sorted keys."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str, where: str) -> PolicyContract:
        """Read a contract.

        Raises:
            ContractError: not JSON, a key missing or of a wrong type; `where` is named.
        """
        try:
            return cls.model_validate(json.loads(text))
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise ContractError(f"{where}: the contract is incomplete: {problems}") from None
        except ValueError as error:
            raise ContractError(f"{where}: the contract is not JSON: {error}") from None

    def check(self, profile: RobotProfile, reference: ReferenceMotion, where: str) -> None:
        """Refuse to run on another robot, at another rate or, unless it follows any, after another motion.

        Raises:
            ContractError: robot, joint order, gains, limits, rate or motion differ.
        """
        if self.robot != profile.name or self.joint_names != tuple(profile.joint_names):
            raise ContractError(
                f"{where}: made for robot {self.robot!r} with {len(self.joint_names)} joints, "
                f"not for {profile.name!r} with {len(profile.joint_names)}"
            )
        for name in ("default_joint_pos", "kp", "kd", "joint_torque_limit"):
            if getattr(self, name) != tuple(getattr(profile, name).tolist()):
                raise ContractError(f"{where}: contract field {name} differs from that of {profile.name!r}")
        if self.control_dt != reference.control_dt:
            raise ContractError(
                f"{where}: contract field control_dt: policy has {self.control_dt!r}, this run has "
                f"{reference.control_dt!r}"
            )
        if not self.follows_any_motion:
            self._check_motion(reference, where)

    def _check_motion(self, reference: ReferenceMotion, where: str) -> None:
        if self.motion != reference.name:
            raise ContractError(
                f"{where}: contract field motion: policy has {self.motion!r}, this run has {reference.name!r}"
            )
        clip, now = np.array(self.ref_joint_pos), reference.state.joint_pos
        if clip.shape != now.shape or np.abs(clip - now).max() > _CLIP_TOLERANCE:
            raise ContractError(f"{where}: trained on another clip called {self.motion!r}; `dvc repro` trains it anew")
