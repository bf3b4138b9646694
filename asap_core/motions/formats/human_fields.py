"""What the readers of human motions share beyond `fields`: pose widths, shapes, and cheap looks into a file."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.motions.skeleton import NUM_JOINTS
from asap_core.motions.tables import check_array
from asap_core.rotations import Array

BODY_WIDTH = 66
"""Root and 21 body joints, three numbers each; what follows are hands, jaw and eyes in SMPL+H and SMPL-X."""
SMPL_WIDTH = 72
_MOST_BETAS = 400
_LOOK_BYTES = 1 << 24
"""How far into a file `holds_words` looks."""


def mean_betas(path: Path, field: str, values: Array | None) -> tuple[Array | None, tuple[str, ...]]:
    """Shape coefficients (n,) of any of the layouts (n,), (1, n) and (T, n), and a note where frames differ.

    Raises:
        InputFileError: another shape, or a NaN.
    """
    if values is None:
        return None, ()
    if values.ndim == 1:
        values = values[None]
    if values.ndim != 2 or not 0 < values.shape[1] <= _MOST_BETAS or not len(values):
        raise InputFileError(path, f"{field}: found shape {values.shape}, expected (n,), (1, n) or (T, n)")
    check_array(path, field, values, (None, values.shape[1]))
    spread = float(np.ptp(values, axis=0).max())
    note = (f"{field}: one shape per frame, differing by up to {spread:.3g}; averaged",) if spread > 1e-6 else ()
    return values.mean(axis=0), note


def to_smpl_joints(poses: Array) -> Array:
    """Rotation vectors (T, 24, 3) of poses (T, ≥ 66): SMPL keeps its two hand joints, others have fingers instead."""
    kept = SMPL_WIDTH if poses.shape[1] == SMPL_WIDTH else BODY_WIDTH
    rotations = np.zeros((len(poses), NUM_JOINTS * 3))
    rotations[:, :kept] = poses[:, :kept]
    return rotations.reshape(-1, NUM_JOINTS, 3)


def check_frames(path: Path, field: str, values: Array, frames: int, width: int) -> None:
    """Refuse an array that is not (frames, width), and fewer than two frames.

    Raises:
        InputFileError: naming the field, what was found and what was expected.
    """
    check_array(path, field, values, (None, width))
    if len(values) != frames:
        raise InputFileError(path, f"{field}: found {len(values)} frames, expected {frames} as in the poses")
    if frames < 2:
        raise InputFileError(path, f"frames: found {frames}, expected at least 2")


def check_frame_index(path: Path, field: str, index: Array, frames: int) -> Array:
    """Whole numbers (T,) of a clip's frames in its video.

    Raises:
        InputFileError: another length, or not increasing whole numbers from 0.
    """
    check_array(path, field, index, (None,))
    if len(index) != frames:
        raise InputFileError(path, f"{field}: found {len(index)} numbers, expected {frames} as in the poses")
    if (np.diff(index) <= 0).any() or (index != np.round(index)).any() or index.min(initial=0.0) < 0:
        raise InputFileError(path, f"{field}: expected whole numbers that increase, the frames in their order")
    return index


def holds_words(path: Path, words: tuple[bytes, ...], start: bytes = b"") -> bool:
    """Whether a file, unpacked if it is zlib's, begins with `start` and holds all `words` in its first 16 MiB."""
    try:
        with path.open("rb") as stream:
            data = stream.read(_LOOK_BYTES)
        if data[:1] == b"\x78":
            data = zlib.decompressobj().decompress(data, _LOOK_BYTES)
    except (OSError, zlib.error):
        return False
    return data.startswith(start) and all(word in data for word in words)


def torch_pickle_head(path: Path) -> bytes:
    """The first 16 MiB of the pickle in a torch archive, to look for names in; empty for another file."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith("data.pkl")]
            if not names:
                return b""
            with archive.open(names[0]) as stream:
                return stream.read(_LOOK_BYTES)
    except Exception:  # a damaged archive can raise nearly anything
        return b""
