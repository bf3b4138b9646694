"""The checksum of Unitree's LowState and LowCmd, over the C structure that the CDR body was made from.

CRC-32/MPEG-2 (polynomial 0x04c11db7, no reflection) over the little-endian 32-bit words of the structure without its
last word; source: `unitree_sdk2py/utils/crc.py`. A sender that does not compute it, as simulators do not, leaves 0.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.rollouts.ingest.readers.layout import Layout

_REVERSED = np.array([int(f"{value:08b}"[::-1], 2) for value in range(256)], np.uint8)
_REVERSED_BYTES = _REVERSED.tobytes()


def checksums(rows: NDArray[np.uint8], wire: Layout, struct: Layout) -> NDArray[np.uint32]:
    """The checksum that each message should carry.

    Args:
        rows: (N, at least `wire.size`) little-endian bodies.
        wire: layout of the bodies.
        struct: layout of the C structure of the same message, whose last number is the checksum.

    Returns:
        (N,).
    """
    words = _words(rows, wire, _source(wire, struct)).byteswap(inplace=True)
    # zlib has the reflected form of the same polynomial: bits of each byte go in, and of the word come out, reversed.
    data, size = memoryview(words.tobytes().translate(_REVERSED_BYTES)), 4 * words.shape[1]
    mirrored = np.array([zlib.crc32(data[k * size : (k + 1) * size]) for k in range(len(rows))], "<u4") ^ 0xFFFFFFFF
    return _REVERSED[mirrored.view(np.uint8).reshape(-1, 4)[:, ::-1]].copy().view("<u4").reshape(-1).astype(np.uint32)


def _words(rows: NDArray[np.uint8], wire: Layout, source: NDArray[np.int64]) -> NDArray[Any]:
    """(N, words) of the structure: most lie in the body as they are, those with padding are put together."""
    padded = np.zeros((len(rows), (wire.size // 4 + 1) * 4), np.uint8)
    padded[:, : wire.size] = rows[:, : wire.size]
    whole = (source[:, 0] % 4 == 0) & np.all(np.diff(source, axis=1) == 1, axis=1)
    words = np.take(padded.view("<u4"), np.where(whole, source[:, 0] // 4, 0), axis=1)
    words[:, ~whole] = np.take(padded, source[~whole].reshape(-1), axis=1).view("<u4")
    return words


def _source(wire: Layout, struct: Layout) -> NDArray[np.int64]:
    """(words that the checksum sees, 4) the byte of the body that each byte comes from; `wire.size` for padding."""
    source = np.full(struct.size, wire.size, np.int64)
    for path, leaf in struct.leaves.items():
        width = np.arange(int(leaf.code[1:]))
        source[leaf.offsets.reshape(-1, 1) + width] = wire.leaves[path].offsets.reshape(-1, 1) + width
    return source[:-4].reshape(-1, 4)
