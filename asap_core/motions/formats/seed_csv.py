"""BONES-SEED CSV: header `Frame, root_translateX…Z, root_rotateX…Z, <joint>_dof …`, cm and degrees, 120 Hz (E8).

The root's angles turn about the fixed axes x, y and z in that order, as ProtoMotions reads them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.motions.formats.checks import checked
from asap_core.motions.formats.clip import Declared, RobotClip
from asap_core.motions.formats.csv_numbers import first_cells, read_csv
from asap_core.motions.formats.fields import listed
from asap_core.motions.formats.format import Format, Match
from asap_core.rotations import Array

_ROOT = tuple(f"root_{kind}{axis}" for kind in ("translate", "rotate") for axis in "XYZ")
_FPS = 120.0
_DECLARED = Declared("wxyz", up_axis="z", length_unit="cm", angle_unit="deg", frame="world")


def sniff(path: Path) -> Match | None:
    """Looks at the header."""
    if not set(_ROOT) <= set(first_cells(path)):
        return None
    return Match(0.98, "a header with root_translateX and root_rotateX")


def read(path: Path) -> list[RobotClip]:
    """The one clip, lengths in cm and joint angles in degrees as in the file.

    Raises:
        InputFileError: missing, no table of numbers, another header, frames that are left out, or a NaN.
    """
    names, values = read_csv(path, header=True)
    missing = [name for name in _ROOT if name not in names]
    joints = [name for name in names if name not in _ROOT and name != "Frame"]
    if missing or not joints:
        raise InputFileError(path, f"columns: missing {', '.join(missing) or 'joints'}; found {listed(names)}")
    if "Frame" in names:
        _check_frames(path, values[:, names.index("Frame")])
    root = values[:, [names.index(name) for name in _ROOT]]
    clip = RobotClip(
        path=path,
        name=path.stem,
        format=FORMAT.id,
        sha256=sha256_file(path),
        root_pos=root[:, :3],
        root_quat=_quaternions(root[:, 3:]),
        joint_pos=values[:, [names.index(name) for name in joints]],
        fps=_FPS,
        joint_names=tuple(name.removesuffix("_dof") for name in joints),
        declared=_DECLARED,
        notes=("120 frames a second by the format's definition; the file does not say",),
    )
    return [checked(clip)]


def _check_frames(path: Path, frames: Array) -> None:
    steps = np.diff(frames)
    if not (steps == 1).all():
        at = int((steps != 1).argmax())
        raise InputFileError(path, f"Frame: found {frames[at + 1]:g} after {frames[at]:g}, expected every frame")


def _quaternions(degrees: Array) -> Array:
    """(T, 4) wxyz of angles (T, 3) about the fixed axes x, y, z in turn."""
    from scipy.spatial.transform import Rotation

    finite = np.where(np.isfinite(degrees), degrees, 0.0)
    quat = Rotation.from_euler("xyz", finite, degrees=True).as_quat()[:, [3, 0, 1, 2]]
    return np.where(np.isfinite(degrees).all(axis=1, keepdims=True), quat, np.nan)


FORMAT = Format("seed_csv", "BONES-SEED G1 CSV", "robot", (".csv",), sniff, read)
