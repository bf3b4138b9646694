"""MCAP. Messages are walked here, because a log of ten minutes has hundreds of thousands; other records by the library.

A file that was cut gives everything before the cut, a damaged chunk is left out, and both are said. Source: the MCAP
specification, https://mcap.dev/spec.
"""

from __future__ import annotations

import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import lz4.frame
import numpy as np
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel as ChannelRecord
from mcap.records import Chunk, Metadata, Schema

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.readers.blocks import Block, Channel, Sink
from asap_core.rollouts.ingest.readers.collect import Collector
from asap_core.rollouts.ingest.readers.magic import begins_with
from asap_core.rollouts.ingest.streams import Log

MAGIC = b"\x89MCAP0\r\n"

_RECORD = struct.Struct("<BQ")
_MESSAGE = struct.Struct("<BQHIQQ")
_MESSAGE_HEAD = _MESSAGE.size - _RECORD.size
_MAX_CHUNK = 1 << 29
_UNCHUNKED_FLUSH = 1 << 22
_DAMAGED = (McapError, struct.error, UnicodeDecodeError, ValueError, MemoryError, OverflowError)


def sniff(path: Path) -> bool:
    """Whether a file begins with MCAP's magic bytes."""
    return begins_with(path, MAGIC)


def read(path: Path) -> Log:
    """Everything an MCAP holds.

    Raises:
        InputFileError: not MCAP, or no message of it can be read.
    """
    collector = Collector(path, "mcap")
    read_into(path, collector)
    return collector.log()


