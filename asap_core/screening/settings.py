"""Settings of the `screen` stage; thresholds were set on the published ASAP clips, of which none is rejected."""

from __future__ import annotations

from pydantic import Field

from asap_core.settings import Settings


class ScreenSettings(Settings):
    """Lengths in m, speeds in m/s, fractions of a clip's frames."""

    friction: float = Field(default=0.9, gt=0)
    """Coefficient of the contact forces' cone."""
    contact_height: float = Field(default=0.08, gt=0)
    """A sole point lower than this may bear load."""
    contact_speed: float = Field(default=0.45, gt=0)
    """A sole point slower than this may bear load."""
    ground_tolerance: float = Field(default=0.2, ge=0)
    """A clip whose feet stand this near to z = 0 is put on it: the person may have had longer or shorter legs."""
    residual: float = Field(default=0.5, gt=0)
    """Part of the weight that no contact force may explain in a good frame."""
    max_infeasible: float = Field(default=0.3, ge=0, le=1)
    """Fraction of frames that may exceed `residual`."""
    max_root_speed: float = Field(default=8.0, gt=0)
    """Of the pelvis, in every frame."""
    float_height: float = Field(default=0.12, gt=0)
    """With all soles above this the person must be in free fall."""
    max_floating: float = Field(default=0.15, ge=0, le=1)
    """Fraction of frames that may be above `float_height` without falling freely."""
    penetration_depth: float = Field(default=0.12, gt=0)
    max_penetrating: float = Field(default=0.05, ge=0, le=1)
    """Fraction of frames that may have a sole deeper than `penetration_depth`."""
    max_sliding: float = Field(default=0.3, ge=0, le=1)
    """Fraction of frames that may have a foot on the ground but none at rest."""
    balance_distance: float = Field(default=0.05, gt=0)
    """How far the centre of mass may be beside the support of a person who hardly moves."""
    balance_speed: float = Field(default=0.2, gt=0)
    """A centre of mass slower than this hardly moves."""
    max_unbalanced: float = Field(default=0.3, ge=0, le=1)
    """Fraction of frames that may be out of balance."""
