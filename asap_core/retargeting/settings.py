"""Settings of the `retarget` stage."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from asap_core.settings import Settings


class RetargetSettings(Settings):
    """Weights multiply residuals (before squaring) in metres or radians, of which those of links have weight 1."""

    correspondences: Literal["paper", "released"] = "paper"
    """The paper's 12 links, or the 14 of its released code (pelvis and head included)."""
    body: Literal["robot", "person"] = "robot"
    """Whose bone lengths the robot follows: its own on the person's rotations, or the clip's skeleton as it is."""
    path_scale: float | None = Field(default=None, gt=0)
    """Factor of the root's path; if none, the ratio of the followed body's legs to the person's."""
    coarse_iterations: int = Field(default=7, ge=1, le=200)
    """Most iterations at about ten frames a second."""
    iterations: int = Field(default=3, ge=1, le=200)
    """Most iterations in all frames."""
    tolerance: float = Field(default=2e-3, gt=0)
    """Stop when no variable moves further than this (m or rad) in an iteration."""
    window: float = Field(default=20.0, gt=0)
    """Seconds that are solved at once; a longer clip is solved in windows that overlap."""
    overlap: float = Field(default=2.0, gt=0)
    """Seconds at a window's end that the next one solves again."""
    link_slack: float = Field(default=0.005, gt=0)
    """Links that are further from their targets than this (m) pull no harder; the mean distance is what counts."""
    smoothness: float = Field(default=0.3, ge=0)
    """Weight of the acceleration of root and joints, per frame squared at 30 fps."""
    speed_limit: float = Field(default=5.0, ge=0)
    """Weight of what a joint turns in a frame beyond its velocity limit."""
    foot_hold: float = Field(default=9.5, ge=0)
    """Weight of the horizontal movement of a sole point in contact, per frame at 30 fps."""
    hold_slack: float = Field(default=0.0005, gt=0)
    """A sole point in contact that moves further than this (m per frame at 30 fps) is held no harder."""
    sole_height: float = Field(default=2.5, ge=0)
    """Weight of the height of a sole point in contact."""
    sole_slack: float = Field(default=0.001, gt=0)
    """A sole point in contact that is further from the ground than this (m) is drawn no harder."""
    penetration: float = Field(default=5.0, ge=0)
    """Weight of the depth of a sole point under the ground."""
    foot_orientation: float = Field(default=0.015, ge=0)
    pelvis_orientation: float = Field(default=0.02, ge=0)
    torso_orientation: float = Field(default=0.02, ge=0)
    posture: float = Field(default=0.002, ge=0)
    """Weight of the distance to the robot's default pose, for what nothing else decides."""
    contact_speed: float = Field(default=0.30, gt=0)
    """A heel or toe slower than this (m/s) may be in contact."""
    contact_height: float = Field(default=0.05, gt=0)
    """A heel or toe lower than this above its standing height (m) may be in contact."""
