"""A motion pkl of ASAP or PBHC with `action`: clips that a simulator or a converter recorded while a policy acted.

Row k holds the state that action k led to (post-step), so the transitions are state k, action k + 1, state k + 1.
`root_rot` is xyzw; velocities are in the world frame. Rows with `terminate` = 1 already hold the state after a reset.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.restricted_pickle import load_restricted
from asap_core.rollouts.ingest.readers.assembly import Field, make_streams, unread
from asap_core.rollouts.ingest.streams import Kind, Log

FORMAT = "asap_pkl"
_FIELDS: Mapping[str, tuple[Kind, str, int | None]] = {
    "dof": ("joint_state", "joint_pos", None),
    "dof_vel": ("joint_state", "joint_vel", None),
    "action": ("joint_command", "action", None),
    "root_trans_offset": ("odometry", "pos", 3),
    "root_rot": ("odometry", "quat", 4),
    "root_lin_vel": ("odometry", "lin_vel", 3),
    "root_ang_vel": ("odometry", "ang_vel", 3),
}
_NEEDED = ("dof", "action", "root_trans_offset", "root_rot", "fps")
_DERIVED = {"pose_aa", "terminate", "motion_times"}
_DECLARED: Mapping[Kind, Mapping[str, str]] = {
    "odometry": {"quat_order": "xyzw", "up_axis": "z", "length_unit": "m", "twist_frame": "world"},
    "joint_command": {"action_timing": "post_step"},
}


def sniff(path: Path) -> bool:
    """A pickle (plain, or compressed by joblib) that names `action` where that can be seen."""
    if not path.is_file() or path.suffix.lower() not in (".pkl", ".pickle", ".joblib"):
        return False
    try:
        with open(path, "rb") as stream:
            head = stream.read(2)
            return head[:1] == b"\x78" or (head[:1] == b"\x80" and b"action" in head + stream.read(1 << 26))
    except OSError:
        return False


def read(path: Path) -> Log:
    """Every clip that holds `action`, one after the other; scalar `episode` counts them.

    Raises:
        InputFileError: not readable, no clip with `action`, or arrays of other shapes.
    """
    content = load_restricted(path)
    if not isinstance(content, dict) or not all(isinstance(clip, dict) for clip in content.values()):
        raise InputFileError(path, f"found another layout, expected {{name: {{{', '.join(_NEEDED)}}}}}")
    clips = {str(name): clip for name, clip in content.items() if "action" in clip}
    if not clips:
        raise InputFileError(path, "no clip has `action`: this is a motion, not a recorded run")
    parts = [_clip(path, name, clip) for name, clip in clips.items()]
    shared = [key for key in _FIELDS if all(key in part for part in parts)]
    lengths = [len(part["dof"]) for part in parts]
    widths = {key: {part[key].shape[1] for part in parts} for key in shared}
    for key, found in widths.items():
        if len(found) > 1:
            raise InputFileError(path, f"field {key}: clips with {sorted(found)} columns in one file")
    fields = [_field(key, np.concatenate([part[key] for part in parts])) for key in shared]
    scalars = {"episode": np.repeat(np.arange(len(parts)), lengths)}
    if all("terminate" in part for part in parts):
        scalars["valid"] = np.concatenate([_valid(part["terminate"]) for part in parts])
    time = np.concatenate([part["time"] for part in parts])
    seen = {str(key) for clip in clips.values() for key in clip}
    skipped = [name for name in map(str, content) if name not in clips]
    return Log(
        path,
        FORMAT,
        sha256_file(path),
        make_streams(path.stem, fields, scalars, source_time=time, declared={"time_unit": "s"}),
        unread("keys", sorted(seen - set(shared) - _DERIVED - {"fps"}))
        + ((f"clips without action left out: {', '.join(skipped)}",) if skipped else ()),
        {"episodes": list(clips), "fps": [float(part["fps"][0]) for part in parts]},
    )


def _clip(path: Path, name: str, clip: Mapping[Any, Any]) -> dict[str, NDArray[np.float64]]:
    """The clip's arrays, checked, with its time from 0."""
    missing = [key for key in _NEEDED if key not in clip]
    if missing:
        raise InputFileError(path, f"{name}: missing {', '.join(missing)}; found {', '.join(map(str, clip))}")
    out = {key: _numbers(path, f"{name}.{key}", clip[key]) for key in (*_FIELDS, "fps", "terminate") if key in clip}
    out["fps"] = out["fps"].reshape(-1)
    if out["fps"].size != 1 or not 1 <= out["fps"][0] <= 2000:
        raise InputFileError(path, f"{name}.fps: found {out['fps'][:3].tolist()}, expected one rate from 1 to 2000 Hz")
    frames = len(out["dof"]) if out["dof"].ndim else 0
    for key in _FIELDS.keys() & out.keys():
        width = _FIELDS[key][2]
        if not out[key].size or out[key].shape[:1] != (frames,):
            raise InputFileError(path, f"{name}.{key}: found shape {out[key].shape}, expected {frames} rows")
        out[key] = out[key].reshape(frames, -1)
        if width is not None and out[key].shape[1] != width:
            raise InputFileError(path, f"{name}.{key}: found {out[key].shape[1]} columns, expected {width}")
    if out["action"].shape != out["dof"].shape:
        raise InputFileError(path, f"{name}.action: found shape {out['action'].shape}, expected {out['dof'].shape}")
    if "terminate" in out:
        out["terminate"] = out["terminate"].reshape(-1)
        if len(out["terminate"]) != frames:
            raise InputFileError(path, f"{name}.terminate: found {len(out['terminate'])} values, expected {frames}")
    return out | {"time": np.arange(frames) / out["fps"][0]}


def _valid(terminate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whether a row's state leads to the next row's: not into one after a reset, and not out of the clip."""
    return np.append(terminate[1:] == 0, False).astype(np.float64)


def _numbers(path: Path, field: str, value: Any) -> NDArray[np.float64]:
    try:
        values = np.asarray(value)
    except ValueError:
        raise InputFileError(path, f"{field}: found rows of unequal length, expected numbers") from None
    if values.dtype.kind not in "fiub":
        raise InputFileError(path, f"{field}: found {type(value).__name__} of type {values.dtype}, expected numbers")
    return values.astype(np.float64)


def _field(key: str, values: NDArray[np.float64]) -> Field:
    kind, name, _ = _FIELDS[key]
    return Field(kind, name, values, declared=_DECLARED.get(kind, {}))
