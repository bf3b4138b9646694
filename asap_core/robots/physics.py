"""The physics a simulated robot runs with: time steps, joint and contact parameters, deviations from nominal."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from asap_core.settings import Settings

Drive = Literal["implicit", "explicit"]


class PhysicsSettings(Settings):
    """Parameters of one simulated world; the defaults are the nominal robot.

    Attributes:
        drive: how the PD torque is integrated. `implicit`: by MuJoCo's `implicitfast`, which takes the damping at the
            end of each physics step and stays stable at coarse ones. `explicit`: recomputed from the state at each
            physics step and held, as the paper's simulators do (MuJoCo `Euler`).
        physics_dt: integration step in s; a whole number of them makes one `control_dt`.
        control_dt: time between two policy actions in s.
        armature: reflected rotor inertia of every joint, kg m².
        damping: passive joint damping, N m s/rad, besides the drive's own kd.
        frictionloss: dry joint friction, N m.
        friction: sliding friction coefficient of every contact.
        self_collision: whether links collide with each other; if not, only with the floor.
        strength: joint-name substring -> factor on kp, kd and torque limit of every joint that contains it.
        kp_factor, kd_factor: joint-name substring -> further factor on kp alone, or kd alone.
        added_mass: link name -> kg added at that link's centre of mass (negative removes).
        action_delay: whole control steps between an action and its effect.
        action_delay_s: further seconds of it. Parts of a physics step are met by mixing the two targets of that step.
        armature_of, damping_of, frictionloss_of: joint-name substring -> value in place of the one of every joint.
        com_offset: link name -> m, in the link's frame, by which its centre of mass is displaced.
        backlash: joint-name substring -> play in rad: within half of it the drive's spring transmits nothing.
        no_load_speed: joint-name substring -> rad/s at which a drive has no torque left; its torque limit falls to it
            linearly from standstill, in the direction of motion.
    """

    drive: Drive = "implicit"
    physics_dt: float = Field(default=0.005, gt=0, le=0.02)
    control_dt: float = Field(default=0.02, gt=0, le=0.2)
    armature: float = Field(default=0.01, ge=0)
    damping: float = Field(default=0.0, ge=0)
    frictionloss: float = Field(default=0.0, ge=0)
    friction: float = Field(default=1.0, gt=0)
    self_collision: bool = False
    strength: dict[str, float] = Field(default_factory=dict)
    kp_factor: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    kd_factor: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    added_mass: dict[str, float] = Field(default_factory=dict)
    action_delay: int = Field(default=0, ge=0, le=50)
    action_delay_s: float = Field(default=0.0, ge=0, le=1)
    armature_of: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    damping_of: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    frictionloss_of: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    com_offset: dict[str, tuple[float, float, float]] = Field(default_factory=dict)
    backlash: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    no_load_speed: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)

    @property
    def delay_s(self) -> float:
        """Seconds between an action and its effect."""
        return self.action_delay * self.control_dt + self.action_delay_s

    @property
    def substeps(self) -> int:
        """Physics steps per control step."""
        return round(self.control_dt / self.physics_dt)

    def at_step(self, physics_dt: float) -> PhysicsSettings:
        """The same physics integrated at another step, s; validated, as `model_copy` is not."""
        return PhysicsSettings.model_validate(self.model_dump() | {"physics_dt": physics_dt})

    @field_validator("strength")
    @classmethod
    def _factors_above_zero(cls, strength: dict[str, float]) -> dict[str, float]:
        for pattern, factor in strength.items():
            if not pattern:
                raise ValueError("strength: an empty joint pattern matches every joint; name a part of a joint's name")
            if factor <= 0:
                raise ValueError(f"strength[{pattern!r}] is {factor}; expected a factor > 0 (1 is nominal)")
        return strength

    @model_validator(mode="after")
    def _whole_substeps(self) -> PhysicsSettings:
        ratio = self.control_dt / self.physics_dt
        if round(ratio) < 1 or abs(ratio - round(ratio)) > 1e-6:
            raise ValueError(
                f"physics_dt {self.physics_dt} s does not divide control_dt {self.control_dt} s (ratio {ratio:.4g}); "
                f"expected a whole number of physics steps per control step, e.g. physics_dt {self.control_dt / 4:g}"
            )
        return self
