"""Reader of TRAM's `hps_track_<k>.npy` with the `camera.npy` of the same run.

The person is in each frame's camera: a point x goes to the world as R x + T with the frame's `world_cam_R` and
`world_cam_T`, in a y-up world (TRAM's `est_gravity.py` turns the gravity frame by diag(1, -1, -1)). For SMPL's own
parameters that means `trans_w = R (J0 + trans) + T - J0` with the rest pelvis J0; here the pelvis R (J0 + trans) + T is
stored itself, with J0 of the neutral mean shape. Chunks under 16 frames are dropped by TRAM, so `frame` has gaps.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.motions.formats.clip import Declared, HumanClip
from asap_core.motions.formats.fields import numbers, require_mapping, take
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.formats.human_fields import check_frame_index, check_frames, holds_words, mean_betas
from asap_core.motions.skeleton import NUM_JOINTS, PELVIS_REST
from asap_core.motions.tables import check_array
from asap_core.restricted_pickle import load_restricted
from asap_core.rotations import Array

CAMERA = "camera.npy"
_KEYS = "pred_rotmat, pred_trans, pred_shape, frame"
_DECLARED = Declared(up_axis="y", length_unit="m", angle_unit="rad", frame="world")
_ORTHOGONAL = 1e-2
"""Largest element of RᵀR - 1 that a rotation matrix of 32-bit network output may have."""


def read(path: Path) -> list[HumanClip]:
    """The one person of a track file, in the world.

    Raises:
        InputFileError: missing, truncated, holding anything but numbers, another layout, a frame that the camera lacks,
            or no `camera.npy` beside it or one folder up.
    """
    track = require_mapping(path, "file", load_restricted(path), _KEYS)
    turns = _rotations(path, "pred_rotmat", take(path, track, "pred_rotmat"), (None, NUM_JOINTS, 3, 3))
    trans = take(path, track, "pred_trans")
    trans = trans[:, 0] if trans.ndim == 3 and trans.shape[1] == 1 else trans
    check_frames(path, "pred_trans", trans, len(turns), 3)
    frame = check_frame_index(path, "frame", take(path, track, "frame").reshape(-1), len(turns))
    camera = _find_camera(path)
    camera_turn, camera_place = _world_camera(path, camera, frame)
    given = track.get("pred_shape")
    betas, notes = mean_betas(path, "pred_shape", None if given is None else numbers(path, "pred_shape", given))
    pelvis = np.einsum("tij,tj->ti", camera_turn, trans + PELVIS_REST["smpl"]) + camera_place
    turns[:, 0] = camera_turn @ turns[:, 0]
    clip = HumanClip(
        path=path,
        name=path.stem,
        format="tram",
        sha256=sha256_file(path),
        joint_rotations=_to_rotvec(turns),
        root_translation=pelvis,
        betas=betas,
        frame_index=frame,
        root_point="pelvis",
        body_model="smpl",
        declared=_DECLARED,
        notes=(*notes, f"put into the world by {camera.name}; the file stores no rate, it is the video's"),
    )
    return [clip]


def _find_camera(path: Path) -> Path:
    """`camera.npy` beside the track, or one folder up, where TRAM writes it."""
    for folder in (path.parent, path.parent.parent):
        if (folder / CAMERA).is_file():
            return folder / CAMERA
    reason = f"{CAMERA}: missing beside it and in the folder above; the track is in the camera's frame"
    raise InputFileError(path, f"{reason}, and {CAMERA} of the same TRAM run puts it into the world")


def _world_camera(path: Path, camera: Path, frame: Array) -> tuple[Array, Array]:
    """Rotations (T, 3, 3) and positions (T, 3) of the camera in the world at the track's frames."""
    fields: Mapping[Any, Any] = require_mapping(camera, "file", load_restricted(camera), "world_cam_R, world_cam_T")
    if "world_cam_R" not in fields and "pred_cam_R" in fields:
        found = "found pred_cam_R and pred_cam_T, in the first frame's camera, of a TRAM that does not estimate gravity"
        raise InputFileError(camera, f"world_cam_R: missing; {found}: run estimate_camera.py of a newer TRAM")
    turns = _rotations(camera, "world_cam_R", take(camera, fields, "world_cam_R"), (None, 3, 3))
    place = take(camera, fields, "world_cam_T")
    check_array(camera, "world_cam_T", place, (None, 3))
    if len(place) != len(turns):
        raise InputFileError(camera, f"world_cam_T: found {len(place)} frames, expected {len(turns)}")
    index = frame.astype(int)
    if (index != frame).any() or index.min() < 0 or index.max() >= len(turns):
        raise InputFileError(path, f"frame: found up to {frame.max():g}, expected one of the camera's {len(turns)}")
    return turns[index], place[index]


def _rotations(path: Path, field: str, values: Array, shape: tuple[int | None, ...]) -> Array:
    check_array(path, field, values, shape)
    error = np.abs(np.swapaxes(values, -1, -2) @ values - np.eye(3)).max(initial=0.0)
    if error > _ORTHOGONAL or (np.linalg.det(values) < 0).any():
        raise InputFileError(path, f"{field}: found matrices that are no rotations (RᵀR differs from 1 by {error:.2g})")
    return values


def _to_rotvec(matrices: Array) -> Array:
    """Rotation vectors (..., 3) of rotation matrices (..., 3, 3)."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(matrices.reshape(-1, 3, 3)).as_rotvec().reshape(*matrices.shape[:-2], 3)


def sniff(path: Path) -> Match | None:
    """By the names of its fields."""
    if holds_words(path, (b"pred_rotmat", b"pred_trans"), start=b"\x93NUMPY"):
        return Match(0.95, "npy with a dict of pred_rotmat and pred_trans")
    return None


FORMAT = Format("tram", "TRAM hps_track_k.npy with camera.npy", "human", (".npy",), sniff, read)