def read_into(path: Path, collector: Sink) -> None:
    """Give the messages of an MCAP to `collector`, in the order of the file.

    Raises:
        InputFileError: not MCAP.
    """
    try:
        with open(path, "rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise InputFileError(path, "no MCAP: does not begin with its magic bytes")
            _Walk(path, collector).run(stream, path.stat().st_size)
    except OSError as error:
        raise InputFileError(path, f"cannot be read: {error.strerror or error}") from None


@dataclass
class _Gathered:
    """Messages of one channel since the last flush."""

    payloads: list[memoryview] = field(default_factory=list)
    receive: list[int] = field(default_factory=list)
    publish: list[int] = field(default_factory=list)


class _Walk:
    """The state of reading one file."""

    def __init__(self, path: Path, collector: Sink) -> None:
        self._path = path
        self._collector = collector
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}
        self._gathered: dict[int, _Gathered] = defaultdict(_Gathered)
        self._waiting = 0
        self._orphans = 0

    def run(self, stream: BinaryIO, size: int) -> None:
        """Walk the records up to the end of the data section, or as far as they go."""
        for opcode, body, at, whole in self._records(stream, size):
            try:
                if opcode == Opcode.CHUNK:
                    self._chunk(body, at, whole)
                elif whole:
                    self._record(opcode, body)
            except _DAMAGED as error:
                self._collector.note(f"record at byte {at:,} left out: damaged ({type(error).__name__})")
        self._flush()
        if self._orphans:
            self._collector.note(f"{self._orphans} messages left out: their channel is not described")

    def _records(self, stream: BinaryIO, size: int) -> Iterator[tuple[int, bytes, int, bool]]:
        """(opcode, body, position, whether it is complete) of each record that matters."""
        at = len(MAGIC)
        while True:
            head = stream.read(_RECORD.size)
            if len(head) < _RECORD.size:
                self._cut(at)
                return
            opcode, length = _RECORD.unpack(head)
            if opcode == Opcode.DATA_END:
                return
            if opcode == 0:
                self._collector.note(f"damaged at byte {at:,}; what follows was not read")
                return
            whole = length <= size - at - _RECORD.size
            if not whole:
                self._cut(at)
            if opcode in _READ:
                yield opcode, stream.read(length if whole else size - at - _RECORD.size), at, whole
            else:
                stream.seek(length if whole else 0, 1)
            if not whole:
                return
            if opcode == Opcode.ATTACHMENT:
                self._collector.note(f"attachment of {length:,} bytes not read")
            at += _RECORD.size + length

    def _cut(self, at: int) -> None:
        self._collector.note(f"file cut: the record at byte {at:,} is not complete; what is before it was read")

    def _record(self, opcode: int, body: bytes) -> None:
        if opcode == Opcode.MESSAGE:
            self._messages(_RECORD.pack(opcode, len(body)) + body)
            self._waiting += len(body)
            if self._waiting > _UNCHUNKED_FLUSH:
                self._flush()
        elif opcode == Opcode.METADATA:
            metadata = Metadata.read(ReadDataStream(BytesIO(body)))
            self._collector.metadata[metadata.name] = metadata.metadata
        else:
            self._describe(opcode, body)

    def _describe(self, opcode: int, body: bytes) -> None:
        """Learn a schema or a channel; a second one of the same id is a repetition."""
        if opcode == Opcode.SCHEMA:
            schema = Schema.read(ReadDataStream(BytesIO(body)))
            self._schemas.setdefault(schema.id, schema)
        elif opcode == Opcode.CHANNEL:
            record = ChannelRecord.read(ReadDataStream(BytesIO(body)))
            none = Schema(id=0, data=b"", encoding="", name="")
            schema = self._schemas.get(record.schema_id, none)
            channel = Channel(record.topic, schema.name, record.message_encoding, schema.encoding, bytes(schema.data))
            self._channels.setdefault(record.id, channel)

    def _chunk(self, body: bytes, at: int, whole: bool) -> None:
        """Give the messages of a chunk; of one that the file's end cuts, those that are there."""
        self._flush()
        chunk = Chunk.read(ReadDataStream(BytesIO(body)))
        if chunk.uncompressed_size > _MAX_CHUNK:
            self._collector.note(f"chunk at byte {at:,} left out: says that it holds {chunk.uncompressed_size:,} bytes")
            return
        data = _decompress(chunk)
        if whole and chunk.uncompressed_crc and zlib.crc32(data) != chunk.uncompressed_crc:
            self._collector.note(f"chunk at byte {at:,} left out: its checksum does not match")
            return
        complete = len(data) == chunk.uncompressed_size
        if not self._messages(data) or not complete:
            self._collector.note(f"chunk at byte {at:,} is not complete; its messages up to there were read")
        self._flush()

    def _messages(self, data: bytes) -> bool:
        """Gather the messages of consecutive records; whether the last one is complete."""
        view, at, size = memoryview(data), 0, len(data)
        gathered, message, head = self._gathered, Opcode.MESSAGE.value, _MESSAGE.size
        while at + _RECORD.size <= size:
            if data[at] == message and at + head <= size:
                _, length, channel, _, receive, publish = _MESSAGE.unpack_from(data, at)
                end = at + _RECORD.size + length
                if end > size or length < _MESSAGE_HEAD:
                    return False
                one = gathered[channel]
                one.payloads.append(view[at + head : end])
                one.receive.append(receive)
                one.publish.append(publish)
            else:
                opcode, length = _RECORD.unpack_from(data, at)
                end = at + _RECORD.size + length
                if end > size:
                    return False
                self._describe(opcode, data[at + _RECORD.size : end])
            at = end
        return at == size

    def _flush(self) -> None:
        """Hand on what was gathered."""
        for key, one in self._gathered.items():
            if key in self._channels:
                receive, publish = np.array(one.receive, np.uint64), np.array(one.publish, np.uint64)
                self._collector.add(self._channels[key], Block(one.payloads, receive, publish))
            else:
                self._orphans += len(one.payloads)
        self._gathered.clear()
        self._waiting = 0


_READ = (Opcode.CHUNK, Opcode.MESSAGE, Opcode.SCHEMA, Opcode.CHANNEL, Opcode.METADATA)


def _decompress(chunk: Chunk) -> bytes:
    """The records of a chunk, never more than it promises, and less if it was cut.

    Raises:
        ValueError: damaged, or a compression that MCAP does not define.
    """
    if chunk.compression == "":
        return chunk.data[: chunk.uncompressed_size]
    try:
        if chunk.compression == "lz4":
            return bytes(lz4.frame.LZ4FrameDecompressor().decompress(chunk.data, max_length=chunk.uncompressed_size))
        if chunk.compression == "zstd":
            with zstandard.ZstdDecompressor().stream_reader(BytesIO(chunk.data), read_across_frames=True) as stream:
                return stream.read(chunk.uncompressed_size)
    except (RuntimeError, EOFError, zstandard.ZstdError) as error:
        raise ValueError(f"{chunk.compression} stream: {error}") from None
    raise ValueError(f"compression {chunk.compression!r}, readable: lz4, zstd, none")
