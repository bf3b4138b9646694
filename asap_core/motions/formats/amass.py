"""Reader and writer of the AMASS npz layout (SMPL, SMPL+H, SMPL-X) as published clips and video estimators use it.

World z-up, metres, axis-angle. `trans` moves the pelvis; the constant offset of the shape's pelvis from its origin is
horizontal but for 3 cm and is left to ground alignment.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import atomic_file, sha256_file
from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import NUM_JOINTS, body_offsets
from asap_core.motions.tables import Source, check_array, check_fps
from asap_core.rotations import Array

TOOL = "asap reader amass 1"
_BODY_WIDTH = 66
"""Root and 21 body joints; what follows are hands, jaw and eyes in SMPL+H and SMPL-X."""
_SMPL_WIDTH = 72
_WIDTHS = (66, 72, 156, 165)
_RATE_KEYS = ("mocap_framerate", "mocap_frame_rate")
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def read_amass(path: Path | str, name: str | None = None, source_path: str | None = None) -> HumanMotion:
    """Read a clip; only the fields that are needed are opened, and never with pickle.

    Args:
        path: npz with `poses` (or `root_orient`, `pose_body`), `trans`, `mocap_framerate` (or `mocap_frame_rate`).
        name: name of the motion; the file's stem if absent.
        source_path: what the record's source shall name; `path` if absent.

    Raises:
        InputFileError: missing, truncated, another layout, a wrong width, a NaN or no frame rate.
    """
    path = Path(path)
    if not path.is_file():
        raise InputFileError(path, "missing")
    try:
        archive = np.load(path, allow_pickle=False)
    except Exception as error:  # a damaged archive can raise nearly anything
        text = "neither npz nor npy" if "pickle" in str(error) else str(error)
        raise InputFileError(path, f"not a whole npz file: {text}") from None
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InputFileError(path, "found a single array, expected an npz with poses, trans and mocap_framerate")
    with archive:
        rotations = _read_poses(path, archive)
        trans = _read_field(path, archive, "trans")
        fps = _read_rate(path, archive)
    check_array(path, "trans", trans, (None, 3))
    if len(trans) != len(rotations):
        raise InputFileError(path, f"trans: found {len(trans)} frames, expected {len(rotations)} as in the poses")
    source = Source(source_path or path.as_posix(), sha256_file(path), TOOL)
    try:
        return HumanMotion(name or path.stem, fps, rotations, trans, body_offsets(), source)
    except InputFileError as error:
        raise InputFileError(path, error.reason) from None


def write_amass(path: Path | str, poses: Array, trans: Array, fps: float) -> None:
    """Write poses (T, 72) and trans (T, 3) in the AMASS layout, atomically; equal arrays give equal bytes."""
    arrays = {
        "poses": poses.astype(np.float32),
        "trans": trans.astype(np.float32),
        "mocap_framerate": np.array(float(fps)),
    }
    with atomic_file(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for key, values in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, values, allow_pickle=False)
            info = zipfile.ZipInfo(f"{key}.npy", _ZIP_DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, buffer.getvalue())


def _read_field(path: Path, archive: Any, key: str) -> Array:
    if key not in archive.files:
        raise InputFileError(path, f"{key}: missing; found {', '.join(archive.files) or 'no field'}")
    try:
        values = archive[key]
    except Exception as error:
        raise InputFileError(path, f"{key}: cannot be read: {error}") from None
    if not isinstance(values, np.ndarray):
        raise InputFileError(path, f"{key}: found bytes, expected an array (npy)")
    if values.dtype.kind not in "fiu":
        raise InputFileError(path, f"{key}: found type {values.dtype}, expected numbers")
    return np.asarray(values, dtype=np.float64)


def _read_poses(path: Path, archive: Any) -> Array:
    """(T, 24, 3): SMPL keeps its two hand joints, the finger joints of the larger models are left out."""
    if "poses" in archive.files:
        poses = _read_field(path, archive, "poses")
        if poses.ndim != 2 or poses.shape[1] not in _WIDTHS:
            widths = ", ".join(map(str, _WIDTHS))
            raise InputFileError(path, f"poses: found shape {poses.shape}, expected (T, one of {widths})")
    elif "root_orient" in archive.files:
        root, body = _read_field(path, archive, "root_orient"), _read_field(path, archive, "pose_body")
        check_array(path, "root_orient", root, (None, 3))
        check_array(path, "pose_body", body, (len(root), _BODY_WIDTH - 3))
        poses = np.concatenate([root, body], axis=1)
    else:
        found = ", ".join(archive.files) or "no field"
        raise InputFileError(path, f"poses (or root_orient and pose_body): missing; found {found}")
    check_array(path, "poses", poses, (None, poses.shape[1]))
    kept = _SMPL_WIDTH if poses.shape[1] == _SMPL_WIDTH else _BODY_WIDTH
    rotations = np.zeros((len(poses), NUM_JOINTS * 3))
    rotations[:, :kept] = poses[:, :kept]
    return rotations.reshape(-1, NUM_JOINTS, 3)


def _read_rate(path: Path, archive: Any) -> float:
    for key in _RATE_KEYS:
        if key in archive.files:
            values = _read_field(path, archive, key)
            if values.size != 1:
                raise InputFileError(path, f"{key}: found shape {values.shape}, expected one number")
            return check_fps(path, key, float(values.reshape(-1)[0]))
    found = ", ".join(archive.files)
    raise InputFileError(path, f"frame rate: missing; found {found}, expected {' or '.join(_RATE_KEYS)}")
