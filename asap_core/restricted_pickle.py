"""Reading of other people's pickles and torch files without ever calling what is in them.

Numbers, text, plain containers, numpy arrays and torch tensors (as numpy arrays) come out; everything else is refused.
Foreign globals are answered by stand-ins (`pickle_stand_ins`), never by the code that the file names.
"""

from __future__ import annotations

import io
import math
import pickle
import re
import struct
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.pickle_stand_ins import (
    MAX_BYTES,
    STAND_INS,
    Dtype,
    Foreign,
    check_size,
    from_buffer,
    make_array,
    tensor_view,
)
from asap_core.rotations import Array

_PEEK_BYTES = 1 << 26
_FOREIGN_ENUM = re.compile(r"protomotions\.[\w.]+")
_OBJECT_NPY = re.compile(rb"\x93NUMPY.{4,60}'descr': '\|O'", re.DOTALL)


def load_restricted(path: Path | str) -> Any:
    """The content of a joblib file (plain or zlib), a plain pickle or an npy file that holds a pickle.

    Returns:
        Plain containers, numbers, text and numpy arrays; torch tensors on the CPU come as numpy arrays, and an npy
        file with one object as that object.

    Raises:
        InputFileError: missing, truncated, larger than 1 GiB once unpacked, or with anything else in it.
    """
    path = Path(path)
    data = _read(path)
    try:
        if data[:1] == b"\x78":
            data = _inflate(data)
        if data[:6] == b"\x93NUMPY":
            return _load_npy(data)
        return _Unpickler(io.BytesIO(data)).load()
    except Exception as error:  # a hostile or cut pickle can raise nearly anything
        raise InputFileError(path, f"not a readable pickle: {str(error) or type(error).__name__}") from None


def load_torch(path: Path | str) -> Any:
    """The content of a `torch.save` file: containers, numbers, text, and tensors as CPU tensors.

    Enumerations that ProtoMotions stores become `EnumValue`.

    Raises:
        InputFileError: missing, truncated, larger than 1 GiB once unpacked, or with anything else in it.
    """
    import torch

    path = Path(path)
    data = _read(path)
    try:
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                check_size(sum(item.file_size for item in archive.infolist()))
            names = torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
        else:
            names = []
        stand_ins: list[Any] = [(EnumValue, name) for name in names if _FOREIGN_ENUM.fullmatch(name)]
        with torch.serialization.safe_globals(stand_ins):
            return _torch_load(data)
    except Exception as error:  # as above
        raise InputFileError(path, f"not a readable torch file: {_first_lines(error)}") from None


def _torch_load(data: bytes) -> Any:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the pickle protocol, which says nothing to a user
        return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)


def peek(path: Path | str) -> bytes:
    """The first 64 MiB of a pickle once unpacked, of a torch file its pickle: enough to look for the names of fields.

    Nothing is loaded. Empty where the file is none of these or cannot be read.
    """
    try:
        with open(path, "rb") as stream:
            head = stream.read(_PEEK_BYTES)
        if head[:1] == b"\x78":
            return zlib.decompressobj().decompress(head, _PEEK_BYTES)
        if head[:4] == b"PK\x03\x04":
            return _peek_torch(path)
        return head if head[:1] in (b"\x80", b"(", b"}", b"c") or head[:6] == b"\x93NUMPY" else b""
    except (OSError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError):
        return b""


def _peek_torch(path: Path | str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name == "data.pkl" or name.endswith("/data.pkl")]
        if not names:
            return b""
        with archive.open(names[0]) as stream:
            return stream.read(_PEEK_BYTES)


class EnumValue:
    """Stands for a member of a foreign enumeration: its value, without its class."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _first_lines(error: Exception) -> str:
    """Torch's message without its advice to load the file unsafely."""
    text = str(error) or type(error).__name__
    found = re.search(r"GLOBAL (\S+)", text)
    if found and "weights_only" in text.lower().replace(" ", "_"):
        return f"{found.group(1)} is refused; only tensors and plain containers are read"
    return text.splitlines()[0]


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise InputFileError(path, "a folder, expected a file" if path.is_dir() else "missing")
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise InputFileError(path, f"size: found {size} bytes, expected at most {MAX_BYTES}")
        return path.read_bytes()
    except OSError as error:
        raise InputFileError(path, f"cannot be read: {error.strerror or error}") from None


