"""MimicKit's pkl: `loop_mode`, `fps` and `frames` (T, 3 + 3 + J) of root position, exponential map and joints (E14)."""

from __future__ import annotations

from pathlib import Path

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.motions.formats.checks import checked
from asap_core.motions.formats.clip import Declared, RobotClip
from asap_core.motions.formats.fields import one_number, require_mapping, take
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.tables import check_array
from asap_core.restricted_pickle import load_restricted, peek
from asap_core.rotations import rotvec_to_quat

_ROOT_WIDTH = 6
_LOOPS = "loop_mode: the clip is a loop by the file; it is read once through"


def sniff(path: Path) -> Match | None:
    """Looks for the names of the fields."""
    data = peek(path)
    found = all(name in data for name in (b"loop_mode", b"frames", b"fps"))
    return Match(0.95, "a pickle with loop_mode, fps and frames") if found else None


def read(path: Path) -> list[RobotClip]:
    """The one clip, its exponential map as a wxyz quaternion.

    Raises:
        InputFileError: missing, truncated, holding anything but numpy and containers, or another layout.
    """
    fields = require_mapping(path, "content", load_restricted(path), "loop_mode, fps, frames")
    frames = take(path, fields, "frames")
    check_array(path, "frames", frames, (None, None))
    joints = frames.shape[1] - _ROOT_WIDTH
    if joints < 1:
        raise InputFileError(path, f"frames: found {frames.shape[1]} columns, expected 6 of the root and the joints")
    order = "unitree29" if joints == 29 else None
    loops = "loop_mode" in fields and one_number(path, "loop_mode", fields["loop_mode"]) != 0
    clip = RobotClip(
        path=path,
        name=path.stem,
        format=FORMAT.id,
        sha256=sha256_file(path),
        root_pos=frames[:, :3],
        root_quat=rotvec_to_quat(frames[:, 3:_ROOT_WIDTH]),
        joint_pos=frames[:, _ROOT_WIDTH:],
        fps=one_number(path, "fps", fields["fps"]) if "fps" in fields else None,
        declared=Declared("wxyz", order, None, "z", "m", "rad", frame="world"),
        notes=(_LOOPS,) if loops else (),
    )
    return [checked(clip)]


FORMAT = Format("mimickit_pkl", "MimicKit pkl", "robot", (".pkl",), sniff, read)
