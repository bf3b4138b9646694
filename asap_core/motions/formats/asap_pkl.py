"""Reader of the motion pkl that ASAP, PBHC and their successors publish (joblib; root quaternions xyzw on disk)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import Source, check_array, check_fps
from asap_core.restricted_pickle import load_restricted
from asap_core.rotations import Array

TOOL = "asap reader asap_pkl 1"
_FIELDS = ("root_trans_offset", "root_rot", "dof", "fps")


def read_asap_pkl(path: Path | str, robot: str, joint_names: tuple[str, ...]) -> RobotMotion:
    """Read the one clip of a published pkl.

    Args:
        path: the joblib file, `{key: {root_trans_offset, root_rot, dof, fps, …}}`.
        robot: name of the robot profile whose joints `dof` holds.
        joint_names: the profile's joints in the file's order (the file stores none; it is the MJCF order).

    Raises:
        InputFileError: missing, truncated, holding anything but numpy and containers, or another layout.
    """
    path = Path(path)
    content = load_restricted(path)
    if not isinstance(content, dict) or len(content) != 1 or not isinstance(next(iter(content.values())), dict):
        raise InputFileError(path, f"found another layout, expected one clip as {{name: {{{', '.join(_FIELDS)}}}}}")
    key, clip = next(iter(content.items()))
    missing = [name for name in _FIELDS if name not in clip]
    if missing:
        raise InputFileError(path, f"{key}: missing {', '.join(missing)}; found {', '.join(map(str, clip))}")
    arrays = {name: _numbers(path, name, clip[name]) for name in _FIELDS}
    dof = arrays["dof"].reshape(len(arrays["dof"]), -1)
    check_array(path, "dof", dof, (None, len(joint_names)))
    check_array(path, "root_trans_offset", arrays["root_trans_offset"], (len(dof), 3))
    check_array(path, "root_rot", arrays["root_rot"], (len(dof), 4))
    fps = check_fps(path, "fps", float(arrays["fps"].reshape(-1)[0]))
    source = Source(path.as_posix(), sha256_file(path), TOOL)
    try:
        return RobotMotion(
            name=Path(str(key)).name,
            robot=robot,
            fps=fps,
            root_pos=arrays["root_trans_offset"],
            root_quat=arrays["root_rot"][:, [3, 0, 1, 2]],
            joint_names=joint_names,
            joint_pos=dof,
            source=source,
        )
    except InputFileError as error:
        raise InputFileError(path, error.reason) from None


def _numbers(path: Path, field: str, value: Any) -> Array:
    values = np.asarray(value)
    if values.dtype.kind not in "fiu" or values.size == 0:
        raise InputFileError(path, f"{field}: found {type(value).__name__} of type {values.dtype}, expected numbers")
    return values.astype(np.float64)
