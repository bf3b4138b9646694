"""Section `reconstruct` of `params.yaml`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from asap_core.reconstruction.camera import Known
from asap_core.reconstruction.estimators.settings import EstimatorsSettings
from asap_core.settings import Settings


class ClipSettings(Settings):
    """What is known of one video; what is not given is estimated."""

    focal: float | None = None
    """px of the full image."""
    pitch: float | None = None
    """rad by which the camera looks down."""
    roll: float | None = None
    """rad by which it is turned clockwise, as seen from behind."""
    camera_height: float | None = None
    """m above the ground."""
    person_height: float | None = None
    """m, sole to crown."""
    start: float | None = Field(default=None, ge=0)
    """s from the video's first picture."""
    end: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _values_are_possible(self) -> ClipSettings:
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise ValueError(f"end is {self.end:g}, expected a time after start, {self.start:g}")
        self.known()
        return self

    def known(self) -> Known:
        """As the lift takes it."""
        return Known(
            focal=self.focal,
            pitch=self.pitch,
            roll=self.roll,
            camera_height=self.camera_height,
            person_height=self.person_height,
        )


class ReconstructSettings(Settings):
    """How videos become motions."""

    model: Literal["full", "heavy"] = "full"
    """The landmark network; heavy is slower and its weights come from npm."""
    clips: dict[str, ClipSettings] = Field(default_factory=dict)
    """By the names in `motions.names`."""
    estimators: EstimatorsSettings = EstimatorsSettings()
    """Of `asap reconstruct --with`."""
