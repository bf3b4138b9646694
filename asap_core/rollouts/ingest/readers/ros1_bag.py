"""ROS 1 bags, format 2.0. Records are walked here, because the libraries refuse a bag whose index was never written.

Source: http://wiki.ros.org/Bags/Format/2.0.
"""

from __future__ import annotations

import bz2
import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import lz4.frame
import numpy as np

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.readers.blocks import Block, Channel
from asap_core.rollouts.ingest.readers.collect import Collector
from asap_core.rollouts.ingest.readers.magic import begins_with
from asap_core.rollouts.ingest.streams import Log

MAGIC = b"#ROSBAG V2.0\n"

_LENGTH = struct.Struct("<I")
_TIME = struct.Struct("<II")
_MESSAGE, _CHUNK, _CONNECTION = 0x02, 0x05, 0x07
_OPCODES = (_MESSAGE, 0x03, 0x04, _CHUNK, 0x06, _CONNECTION)
_MAX_HEADER = 1 << 24
_MAX_CHUNK = 1 << 29
_FLUSH = 1 << 22
_DAMAGED = (ValueError, KeyError, struct.error, RuntimeError, EOFError, OSError, MemoryError)


def sniff(path: Path) -> bool:
    """Whether a file begins as a ROS 1 bag does."""
    return begins_with(path, MAGIC)


def read(path: Path) -> Log:
    """Everything a bag holds; of one that was cut or never closed, everything up to there.

    Raises:
        InputFileError: no ROS 1 bag, or no message of it can be read.
    """
    collector = Collector(path, "ros1_bag")
    try:
        with open(path, "rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise InputFileError(path, "no ROS 1 bag of version 2.0: does not begin with its magic line")
            _Walk(collector).run(stream, path.stat().st_size)
    except OSError as error:
        raise InputFileError(path, f"cannot be read: {error.strerror or error}") from None
    return collector.log()


@dataclass
class _Gathered:
    """Messages of one connection since the last flush."""

    payloads: list[bytes] = field(default_factory=list)
    receive: list[int] = field(default_factory=list)


class _Walk:
    """The state of reading one bag."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._channels: dict[int, Channel] = {}
        self._gathered: dict[int, _Gathered] = defaultdict(_Gathered)
        self._waiting = 0
        self._orphans = 0

    def run(self, stream: BinaryIO, size: int) -> None:
        """Walk the records to the end of the file, or as far as they go."""
        at = len(MAGIC)
        while at < size:
            try:
                header, data_at, length = _head(stream, at, size)
            except ValueError as error:
                self._collector.note(f"damaged at byte {at:,} ({error}); what is before it was read")
                break
            whole = data_at + length <= size
            if not whole:
                self._collector.note(f"file cut: the record at byte {at:,} is not complete; what is before it was read")
            self._record(stream, header, min(length, size - data_at), at, whole)
            at = data_at + length
            stream.seek(at)
        self._flush()
        if self._orphans:
            self._collector.note(f"{self._orphans} messages left out: their connection is not described")

    def _record(self, stream: BinaryIO, header: dict[str, bytes], length: int, at: int, whole: bool) -> None:
        opcode = header["op"][0]
        try:
            if opcode == _CHUNK:
                self._chunk(header, stream.read(length), at)
            elif whole and opcode in (_MESSAGE, _CONNECTION):
                self._inner(header, stream.read(length))
        except _DAMAGED as error:
            self._collector.note(f"record at byte {at:,} left out: damaged ({type(error).__name__})")

    def _chunk(self, header: dict[str, bytes], data: bytes, at: int) -> None:
        size = _LENGTH.unpack(header["size"])[0]
        if size > _MAX_CHUNK:
            raise ValueError(f"says that it holds {size:,} bytes")
        records = _decompress(header["compression"], data, size)
        done = 0
        for inner, body, end in _inner_records(records):
            self._inner(inner, body)
            done = end
        if done < size:
            self._collector.note(f"chunk at byte {at:,} is not complete; its messages up to there were read")
        self._flush()

    def _inner(self, header: dict[str, bytes], data: bytes) -> None:
        opcode = header["op"][0]
        if opcode not in (_MESSAGE, _CONNECTION):
            return
        key = _LENGTH.unpack(header["conn"])[0]
        if opcode == _CONNECTION:
            self._channels.setdefault(key, _channel(header, _fields(data)))
            return
        seconds, nanoseconds = _TIME.unpack(header["time"])
        one = self._gathered[key]
        one.payloads.append(data)
        one.receive.append(seconds * 10**9 + nanoseconds)
        self._waiting += len(data)
        if self._waiting > _FLUSH:
            self._flush()

    def _flush(self) -> None:
        for key, one in self._gathered.items():
            if key in self._channels:
                self._collector.add(self._channels[key], Block(one.payloads, np.array(one.receive, np.uint64)))
            else:
                self._orphans += len(one.payloads)
        self._gathered.clear()
        self._waiting = 0


def _head(stream: BinaryIO, at: int, size: int) -> tuple[dict[str, bytes], int, int]:
    """(header, position of the data, its length) of the record at `at`.

    Raises:
        ValueError: no record is there.
    """
    length = _length(stream.read(4))
    if length > min(_MAX_HEADER, size - at):
        raise ValueError("header longer than the file")
    header = _fields(stream.read(length))
    if len(header.get("op", b"")) != 1 or header["op"][0] not in _OPCODES:
        raise ValueError("no record of a bag")
    return header, at + 8 + length, _length(stream.read(4))


def _inner_records(data: bytes) -> Iterator[tuple[dict[str, bytes], bytes, int]]:
    """(header, data, end) of the complete records of a chunk."""
    at = 0
    while at + 4 <= len(data):
        middle = at + 4 + _length(data[at : at + 4])
        if middle + 4 > len(data):
            return
        end = middle + 4 + _length(data[middle : middle + 4])
        if end > len(data):
            return
        header = _fields(data[at + 4 : middle])
        if len(header.get("op", b"")) != 1:
            return
        yield header, data[middle + 4 : end], end
        at = end


def _length(data: bytes) -> int:
    if len(data) < 4:
        raise ValueError("cut")
    return int(_LENGTH.unpack(data)[0])


def _fields(data: bytes) -> dict[str, bytes]:
    """`name=value` fields of a header.

    Raises:
        ValueError: it is not made of such fields.
    """
    fields = {}
    at = 0
    while at < len(data):
        end = at + 4 + _length(data[at : at + 4])
        name, equals, value = data[at + 4 : end].partition(b"=")
        if end > len(data) or not equals:
            raise ValueError("header not made of fields")
        fields[name.decode(errors="replace")] = value
        at = end
    return fields


def _channel(header: dict[str, bytes], connection: dict[str, bytes]) -> Channel:
    topic = (connection.get("topic") or header["topic"]).decode(errors="replace")
    definition = connection.get("message_definition", b"")
    return Channel(topic, connection["type"].decode(errors="replace"), "ros1", "ros1msg", definition)


def _decompress(compression: bytes, data: bytes, size: int) -> bytes:
    """At most `size` bytes of a chunk's records, less if it was cut.

    Raises:
        ValueError: damaged, or a compression that bags do not have.
    """
    if compression == b"none":
        return data[:size]
    if compression == b"bz2":
        return bz2.BZ2Decompressor().decompress(data, max_length=size)
    if compression == b"lz4":
        return bytes(lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=size))
    raise ValueError(f"compression {compression.decode(errors='replace')!r}, readable: none, bz2, lz4")
