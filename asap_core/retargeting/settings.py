"""Settings of the `retarget` stage."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from asap_core.settings import Settings


class RetargetSettings(Settings):
    """Weights multiply residuals (before squaring) in metres or radians; link positions have weight 1.

    On the 39 published clips the defaults give 10 mm link error and 0.7 mm foot skate per frame (published: 2.4 mm).
    """

    correspondences: Literal["paper", "released"] = "paper"
    """The paper's 12 links, or the 14 of its released code (pelvis and head included)."""
    iterations: int = Field(default=15, ge=1, le=200)
    tolerance: float = Field(default=2e-3, gt=0)
    """Stop when no variable moves further than this (m or rad) in an iteration."""
    smoothness: float = Field(default=0.3, ge=0)
    """Weight of joint acceleration, per frame squared at 30 fps; the root's position counts three times."""
    foot_hold: float = Field(default=3.0, ge=0)
    """Weight of the horizontal movement of a sole point in contact from frame to frame."""
    sole_height: float = Field(default=2.0, ge=0)
    """Weight of the height of a sole point in contact."""
    penetration: float = Field(default=5.0, ge=0)
    """Weight of the depth of a sole point under the ground."""
    foot_orientation: float = Field(default=0.06, ge=0)
    pelvis_orientation: float = Field(default=0.05, ge=0)
    torso_orientation: float = Field(default=0.03, ge=0)
    posture: float = Field(default=0.01, ge=0)
    """Weight of the distance to the robot's default pose, for what nothing else decides."""
    contact_speed: float = Field(default=0.30, gt=0)
    """A heel or toe slower than this (m/s) may be in contact."""
    contact_height: float = Field(default=0.05, gt=0)
    """A heel or toe lower than this above its standing height (m) may be in contact."""
