"""Reading of other people's pickles and torch files without ever calling what is in them.

Numbers, text, plain containers, numpy arrays and torch tensors (as numpy arrays) come out; everything else is refused.
Foreign globals are answered by stand-ins of this module, never by the code that the file names, and a numpy dtype is
built anew from its text, so that no forged flags reach numpy.
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
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.rotations import Array

MAX_BYTES = 1 << 30
"""Of a file once unpacked, and of all its arrays together."""
_PEEK_BYTES = 1 << 26
_DTYPE = re.compile(r"[|<>=]?(?:[biufcSU]\d{1,6}|[?O]8?)")
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
                _check_size(sum(item.file_size for item in archive.infolist()))
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


def _check_size(size: int) -> None:
    if not 0 <= size <= MAX_BYTES:
        raise pickle.UnpicklingError(f"{size} bytes, more than {MAX_BYTES}")


class Foreign:
    """Stands for a sparse matrix of scipy or an array of chumpy, as SMPL's files hold them: its fields, no behaviour.

    `kind` is the name of the class that the file asks for, such as `scipy.sparse.csc.csc_matrix`.
    """

    kind = ""
    fields: Mapping[str, Any] = MappingProxyType({})


class _NdArray:
    """Stands for the class `numpy.ndarray` as an argument."""


class _Dtype:
    """Stands for `numpy.dtype`: the text it is made from and, once built, its byte order."""

    def __init__(self, text: str, *_: Any) -> None:
        if not isinstance(text, str) or not _DTYPE.fullmatch(text):
            raise pickle.UnpicklingError(f"an array of type {text!r}")
        self.dtype = np.dtype(text)

    def set_state(self, state: Any) -> None:
        """Take the byte order of numpy's state `(version, order, subarray, names, fields, …)`."""
        if state[2] is not None or state[3] is not None or state[4] is not None:
            raise pickle.UnpicklingError("an array of records")
        if state[1] in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(state[1])


def _make_array(dtype: _Dtype, shape: Any, data: Any, order: str) -> Array:
    """An array from the bytes (text in pickles of Python 2), or for objects the list, of its values."""
    data = data.encode("latin-1") if isinstance(data, str) else data
    if not isinstance(dtype, _Dtype) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise pickle.UnpicklingError("an array without type or shape")
    count = math.prod(shape)
    if dtype.dtype.hasobject:
        if not isinstance(data, list) or len(data) != count:
            raise pickle.UnpicklingError("an array of objects with too few of them")
        values: Any = np.empty(count, dtype=object)
        values[:] = data
    else:
        if not isinstance(data, bytes | bytearray) or len(data) != count * dtype.dtype.itemsize:
            raise EOFError(f"an array of shape {tuple(shape)} with other than its number of bytes")
        values = np.frombuffer(data, dtype=dtype.dtype)
    return values.reshape(shape, order=order)


def _reconstruct(*_: Any) -> Array:
    """The empty array that a later state fills."""
    return np.empty(0)


def _scalar(dtype: _Dtype, data: bytes) -> Any:
    return _make_array(dtype, (1,), data, "C")[0]


def _from_buffer(data: bytes, dtype: _Dtype, shape: Any, order: str) -> Array:
    return _make_array(dtype, shape, data, "F" if order == "F" else "C").copy()


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes in encoding {encoding!r}")
    return text.encode("latin-1")


def _no_bytes() -> bytes:
    """How protocols before 3 write empty bytes."""
    return b""


def _empty_dict(*_: Any) -> dict[Any, Any]:
    """Stands for a dict with a default: the file's own entries follow."""
    return {}


def _make_foreign(kind: Any, *_: Any) -> Foreign:
    """How protocols before 2 make an object of a class."""
    if not (isinstance(kind, type) and issubclass(kind, Foreign)):
        raise pickle.UnpicklingError("an object of a class that is refused")
    return kind()


def _load_storage(data: bytes) -> Array:
    """The numbers of a torch storage, (n,)."""
    import torch

    storage = _torch_load(data)
    values = torch.tensor([], dtype=storage.dtype)
    values.set_(storage._untyped_storage)  # the public way warns of its end
    return values.numpy()


