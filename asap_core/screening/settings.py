"""Settings of the `screen` stage.

Thresholds lie between the worst of the 20 calibration clips (see `screening.calibration`) and the mildest of their
constructed faults; `asap bench screen` scores them on the other 19.
"""

from __future__ import annotations

from pydantic import Field

from asap_core.settings import Settings


class RobotScreenSettings(Settings):
    """What is asked of a robot's motion besides; shares of a clip's frames."""

    torque: float = Field(default=1.0, gt=0)
    """Share of a drive's torque limit that a good frame may ask for."""
    max_overloaded: float = Field(default=0.25, ge=0, le=1)
    """Share of frames that may ask for more; retargeted calibration clips up to 0.14."""
    max_fast: float = Field(default=0.02, ge=0, le=1)
    """Share of frames in which a joint may be faster than its limit."""
    beyond_limit: float = Field(default=1e-3, gt=0)
    """rad beyond a joint's limit that are rounding."""
    saturation: float = Field(default=1e-3, gt=0)
    """rad from a limit that count as lying on it."""
    saturated_joints: int = Field(default=4, ge=0)
    """So many joints may lie on a limit in a good frame."""
    max_saturated: float = Field(default=0.3, ge=0, le=1)
    """Share of frames in which more may."""
    max_unbalanced: float = Field(default=0.4, ge=0, le=1)
    """As for a person; a robot's soles are narrower, and its calibration clips go up to 0.27."""


class ImitatorSettings(Settings):
    """How the imitator follows a clip, and when it has."""

    physics_dt: float = Field(default=0.0025, gt=0, le=0.01)
    """s."""
    control_dt: float = Field(default=0.005, gt=0, le=0.02)
    """s between two solutions of the controller; a whole number of physics steps."""
    root_force: float = Field(default=0.1, ge=0, le=1)
    """Bound of each component of the residual force on the root, as a share of the weight."""
    max_root_force: float = Field(default=0.1, ge=0, le=1)
    """Share of the weight that the residual force may have in the mean."""
    max_error: float = Field(default=0.3, gt=0)
    """m, mean over the links, in every control step."""
    max_mean_error: float = Field(default=0.15, gt=0)
    """m, mean over the links and the clip; calibration clips that are followed have up to 0.12."""


class MaskedMimicSettings(Settings):
    """An installed MaskedMimic (ProtoMotions) as the imitator; it is not part of this project."""

    command: str = ""
    """What runs it, with {motion} (AMASS npz) and {result} (JSON manifest to write); empty if there is none."""
    timeout_s: float = Field(default=600.0, gt=0)


class ScreenSettings(Settings):
    """Lengths in m, speeds in m/s, accelerations in m/s², angles in rad, shares of a clip's frames."""

    friction: float = Field(default=0.9, gt=0)
    """Coefficient of the contact forces' cone."""
    contact_height: float = Field(default=0.08, gt=0)
    """A sole point lower than this may bear load."""
    contact_speed: float = Field(default=0.45, gt=0)
    """A sole point slower than this may bear load."""
    residual: float = Field(default=0.5, gt=0)
    """Part of the weight that no contact force may explain in a good frame."""
    max_infeasible: float = Field(default=0.18, ge=0, le=1)
    """Share of frames that may exceed `residual`; calibration clips up to 0.09, slides from 0.91."""
    max_root_speed: float = Field(default=8.0, gt=0)
    """Of the pelvis, in every frame."""
    max_root_acceleration: float = Field(default=90.0, gt=0)
    """Of the pelvis over a thirtieth of a second; calibration clips up to 44, a teleport by 0.7 m has 630."""
    max_joint_speed: float = Field(default=14.0, gt=0)
    """rad/s of a person's joint in a good frame."""
    max_fast: float = Field(default=0.02, ge=0, le=1)
    """Share of frames in which a joint may be faster; the fastest of the calibration clips is 10.8 rad/s."""
    max_force: float = Field(default=2.8, gt=0)
    """Contact force in weights in a good frame; the 95th percentile of the calibration clips is up to 1.9."""
    max_forceful: float = Field(default=0.05, ge=0, le=1)
    """Share of frames that may ask for more force."""
    ground_float: float = Field(default=0.12, gt=0)
    """A clip that stands no higher than this above z = 0 is put on it: the person may have had shorter legs."""
    ground_depth: float = Field(default=0.08, gt=0)
    """The same below z = 0; calibration clips stand down to 0.055 deep."""
    float_height: float = Field(default=0.12, gt=0)
    """With all soles above this the person must be in free fall."""
    max_floating: float = Field(default=0.15, ge=0, le=1)
    """Share of frames that may be above `float_height` without falling freely."""
    penetration_depth: float = Field(default=0.06, gt=0)
    """Below the ground, or below the level that the clip is put on."""
    max_penetrating: float = Field(default=0.05, ge=0, le=1)
    """Share of frames that may have a sole deeper than `penetration_depth`."""
    slide_speed: float = Field(default=0.12, gt=0)
    """A foot on the ground must have a sole point slower than this."""
    max_sliding: float = Field(default=0.45, ge=0, le=1)
    """Share of frames that may have feet on the ground and none at rest; calibration clips up to 0.23, clips carried
    along at 0.2 m/s from 0.80."""
    balance_distance: float = Field(default=0.05, gt=0)
    """How far the centre of mass may be beside the support of a person who hardly moves."""
    balance_speed: float = Field(default=0.2, gt=0)
    """A centre of mass slower than this hardly moves."""
    max_unbalanced: float = Field(default=0.12, ge=0, le=1)
    """Share of frames that may be out of balance; calibration clips up to 0.07, leans by 25° from 0.18."""
    backward_bend: float = Field(default=0.35, gt=0)
    """rad that an elbow or a knee may bend the wrong way; calibration clips up to 0.29."""
    max_bent_backward: float = Field(default=0.2, ge=0, le=1)
    """Share of frames that may bend further; columns mixed up have 0.48 and more."""
    robot: RobotScreenSettings = RobotScreenSettings()
    imitator: ImitatorSettings = ImitatorSettings()
    masked_mimic: MaskedMimicSettings = MaskedMimicSettings()
