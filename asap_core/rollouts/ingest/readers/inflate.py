"""rosbag2's own compression: of whole files (`--compression-mode file`) or of every message (`message`)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.readers.blocks import Block, Channel, Sink

ZSTD = "zstd"
"""The only format that rosbag2 has."""
SUFFIX = f".{ZSTD}"

_PIECE = 1 << 20
_MAX_FILE = 1 << 36
_MAX_MESSAGE = 1 << 26


@contextmanager
def inflated(path: Path) -> Iterator[Path]:
    """The file itself, or its content in a temporary folder if it is compressed; of a cut one, what is there.

    Raises:
        InputFileError: it cannot be read, is damaged or grows beyond 64 GiB.
    """
    if path.suffix != SUFFIX:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.name.removesuffix(SUFFIX)
        try:
            _inflate(path, plain)
        except (OSError, zstandard.ZstdError) as error:
            raise InputFileError(path, f"not {ZSTD}: {error}") from None
        yield plain


def _inflate(path: Path, plain: Path) -> None:
    done = 0
    with open(path, "rb") as source, open(plain, "wb") as target:
        for piece in zstandard.ZstdDecompressor().read_to_iter(source, write_size=_PIECE):
            done += len(piece)
            if done > _MAX_FILE:
                raise InputFileError(path, f"holds more than {_MAX_FILE:,} bytes")
            target.write(piece)


class Inflating:
    """A sink whose messages come compressed; those that do not inflate are left out and said."""

    def __init__(self, target: Sink) -> None:
        self._target = target

    @property
    def num_messages(self) -> int:
        """See `Sink`."""
        return self._target.num_messages

    @property
    def metadata(self) -> dict[str, Any]:
        """See `Sink`."""
        return self._target.metadata

    def note(self, text: str) -> None:
        """See `Sink`."""
        self._target.note(text)

    def add(self, channel: Channel, block: Block) -> None:
        """See `Sink`."""
        payloads, kept = [], np.zeros(len(block.payloads), bool)
        for k, payload in enumerate(block.payloads):
            try:
                payloads.append(_message(payload))
                kept[k] = True
            except zstandard.ZstdError:
                self.note(f"topic {channel.topic}: messages left out that do not inflate")
        publish = None if block.publish_ns is None else block.publish_ns[kept]
        self._target.add(channel, Block(payloads, block.receive_ns[kept], publish))


def _message(payload: bytes | memoryview) -> bytes:
    """One message.

    Raises:
        zstandard.ZstdError: damaged, or larger than any message of a robot.
    """
    size = zstandard.frame_content_size(payload)
    if size > _MAX_MESSAGE:
        raise zstandard.ZstdError(f"{size:,} bytes")
    return zstandard.ZstdDecompressor().decompress(payload, max_output_size=_MAX_MESSAGE)
