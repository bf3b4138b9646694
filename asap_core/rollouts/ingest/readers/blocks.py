"""What a container of messages hands to the decoding of messages: raw payloads by topic, a block at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Channel:
    """One topic as the container describes it."""

    topic: str
    type_name: str
    """As written: `unitree_hg/msg/LowState`, `sensor_msgs/JointState`, `foxglove.PoseInFrame`."""
    encoding: str
    """Of the payloads: `cdr`, `ros1`, `protobuf`, `json`."""
    schema_encoding: str = ""
    """`ros2msg`, `ros2idl`, `ros1msg`, `protobuf`, `jsonschema`; empty if there is no schema."""
    schema: bytes = b""


@dataclass(frozen=True)
class Block:
    """Messages of one channel in the order of the file."""

    payloads: Sequence[bytes | memoryview]
    receive_ns: NDArray[np.uint64]
    """(N,) the recorder's clock."""
    publish_ns: NDArray[np.uint64] | None = None
    """(N,) the sender's clock where the container has one."""


class Sink(Protocol):
    """What a container gives its messages to."""

    @property
    def num_messages(self) -> int:
        """Messages taken so far."""

    @property
    def metadata(self) -> dict[str, Any]:
        """JSON-serialisable extras of the log, to be added to."""

    def note(self, text: str) -> None:
        """Say something of the recording, once."""

    def add(self, channel: Channel, block: Block) -> None:
        """Take messages of a channel."""
