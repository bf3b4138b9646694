"""What stands in a pickle's place for the classes and functions of numpy, torch, scipy and chumpy that it names.

None of them does more than hold or build numbers. A numpy dtype is built anew from its text, so that no forged flags
reach numpy.
"""

from __future__ import annotations

import math
import pickle
import re
from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from asap_core.rotations import Array

MAX_BYTES = 1 << 30
"""Of a file once unpacked, and of all its arrays together."""
_DTYPE = re.compile(r"[|<>=]?(?:[biufcSU]\d{1,6}|[?O]8?)")


def check_size(size: int) -> None:
    """Refuse more than `MAX_BYTES`."""
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


class Dtype:
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


def make_array(dtype: Dtype, shape: Any, data: Any, order: str) -> Array:
    """An array from the bytes (text in pickles of Python 2), or for objects the list, of its values."""
    data = data.encode("latin-1") if isinstance(data, str) else data
    if not isinstance(dtype, Dtype) or not all(isinstance(n, int) and n >= 0 for n in shape):
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


def _scalar(dtype: Dtype, data: bytes) -> Any:
    return make_array(dtype, (1,), data, "C")[0]


def from_buffer(data: bytes, dtype: Dtype, shape: Any, order: str) -> Array:
    """An array of its own memory, in rows or for order F in columns."""
    return make_array(dtype, shape, data, "F" if order == "F" else "C").copy()


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


def tensor_view(values: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> Array:
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


STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _NdArray,
    ("numpy", "dtype"): Dtype,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _no_bytes,
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "defaultdict"): _empty_dict,
}
for _core in ("numpy.core", "numpy._core"):
    STAND_INS[_core + ".multiarray", "_reconstruct"] = _reconstruct
    STAND_INS[_core + ".multiarray", "scalar"] = _scalar
    STAND_INS[_core + ".numeric", "_frombuffer"] = from_buffer
for _builtins, _copy_registry in (("builtins", "copyreg"), ("__builtin__", "copy_reg")):
    STAND_INS[_builtins, "dict"] = _empty_dict
    STAND_INS[_builtins, "object"] = Foreign
    STAND_INS[_copy_registry, "_reconstructor"] = _make_foreign
for _module, _class in (
    ("scipy.sparse.csc", "csc_matrix"),
    ("scipy.sparse._csc", "csc_matrix"),
    ("scipy.sparse.csr", "csr_matrix"),
    ("scipy.sparse._csr", "csr_matrix"),
    ("chumpy.ch", "Ch"),
    ("chumpy.reordering", "Select"),
):
    STAND_INS[_module, _class] = type("Foreign", (Foreign,), {"kind": f"{_module}.{_class}"})
