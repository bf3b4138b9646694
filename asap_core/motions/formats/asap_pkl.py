"""Reader of the motion pkl that ASAP, PBHC and their successors publish (joblib; root quaternions xyzw on disk).

The file is unpickled with an allow-list of numpy and plain containers; nothing else in it is ever called.
"""

from __future__ import annotations

import io
import math
import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import Source, check_array, check_fps
from asap_core.rotations import Array

TOOL = "asap reader asap_pkl 1"
_FIELDS = ("root_trans_offset", "root_rot", "dof", "fps")
_ALLOWED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("collections", "OrderedDict"),
}
_MAX_BYTES = 1 << 30


class _ArrayWrapper:
    """Stands for joblib's `NumpyArrayWrapper`: its attributes say how the bytes after it make an array."""

    shape: tuple[int, ...]
    order: str
    dtype: np.dtype[Any]
    numpy_array_alignment_bytes: int | None = None

    def read(self, stream: Any) -> Array:
        """The array that follows in the stream."""
        dtype = np.dtype(self.dtype)
        if dtype.hasobject:
            raise pickle.UnpicklingError("an array of Python objects")
        if self.numpy_array_alignment_bytes:
            stream.read(stream.read(1)[0])
        size = math.prod(self.shape) * dtype.itemsize
        data = stream.read(size)
        if len(data) != size:
            raise EOFError(f"an array ends after {len(data)} of {size} bytes")
        return np.frombuffer(data, dtype=dtype).reshape(self.shape, order="F" if self.order == "F" else "C").copy()


class _Unpickler(pickle._Unpickler):
    """Python's own unpickler (it lets `load_build` be extended, as joblib does) with an allow-list of globals."""

    dispatch = pickle._Unpickler.dispatch.copy()

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self._stream = stream

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("joblib.numpy_pickle", "NumpyArrayWrapper"):
            return _ArrayWrapper
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is refused; only numpy arrays and plain containers are read")
        return super().find_class(module, name)

    def load_build(self) -> None:
        super().load_build()  # type: ignore[misc]
        if isinstance(self.stack[-1], _ArrayWrapper):  # type: ignore[attr-defined]
            self.stack.append(self.stack.pop().read(self._stream))  # type: ignore[attr-defined]

    dispatch[pickle.BUILD[0]] = load_build  # type: ignore[assignment]


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
    content = _load(path)
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


def _load(path: Path) -> Any:
    if not path.is_file():
        raise InputFileError(path, "missing")
    data = path.read_bytes()
    try:
        if data[:1] == b"\x78":
            data = zlib.decompressobj().decompress(data, _MAX_BYTES)
        return _Unpickler(io.BytesIO(data)).load()
    except Exception as error:  # a hostile or cut pickle can raise nearly anything
        raise InputFileError(path, f"not a readable motion pickle: {error or type(error).__name__}") from None


def _numbers(path: Path, field: str, value: Any) -> Array:
    values = np.asarray(value)
    if values.dtype.kind not in "fiu" or values.size == 0:
        raise InputFileError(path, f"{field}: found {type(value).__name__} of type {values.dtype}, expected numbers")
    return values.astype(np.float64)