def _tensor(values: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> Array:
    """A read-only view of a storage, after a check that it lies within."""
    numbers = [*size, *stride, offset]
    if not isinstance(values, np.ndarray) or not all(isinstance(n, int) and n >= 0 for n in numbers):
        raise pickle.UnpicklingError("a tensor without storage or shape")
    if math.prod(size) == 0:
        return np.empty(size, dtype=values.dtype)
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if last >= values.size:
        raise EOFError(f"a tensor reaches to number {last} of a storage of {values.size}")
    steps = [step * values.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(values[offset:], size, steps, writeable=False)


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
        _check_size(size)
        data = stream.read(size)
        if len(data) != size:
            raise EOFError(f"an array ends after {len(data)} of {size} bytes")
        return _from_buffer(data, dtype, shape, self.fields["order"])


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _NdArray,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _no_bytes,
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "defaultdict"): _empty_dict,
    ("joblib.numpy_pickle", "NumpyArrayWrapper"): _ArrayWrapper,
    ("torch.storage", "_load_from_bytes"): _load_storage,
}
for _core in ("numpy.core", "numpy._core"):
    _STAND_INS[_core + ".multiarray", "_reconstruct"] = _reconstruct
    _STAND_INS[_core + ".multiarray", "scalar"] = _scalar
    _STAND_INS[_core + ".numeric", "_frombuffer"] = _from_buffer


for _builtins, _copy_registry in (("builtins", "copyreg"), ("__builtin__", "copy_reg")):
    _STAND_INS[_builtins, "dict"] = _empty_dict
    _STAND_INS[_builtins, "object"] = Foreign
    _STAND_INS[_copy_registry, "_reconstructor"] = _make_foreign
for _module, _class in (
    ("scipy.sparse.csc", "csc_matrix"),
    ("scipy.sparse._csc", "csc_matrix"),
    ("scipy.sparse.csr", "csr_matrix"),
    ("scipy.sparse._csr", "csr_matrix"),
    ("chumpy.ch", "Ch"),
    ("chumpy.reordering", "Select"),
):
    _STAND_INS[_module, _class] = type("Foreign", (Foreign,), {"kind": f"{_module}.{_class}"})


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
        if (module, name) not in _STAND_INS:
            raise pickle.UnpicklingError(f"{module}.{name} is refused; only numpy arrays and plain containers are read")
        return _STAND_INS[module, name]

    def _rebuild_tensor(self, values: Array, offset: int, size: Any, stride: Any, *_: Any) -> Array:
        view = _tensor(values, offset, size, stride)
        self._tensor_bytes += view.nbytes
        _check_size(self._tensor_bytes)
        return view.copy()

    def load_build(self) -> None:
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        state, target = stack.pop(), stack[-1]
        if isinstance(target, _Dtype):
            target.set_state(state)
        elif isinstance(target, _ArrayWrapper):
            target.fields = dict(state)
            stack[-1] = target.read(self._stream)
        elif isinstance(target, Foreign):
            target.fields = dict(state)
        elif isinstance(target, np.ndarray) and target.size == 0 and target.flags.owndata:
            _, shape, dtype, fortran, data = state
            _make_array(dtype, shape, data, "C")
            data = data.encode("latin-1") if isinstance(data, str) else data
            target.__setstate__((1, tuple(shape), dtype.dtype, bool(fortran), data))  # type: ignore[arg-type]
        else:
            raise pickle.UnpicklingError(f"a state for {type(target).__name__} is refused")

    def load_bytearray8(self) -> None:
        (size,) = struct.unpack("<Q", self.read(8))  # type: ignore[attr-defined]
        _check_size(size)
        self.append(bytearray(self.read(size)))  # type: ignore[attr-defined]

    def load_extension(self) -> None:
        raise pickle.UnpicklingError("an extension code is refused")

    dispatch[pickle.BUILD[0]] = load_build  # type: ignore[assignment]
    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8  # type: ignore[assignment]
    for _code in (pickle.EXT1, pickle.EXT2, pickle.EXT4):
        dispatch[_code[0]] = load_extension  # type: ignore[assignment]
