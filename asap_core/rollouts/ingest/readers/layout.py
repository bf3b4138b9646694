"""Where each number of a ROS message lies in its bytes, so that many messages are read as arrays at once.

A message with strings has no fixed places, but all messages whose strings are as long as those of one have the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rosbags.interfaces import Nodetype

Packing = Literal["cdr", "ros1", "c"]
"""CDR aligns each number to its size from the start of the body; ROS 1 packs without gaps; C also pads structures."""

Order = Literal["<", ">"]
"""Little or big endian."""

Fields = Mapping[str, tuple[Any, Any]]
"""Message type → (constants, field list), as `rosbags` parses definitions."""

_CODES = {"bool": "u1", "byte": "u1", "octet": "u1", "char": "u1", "float32": "f4", "float64": "f8"} | {
    f"{sign}int{bits}": f"{sign or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_MAX_NUMBERS = 100_000
_MAX_DEPTH = 16


@dataclass(frozen=True)
class Leaf:
    """One named number or array of numbers of a message."""

    code: str
    """Numpy type without byte order, `f4`."""
    offsets: NDArray[np.int64]
    """Byte offset of every element, in the element's own shape: () for a number, (35,) for `motor_state.q`."""

    @property
    def strides(self) -> tuple[int, ...] | None:
        """Bytes between neighbours along each axis, None where they are not evenly spaced."""
        steps = [np.diff(self.offsets, axis=axis) for axis in range(self.offsets.ndim)]
        if any(step.size and np.any(step != step.flat[0]) for step in steps):
            return None
        return tuple(int(step.flat[0]) if step.size else 0 for step in steps)


@dataclass(frozen=True)
class Layout:
    """Places of the numbers of a message type without sequences."""

    size: int
    """Bytes of the body."""
    leaves: Mapping[str, Leaf]
    """By dotted path: `imu_state.quaternion`, `motor_state.temperature`."""
    strings: tuple[tuple[int, int], ...] = ()
    """(offset of its length word, length) of each string that the places rest on."""

    def fits(self, rows: NDArray[np.uint8], *, start: int = 0, order: Order = "<") -> NDArray[np.bool_]:
        """(N,) whether the strings of each message are as long as the layout says; arguments as of `decode`."""
        fits = np.ones(len(rows), bool)
        for offset, length in self.strings:
            word = np.ascontiguousarray(rows[:, start + offset : start + offset + 4]).view(order + "u4")
            fits &= word[:, 0] == length
        return fits

    def decode(self, rows: NDArray[np.uint8], path: str, *, start: int = 0, order: Order = "<") -> NDArray[Any]:
        """Element `path` of N messages.

        Args:
            rows: (N, at least `start` + `size`) bytes of the messages, C-contiguous.
            path: key of `leaves`.
            start: where the body begins.
            order: byte order of the messages.

        Returns:
            (N, *leaf shape) in this machine's byte order, a copy.
        """
        leaf = self.leaves[path]
        kind = np.dtype(order + leaf.code)
        shape = (len(rows), *leaf.offsets.shape)
        if (strides := leaf.strides) is None or 0 in shape:
            index = start + leaf.offsets.reshape(-1, 1) + np.arange(kind.itemsize)
            view = np.take(rows, index.reshape(-1), axis=1).view(kind).reshape(shape)
        else:
            first = start + int(leaf.offsets.flat[0])
            view = np.ndarray(shape, kind, rows.reshape(-1).data, first, (rows.strides[0], *strides))
        return view.astype(kind.newbyteorder("="))

    def encode(self, values: Mapping[str, NDArray[Any]], num: int, *, start: int = 0) -> NDArray[np.uint8]:
        """Bodies of `num` messages, little endian, (N, `start` + size); what `values` leaves out is zero.

        Args:
            values: by path, each broadcastable to (N, *leaf shape).
            num: N.
            start: bytes to leave before each body.
        """
        rows = np.zeros((num, start + self.size), np.uint8)
        for path, value in values.items():
            leaf = self.leaves[path]
            kind = np.dtype("<" + leaf.code)
            full = np.ascontiguousarray(np.broadcast_to(value, (num, *leaf.offsets.shape)), kind)
            index = (start + leaf.offsets.reshape(-1, 1) + np.arange(kind.itemsize)).reshape(-1)
            rows[:, index] = full.reshape(num, -1).view(np.uint8)
        return rows


class VariableSizeError(ValueError):
    """The message type holds a sequence or more numbers than a message of a robot has."""


class StringsError(VariableSizeError):
    """The message type holds a string, so that only a message tells the places."""


class CutMessageError(ValueError):
    """A message ends before its strings do."""


def fixed_layout(fields: Fields, type_name: str, packing: Packing) -> Layout:
    """The layout that every message of `type_name` has.

    Raises:
        StringsError: its strings decide; see `layout_like`.
        VariableSizeError: it has none.
        KeyError: it or a type in it is not among `fields`.
    """
    return _place(_Placer(fields, packing, None, "<"), type_name)


