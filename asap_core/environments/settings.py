"""Settings of the tracking task."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from asap_core.environments.curricula import RampSettings, SoftLimitSettings
from asap_core.environments.disturbances import DisturbanceSettings
from asap_core.environments.observations import PRIVILEGED, ObservationSettings
from asap_core.environments.randomisation import RandomisationSettings
from asap_core.environments.reference import JointVelocity, Phase
from asap_core.environments.rewards import TERMS as REWARD_TERMS
from asap_core.environments.starts import InitialisationSettings
from asap_core.environments.terminations import TerminationSettings
from asap_core.errors import unknown_name
from asap_core.settings import Settings

_PROPRIOCEPTION = ("actions", "base_ang_vel", "dof_pos", "dof_vel", "projected_gravity", "ref_motion_phase")
_SCALES = {"base_ang_vel": 0.25, "dof_vel": 0.05}
_ACTOR = ObservationSettings(
    terms=(*_PROPRIOCEPTION, "phase_harmonics", "ref_dof_pos"), history_terms=_PROPRIOCEPTION, scales=_SCALES
)
_CRITIC = ObservationSettings(
    terms=(
        *_PROPRIOCEPTION,
        "base_lin_vel",
        "dif_local_rigid_body_pos",
        "local_ref_rigid_body_pos",
        "phase_harmonics",
        "ref_dof_pos",
    ),
    history_terms=(),
    scales={**_SCALES, "base_lin_vel": 2.0},
)
"""The critic sees velocities and reference directly; its history would cost a third of the update on a CPU."""


class TrackingSettings(Settings):
    """Section `tracking` of `params.yaml`."""

    action_base: Literal["default", "reference"] = "reference"
    """What a zero action commands: the default pose (the paper) or the reference joint angles."""
    action_scale: Literal["torque"] | Annotated[float, Field(gt=0)] = "torque"
    """rad per unit action: one number (the paper: 0.25), or 0.25 · torque limit / kp for each joint."""
    phase: Phase = "frames"
    """Where the phase is 1."""
    reference_joint_vel: JointVelocity = "smoothed"
    """Joint velocities of the reference: smoothed, or the forward differences of the paper's code."""
    actor: ObservationSettings = _ACTOR
    critic: ObservationSettings = _CRITIC
    rewards: dict[str, float] = Field(min_length=1)
    """Weight of each term of `environments/rewards.py`, multiplied by control_dt."""
    penalty_scale: RampSettings = RampSettings(start=1.0)
    """Factor on the weights of all penalties (`environments/rewards.py`, `PENALTIES`)."""
    soft_limits: SoftLimitSettings = SoftLimitSettings()
    adaptive_sigma: float = Field(default=0.0, ge=0, lt=1)
    """Weight of a step's error in the running mean to which the tracking kernels narrow; 0 keeps them as published."""
    compare: Literal["world", "anchor"] = "world"
    """Whether rewards and terminations compare links where they are, or relative to the torso (`anchor.py`)."""
    reference_lead: int = Field(default=0, ge=0)
    """Control steps by which the reference of rewards and terminations is ahead of the state; the paper: 1."""
    termination_penalty: float = -2.0
    """Added once when an episode fails."""
    termination: TerminationSettings = TerminationSettings()
    initialisation: InitialisationSettings = InitialisationSettings()
    randomisation: RandomisationSettings = RandomisationSettings()
    disturbances: DisturbanceSettings = DisturbanceSettings()

    @field_validator("actor")
    @classmethod
    def _actor_sees_what_a_robot_measures(cls, actor: ObservationSettings) -> ObservationSettings:
        for name in (*actor.terms, *actor.history_terms):
            if name in PRIVILEGED:
                raise ValueError(f"observation term {name!r} needs link positions in the world; for the critic only")
        return actor

    @field_validator("rewards")
    @classmethod
    def _known_rewards(cls, rewards: dict[str, float]) -> dict[str, float]:
        for name in rewards:
            if name not in REWARD_TERMS:
                raise ValueError(str(unknown_name("reward term", name, REWARD_TERMS)))
        return rewards
