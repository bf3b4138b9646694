"""HoloMotion's H5 shards: `ref_root_pos`, `ref_root_rot` xyzw and `ref_dof_pos` of clips one after another (E13).

`clips/start`, `clips/length` and `clips/metadata_json` say where each lies; without them the file is one clip.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.motions.formats.checks import checked
from asap_core.motions.formats.clip import RobotClip
from asap_core.motions.formats.fields import listed, numbers
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.formats.holomotion import declared, metadata_of, name_of, rate_of
from asap_core.pickle_stand_ins import MAX_BYTES
from asap_core.rotations import Array

_MAGIC = b"\x89HDF\r\n\x1a\n"
_NAMES = {"root_pos": "ref_root_pos", "root_quat": "ref_root_rot", "joint_pos": "ref_dof_pos"}
_MOST_CLIPS = 100_000


def sniff(path: Path) -> Match | None:
    """Looks at the first bytes for HDF5 and then for the names of the arrays."""
    try:
        data = b"" if path.is_dir() else path.open("rb").read(1 << 22)
    except OSError:
        return None
    if not data.startswith(_MAGIC) or not all(name.encode() in data for name in _NAMES.values()):
        return None
    return Match(0.95, "an HDF5 file with ref_root_pos, ref_root_rot and ref_dof_pos")


def read(path: Path) -> list[RobotClip]:
    """All clips.

    Raises:
        InputFileError: h5py is absent, or the file is missing, truncated, of another layout, or with a NaN.
    """
    arrays, starts, lengths, metadata = _load(path)
    frames, digest = len(arrays["joint_pos"]), sha256_file(path)
    clips = []
    for index, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        where = f"clip {index}: " if len(starts) > 1 else ""
        if not 0 <= start <= start + length <= frames:
            raise InputFileError(path, f"{where}found frames {start} to {start + length}, expected at most {frames}")
        known = metadata_of(metadata[index] if index < len(metadata) else None)
        clip = RobotClip(
            path=path,
            name=name_of(known, f"{path.stem}_{index}" if len(starts) > 1 else path.stem),
            format=FORMAT.id,
            sha256=digest,
            fps=rate_of(known),
            declared=declared(arrays["joint_pos"].shape[-1]),
            **{key: values[start : start + length] for key, values in arrays.items()},
        )
        clips.append(checked(clip, _NAMES, where))
    return clips


def _load(path: Path) -> tuple[dict[str, Any], list[int], list[int], list[str]]:
    """The arrays by the clip's attributes, starts and lengths of the clips, and their metadata."""
    try:
        import h5py
    except ImportError:
        raise InputFileError(path, "an HDF5 file needs h5py: pip install 'asap[robot]'") from None
    if not path.is_file():
        raise InputFileError(path, "a folder, expected a file" if path.is_dir() else "missing")
    try:
        with h5py.File(path, "r") as file:
            arrays = {key: _array(path, file, name) for key, name in _NAMES.items()}
            starts, lengths, metadata = [0], [len(arrays["joint_pos"])], _texts(file, "metadata")
            if "clips/start" in file and "clips/length" in file:
                starts = [int(n) for n in _array(path, file, "clips/start").reshape(-1)]
                lengths = [int(n) for n in _array(path, file, "clips/length").reshape(-1)]
                metadata = _texts(file, "clips/metadata_json")
    except InputFileError:
        raise
    except Exception as error:  # a damaged file can raise nearly anything
        raise InputFileError(path, f"not a readable HDF5 file: {error}") from None
    if len(starts) != len(lengths) or not 0 < len(starts) <= _MOST_CLIPS:
        raise InputFileError(path, f"clips: found {len(starts)} starts and {len(lengths)} lengths")
    return arrays, starts, lengths, metadata


def _array(path: Path, file: Any, name: str) -> Array:
    if name not in file:
        raise InputFileError(path, f"{name}: missing; found {listed(file)}")
    if file[name].size * file[name].dtype.itemsize > MAX_BYTES or not file[name].ndim:
        raise InputFileError(path, f"{name}: found shape {file[name].shape}, expected an array of at most 1 GiB")
    return numbers(path, name, np.asarray(file[name]))


def _texts(file: Any, name: str) -> list[str]:
    if name not in file or file[name].size > _MOST_CLIPS:
        return []
    items = np.asarray(file[name]).reshape(-1).tolist()
    return [item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item) for item in items]


FORMAT = Format("holomotion_h5", "HoloMotion H5", "robot", (".h5", ".hdf5"), sniff, read)