def layout_like(fields: Fields, type_name: str, packing: Packing, body: bytes | memoryview, order: Order) -> Layout:
    """The layout of one message and of those whose strings are as long as its.

    Args:
        fields: definitions.
        type_name: the message's.
        packing: how it was written.
        body: the message without an encapsulation header.
        order: its byte order.

    Raises:
        CutMessageError: it ends too early.
        VariableSizeError: it holds a sequence.
    """
    return _place(_Placer(fields, packing, body, order), type_name)


def _place(placer: _Placer, type_name: str) -> Layout:
    leaves: dict[str, Leaf] = {}
    end = placer.message(type_name, 0, "", leaves, 0)
    return Layout(end, leaves, tuple(placer.strings))


class _Placer:
    """Walks a definition with a running byte position."""

    def __init__(self, fields: Fields, packing: Packing, body: bytes | memoryview | None, order: Order) -> None:
        self._fields = fields
        self._packing = packing
        self._body = body
        self._order = order
        self.strings: list[tuple[int, int]] = []
        self._numbers = 0

    def message(self, type_name: str, at: int, prefix: str, leaves: dict[str, Leaf], depth: int) -> int:
        """Place every field of a message that starts at `at`; the position after it."""
        if depth > _MAX_DEPTH:
            raise VariableSizeError(f"{type_name} is nested more than {_MAX_DEPTH} deep")
        at = self._aligned(at, self._widest(type_name, depth)) if self._packing == "c" else at
        for name, node in self._fields[type_name][1]:
            at = self._field(f"{prefix}{name}", node, at, leaves, depth)
        return self._aligned(at, self._widest(type_name, depth)) if self._packing == "c" else at

    def _field(self, path: str, node: Any, at: int, leaves: dict[str, Leaf], depth: int) -> int:
        kind, detail = node
        if kind == Nodetype.BASE:
            return self._number(path, detail[0], (), at, leaves)
        if kind == Nodetype.NAME:
            return self.message(detail, at, f"{path}.", leaves, depth + 1)
        if kind != Nodetype.ARRAY:
            raise VariableSizeError(f"{path} is a sequence")
        (inner, inner_detail), count = detail
        if inner == Nodetype.BASE:
            return self._number(path, inner_detail[0], (count,), at, leaves)
        return self._array(path, inner_detail, count, at, leaves, depth)

    def _array(self, path: str, type_name: str, count: int, at: int, leaves: dict[str, Leaf], depth: int) -> int:
        parts: list[dict[str, Leaf]] = []
        for _ in range(count):
            part: dict[str, Leaf] = {}
            at = self.message(type_name, at, f"{path}.", part, depth + 1)
            if not part:
                raise VariableSizeError(f"{path} is an array of empty messages")
            parts.append(part)
        for key in parts[0] if parts else ():
            leaves[key] = Leaf(parts[0][key].code, np.stack([part[key].offsets for part in parts]))
        return at

    def _number(self, path: str, base: str, shape: tuple[int, ...], at: int, leaves: dict[str, Leaf]) -> int:
        if base == "string":
            return self._strings(math.prod(shape), at)
        if base not in _CODES:
            raise VariableSizeError(f"{path} is a {base}")
        width = int(_CODES[base][1:])
        count = math.prod(shape)
        self._numbers += count
        if self._numbers > _MAX_NUMBERS:
            raise VariableSizeError(f"more than {_MAX_NUMBERS} numbers in a message")
        at = at if self._packing == "ros1" else self._aligned(at, width)
        leaves[path] = Leaf(_CODES[base], at + width * np.arange(count, dtype=np.int64).reshape(shape))
        return at + width * count

    def _strings(self, count: int, at: int) -> int:
        if self._body is None:
            raise StringsError("holds strings")
        for _ in range(count):
            at = at if self._packing == "ros1" else self._aligned(at, 4)
            if at + 4 > len(self._body):
                raise CutMessageError("ends within its strings")
            length = int(np.frombuffer(self._body, self._order + "u4", 1, at)[0])
            self.strings.append((at, length))
            at += 4 + length
        if at > len(self._body):
            raise CutMessageError("ends within its strings")
        return at

    def _widest(self, type_name: str, depth: int) -> int:
        """Alignment of a C structure: that of its widest number."""
        widths = [1]
        for _, (kind, detail) in self._fields[type_name][1]:
            inner, inner_detail = detail[0] if kind == Nodetype.ARRAY else (kind, detail)
            if inner == Nodetype.NAME and depth <= _MAX_DEPTH:
                widths.append(self._widest(inner_detail, depth + 1))
            elif inner == Nodetype.BASE and inner_detail[0] in _CODES:
                widths.append(int(_CODES[inner_detail[0]][1:]))
        return max(widths)

    @staticmethod
    def _aligned(at: int, width: int) -> int:
        return -(-at // width) * width
