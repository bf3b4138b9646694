"""From a person as a foreign file has them to a `HumanMotion`: z up, metres, the pelvis as root, a known rate."""

from __future__ import annotations

import logging
from typing import Literal

import numpy as np

from asap_core.errors import InputFileError
from asap_core.motions.doctor import human_evidence
from asap_core.motions.doctor.human_evidence import TILT_MOST, UP_LEAST, UP_MARGIN, UpFigures
from asap_core.motions.formats.clip import HumanClip, UpAxis
from asap_core.motions.frame_gaps import gaps
from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import INDEX, PELVIS_REST, REST_TO_WORLD, body_offsets
from asap_core.motions.smpl_shape import SmplModel
from asap_core.motions.tables import Source
from asap_core.rotations import Array, quat_to_matrix, rotvec_to_quat

LengthUnit = Literal["m", "cm", "mm"]
_METRES: dict[str, float] = {"m": 1.0, "cm": 0.01, "mm": 0.001}
_TO_Z_UP: dict[str, Array] = {
    "x": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "y": REST_TO_WORLD,
    "z": np.eye(3),
}
"""Rotation of a world with that axis up into one with z up."""
_AXES: dict[str, UpAxis] = {"x": "x", "y": "y", "z": "z"}
_CAMERA = (
    "the person stands along {up} ({score:.2f}), as in a camera's frame; use the pose in the world (GVHMR: "
    "smpl_params_global, WHAM: pose_world, TRAM: with camera.npy), or settle it with --up-axis"
)
_log = logging.getLogger(__name__)


def to_human_motion(
    clip: HumanClip,
    fps: float | None = None,
    up_axis: UpAxis | None = None,
    length_unit: LengthUnit | None = None,
    body: SmplModel | None = None,
) -> HumanMotion:
    """The clip in the project's world.

    Args:
        fps: the rate of the clip's frames, where the file has none or a wrong one; nothing is resampled.
        up_axis: the file's up axis; measured if absent, and the format's own where the clip does not tell.
        length_unit: of the translation and the clip's own bones; the format's, or measured, if absent.
        body: the person's body from the clip's betas; the free body if absent, and never for a clip with own bones.

    Raises:
        InputFileError: no rate, gaps between frames, a camera's frame, an up axis or unit that nothing tells, or values
            that no `HumanMotion` may have.
    """
    _refuse_gaps(clip)
    rate = clip.fps if fps is None else fps
    if rate is None:
        raise InputFileError(clip.path, "fps: the file has none; give the rate of its video with --fps")
    up = up_axis or decide_up_axis(clip)
    scale = _METRES[length_unit or clip.declared.length_unit or _measured_unit(clip)]
    offsets, rest = _body(clip, up, body)
    offsets = offsets * (scale if clip.skeleton is not None else 1.0)
    turn = _TO_Z_UP[up]
    rotations = clip.joint_rotations.copy()
    rotations[:, 0] = _turned(turn, rotations[:, 0])
    pelvis = _pelvis(clip, scale, offsets, rest)
    source = Source(clip.path.as_posix(), clip.sha256, f"asap reader {clip.format} 1")
    try:
        return HumanMotion(clip.name, rate, rotations, pelvis @ turn.T, offsets, source)
    except InputFileError as error:
        raise InputFileError(clip.path, error.reason) from None


def decide_up_axis(clip: HumanClip) -> UpAxis:
    """The axis that the clip's standing body shows, or the format's where it shows none.

    A body that lies all the time looks like one that stands along another axis. So the format's word gives way only to
    y or z, the two that files have, and only where the body stands straight along it.

    Raises:
        InputFileError: the frame is a camera's, or neither tells.
    """
    if clip.declared.frame == "camera":
        raise InputFileError(clip.path, "frame: the camera's; use the pose in the world")
    figures, declared = human_evidence.up_axis(clip), clip.declared.up_axis
    score, clear = figures.scores[figures.best], _is_clear(figures)
    if clear and figures.best == "-y":
        raise InputFileError(clip.path, f"frame: {_CAMERA.format(up=figures.best, score=score)}")
    measured = _AXES.get(figures.best) if clear else None
    if declared is None:
        if measured is None:
            found = f"{figures.best} {score:.2f}, ahead by {figures.margin:.2f}"
            raise InputFileError(clip.path, f"up axis: the body does not show it ({found}); give it with --up-axis")
        return measured
    if measured in (None, "x", declared) or score < np.cos(np.radians(TILT_MOST)):
        return declared
    _log.warning("%s: %s is up (%.2f), not %s: turned", clip.path, measured, score, declared)
    return measured


def _is_clear(figures: UpFigures) -> bool:
    return figures.scores[figures.best] >= UP_LEAST and figures.margin >= UP_MARGIN


def _refuse_gaps(clip: HumanClip) -> None:
    missing = gaps(clip)
    if missing:
        first, last = missing[0]
        found = f"{len(missing)} gaps, the first of frames {first} to {last}"
        raise InputFileError(clip.path, f"frame_index: found {found}; cut the clip there, or bridge them with --bridge")


def _measured_unit(clip: HumanClip) -> str:
    best = human_evidence.units(clip).best
    if best is None:
        raise InputFileError(clip.path, "length unit: the bones are no person's in m, cm or mm; give it with --unit")
    return best


def _body(clip: HumanClip, up: UpAxis, body: SmplModel | None) -> tuple[Array, Array]:
    """Skeleton (24, 3) in the clip's unit or m, and rest pelvis (3,) from the model's origin, m.

    Without a body the pelvis of z-up files is taken to be at their origin: its offset is horizontal there but for 3 cm.
    """
    if clip.skeleton is not None:
        return clip.skeleton, np.zeros(3)
    if body is not None:
        joints = body.rest_joints(clip.betas)
        return body.offsets(clip.betas), joints[0]
    rest = np.zeros(3) if up == "z" else np.array(PELVIS_REST[clip.body_model or "smpl"])
    return body_offsets(), rest


def _pelvis(clip: HumanClip, scale: float, offsets: Array, rest: Array) -> Array:
    """Pelvis joint (T, 3) in the file's world, m."""
    root = clip.root_translation * scale
    if clip.root_point == "model_origin":
        return root + rest
    if clip.root_point == "hip_centre":
        middle = offsets[[INDEX["L_Hip"], INDEX["R_Hip"]]].mean(axis=0)
        return root - quat_to_matrix(rotvec_to_quat(clip.joint_rotations[:, 0])) @ middle
    return root


def _turned(turn: Array, rotvec: Array) -> Array:
    """Rotation vectors (T, 3) of `turn` (3, 3) after those of `rotvec` (T, 3)."""
    from scipy.spatial.transform import Rotation

    if np.array_equal(turn, np.eye(3)):
        return rotvec
    return (Rotation.from_matrix(turn) * Rotation.from_rotvec(rotvec)).as_rotvec()
