"""MATLAB objects in a v7.3 file: the table behind `#subsystem#/MCOS`, as far as `timeseries` needs it.

The layout is not published; it is the one that the community's readers (mat-io, MatFileRW) describe: a byte block
with a table of names and four regions (classes, properties, objects, properties again), and beside it a cell per value.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

_OBJECT_MARK = 0xDD000000
_NAMES_AT = 40
_FIRST_VALUE = 2


class ObjectTable:
    """The objects of one file.

    Raises:
        ValueError: the table is damaged or of another layout.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        try:
            self._cells = file["#subsystem#/MCOS"][()].reshape(-1)
            block = bytes(np.asarray(file[self._cells[0]][()], np.uint8).reshape(-1))
            self._names, regions = _names(block)
            self._classes = _rows(block, regions[0], regions[1], 4)
            self._properties = [_properties(block, *regions[i : i + 2]) for i in (1, 3)]
            self._objects = _rows(block, regions[2], regions[3], 6)
        except (KeyError, IndexError, struct.error, TypeError, AttributeError) as error:
            raise ValueError(f"damaged object table: {error}") from None

    def class_name(self, object_id: int) -> str:
        """Of an object."""
        return self._name(self._classes[self._objects[object_id][0]][1])

    def values(self, object_id: int) -> dict[str, NDArray[Any]]:
        """The numeric properties of an object, in HDF5's (reversed) axis order."""
        _, _, _, first, second, _ = self._objects[object_id]
        rows = self._properties[0][first] if first else self._properties[1][second]
        out = {}
        for name, kind, value in rows:
            if kind == 1:
                item = self._file[self._cells[value + _FIRST_VALUE]]
                if hasattr(item, "shape") and item.dtype.kind in "fiub" and "MATLAB_empty" not in item.attrs:
                    out[self._name(name)] = item
        return out

    def _name(self, index: int) -> str:
        return self._names[index - 1]


def object_id(values: NDArray[Any]) -> int | None:
    """The object that a variable or a property refers to, None if it is plain data."""
    flat = np.asarray(values).reshape(-1)
    return int(flat[-2]) if flat.dtype == np.uint32 and len(flat) >= 6 and flat[0] == _OBJECT_MARK else None


def _names(block: bytes) -> tuple[list[str], list[int]]:
    _, count, *regions = struct.unpack_from("<10I", block)
    if not _NAMES_AT <= regions[0] <= len(block):
        raise ValueError("damaged object table: regions outside of the block")
    names = block[_NAMES_AT : regions[0]].split(b"\0")[:count]
    return [name.decode(errors="replace") for name in names], list(regions)


def _rows(block: bytes, start: int, end: int, width: int) -> list[tuple[int, ...]]:
    size = 4 * width
    return [struct.unpack_from(f"<{width}I", block, at) for at in range(start, end - size + 1, size)]


def _properties(block: bytes, start: int, end: int) -> list[list[tuple[int, ...]]]:
    """Per object its (name, kind, value) triples; blocks are padded to 8 bytes."""
    out: list[list[tuple[int, ...]]] = []
    at = start
    while at + 4 <= end:
        (count,) = struct.unpack_from("<I", block, at)
        if count > (end - at) // 12 + 1:
            raise ValueError("damaged object table: more properties than bytes")
        out.append([struct.unpack_from("<3I", block, at + 4 + 12 * i) for i in range(count)])
        at += -(-(4 + 12 * count) // 8) * 8
    return out
