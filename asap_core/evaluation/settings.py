"""Section `evaluate` of `params.yaml`."""

from __future__ import annotations

from pydantic import Field

from asap_core.settings import Settings


class EvaluateSettings(Settings):
    """The closed-loop protocol and the gate. The same perturbed starts serve every policy."""

    starts: int = Field(default=32, ge=2)
    joint_pos_noise: float = Field(default=0.02, ge=0, le=0.5)
    """rad, of the start; a start must lie within 0.5 m of the reference."""
    joint_vel_noise: float = Field(default=0.1, ge=0)
    """rad/s, of the start."""
    gate_margin: float = Field(default=0.02, ge=0)
    """Share of the other arm's E_g_mpjpe by which the paired upper bound may lie above zero."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