def _inflate(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    out = stream.decompress(data, MAX_BYTES)
    if stream.unconsumed_tail:
        raise pickle.UnpicklingError(f"more than {MAX_BYTES} bytes once unpacked")
    if not stream.eof:
        raise EOFError("the compressed stream is cut")
    return out


def _load_npy(data: bytes) -> Any:
    if not _OBJECT_NPY.match(data):
        return np.load(io.BytesIO(data), allow_pickle=False)
    stream = io.BytesIO(data)
    major, _ = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    read_header(stream)
    content = _Unpickler(stream).load()
    return content.item() if isinstance(content, np.ndarray) and content.size == 1 else content


def _load_storage(data: bytes) -> Array:
    """The numbers of a torch storage, (n,)."""
    import torch

    storage = _torch_load(data)
    values = torch.tensor([], dtype=storage.dtype)
    values.set_(storage._untyped_storage)  # the public way warns of its end
    return values.numpy()


class _ArrayWrapper:
    """Stands for joblib's `NumpyArrayWrapper`: its attributes say how the bytes after it make an array."""

    def __init__(self, *_: Any) -> None:
        self.fields: dict[str, Any] = {}

    def read(self, stream: Any) -> Array:
        """The array that follows in the stream."""
        dtype, shape = self.fields["dtype"], self.fields["shape"]
        if dtype.dtype.hasobject:
            array = _Unpickler(stream).load()
            if not isinstance(array, np.ndarray):
                raise pickle.UnpicklingError("an array of objects that is none")
            return array
        if self.fields.get("numpy_array_alignment_bytes"):
            stream.read(stream.read(1)[0])
        size = math.prod(shape) * dtype.dtype.itemsize
        check_size(size)
        data = stream.read(size)
        if len(data) != size:
            raise EOFError(f"an array ends after {len(data)} of {size} bytes")
        return from_buffer(data, dtype, shape, self.fields["order"])


class _Unpickler(pickle._Unpickler):
    """Python's own unpickler (its opcodes can be replaced, as joblib does) that finds nothing but the stand-ins."""

    dispatch = pickle._Unpickler.dispatch.copy()

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream, encoding="latin1")  # texts and arrays of Python 2
        self._stream = stream
        self._tensor_bytes = 0

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return self._rebuild_tensor
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return _load_storage
        if (module, name) == ("joblib.numpy_pickle", "NumpyArrayWrapper"):
            return _ArrayWrapper
        if (module, name) not in STAND_INS:
            raise pickle.UnpicklingError(f"{module}.{name} is refused; only numpy arrays and plain containers are read")
        return STAND_INS[module, name]

    def _rebuild_tensor(self, values: Array, offset: int, size: Any, stride: Any, *_: Any) -> Array:
        view = tensor_view(values, offset, size, stride)
        self._tensor_bytes += view.nbytes
        check_size(self._tensor_bytes)
        return view.copy()

    def load_build(self) -> None:
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        state, target = stack.pop(), stack[-1]
        if isinstance(target, Dtype):
            target.set_state(state)
        elif isinstance(target, _ArrayWrapper):
            target.fields = dict(state)
            stack[-1] = target.read(self._stream)
        elif isinstance(target, Foreign):
            target.fields = dict(state)
        elif isinstance(target, np.ndarray) and target.size == 0 and target.flags.owndata:
            _, shape, dtype, fortran, data = state
            make_array(dtype, shape, data, "C")
            data = data.encode("latin-1") if isinstance(data, str) else data
            target.__setstate__((1, tuple(shape), dtype.dtype, bool(fortran), data))  # type: ignore[arg-type]
        else:
            raise pickle.UnpicklingError(f"a state for {type(target).__name__} is refused")

    def load_bytearray8(self) -> None:
        (size,) = struct.unpack("<Q", self.read(8))  # type: ignore[attr-defined]
        check_size(size)
        self.append(bytearray(self.read(size)))  # type: ignore[attr-defined]

    def load_extension(self) -> None:
        raise pickle.UnpicklingError("an extension code is refused")

    dispatch[pickle.BUILD[0]] = load_build  # type: ignore[assignment]
    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8  # type: ignore[assignment]
    for _code in (pickle.EXT1, pickle.EXT2, pickle.EXT4):
        dispatch[_code[0]] = load_extension  # type: ignore[assignment]
