"""What a foreign motion file holds, as it holds it: nothing reordered, nothing converted, nothing guessed.

A reader fills a clip; what its columns mean is decided afterwards by `asap_core.motions.doctor`, with evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from asap_core.rotations import Array

QuatOrder = Literal["wxyz", "xyzw"]
UpAxis = Literal["x", "y", "z"]
BodyModel = Literal["smpl", "smplh", "smplx"]
RootPoint = Literal["pelvis", "model_origin", "hip_centre"]
"""What a person's root translation moves: the pelvis joint; SMPL's `trans`, from which the pelvis lies a constant rest
position away; or the point midway between the hip joints."""


@dataclass(frozen=True)
class Declared:
    """What the format's definition or the file itself says; None where it is left open and has to be decided."""

    quat_order: QuatOrder | None = None
    joint_order: str | None = None
    """A name in `asap_core.motions.doctor.joint_orders`, such as `unitree29`; None if the format leaves it open."""
    body_order: str | None = None
    up_axis: UpAxis | None = None
    length_unit: Literal["m", "cm", "mm"] | None = None
    angle_unit: Literal["rad", "deg"] | None = None
    velocity_point: Literal["link", "com"] | None = None
    """What body_lin_vel is the velocity of."""
    frame: Literal["world", "camera"] | None = None


@dataclass(frozen=True)
class RobotClip:
    """T frames of a robot with J joints and B bodies. Arrays are float64 copies of the file's, in its order and units.

    A representation with one reading only (an exponential map, Euler angles of a stated order) is turned into a wxyz
    quaternion by the reader and `declared.quat_order` set.
    """

    path: Path
    name: str
    """Of the clip inside the file, or the file's stem."""
    format: str
    """Key in `asap_core.motions.formats.FORMATS`."""
    sha256: str
    root_pos: Array
    """(T, 3)."""
    root_quat: Array
    """(T, 4)."""
    joint_pos: Array
    """(T, J)."""
    fps: float | None = None
    """None if the file does not say."""
    joint_names: tuple[str, ...] | None = None
    joint_vel: Array | None = None
    """(T, J)."""
    body_names: tuple[str, ...] | None = None
    body_pos: Array | None = None
    """(T, B, 3) world."""
    local_body_pos: Array | None = None
    """(T, B, 3) seen from the root link, where the file stores bodies so; body_pos is None then."""
    body_quat: Array | None = None
    """(T, B, 4) world."""
    body_lin_vel: Array | None = None
    """(T, B, 3) world."""
    body_ang_vel: Array | None = None
    """(T, B, 3) world."""
    action: Array | None = None
    """(T, J) raw policy output, where the file is a recorded run."""
    contact_mask: Array | None = None
    """(T, 2) 1 where the left and the right foot stand."""
    joint_axes: Array | None = None
    """(J, 3) each joint's unit axis where the file shows it, zeros for joints that never move."""
    declared: Declared = field(default_factory=Declared)
    notes: tuple[str, ...] = ()
    """What the reader left out or found odd, for the user."""


@dataclass(frozen=True)
class HumanClip:
    """T frames of a person on the 24 SMPL joints."""

    path: Path
    name: str
    format: str
    sha256: str
    joint_rotations: Array
    """(T, 24, 3) rad, rotation vectors of each joint against its parent, row 0 against the world (or camera)."""
    root_translation: Array
    """(T, 3)."""
    fps: float | None = None
    betas: Array | None = None
    """(n,) shape coefficients; per-frame ones are averaged with a note."""
    gender: str | None = None
    skeleton: Array | None = None
    """(24, 3) rest offsets, where the file has bones of its own (BVH)."""
    frame_index: Array | None = None
    """(T,) number of each frame in its video, where frames may be missing."""
    root_point: RootPoint = "pelvis"
    body_model: BodyModel | None = None
    """The model that `betas` belong to."""
    declared: Declared = field(default_factory=Declared)
    notes: tuple[str, ...] = ()


Clip = RobotClip | HumanClip
