"""From blocks of messages to a `Log`: what is read is decoded as it comes, what is not is counted and said."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from asap_core.errors import InputFileError
from asap_core.files import sha256_tree
from asap_core.rollouts.ingest.readers.array_decoder import ArrayDecoder
from asap_core.rollouts.ingest.readers.blocks import Block, Channel
from asap_core.rollouts.ingest.readers.families import FAMILIES, family_of
from asap_core.rollouts.ingest.readers.gather import Decoder
from asap_core.rollouts.ingest.readers.layout import VariableSizeError
from asap_core.rollouts.ingest.readers.named import NAMED
from asap_core.rollouts.ingest.readers.object_decoder import ObjectDecoder
from asap_core.rollouts.ingest.readers.unpack import UnreadableDefinitionError, ros_types, unpacker
from asap_core.rollouts.ingest.streams import Log


class Collector:
    """Gathers one recording."""

    def __init__(self, path: Path, format_id: str) -> None:
        self._path = path
        self._format = format_id
        self._decoders: dict[Channel, Decoder | None] = {}
        self._unread: dict[Channel, str] = {}
        self._counts: Counter[Channel] = Counter()
        self._notes: list[str] = []
        self.metadata: dict[str, Any] = {}
        """JSON-serialisable extras of the log."""

    @property
    def num_messages(self) -> int:
        """Messages given so far."""
        return self._counts.total()

    def note(self, text: str) -> None:
        """Say something of the recording."""
        if text not in self._notes:
            self._notes.append(text)

    def add(self, channel: Channel, block: Block) -> None:
        """Take messages of a channel."""
        self._counts[channel] += len(block.payloads)
        if channel not in self._decoders:
            self._decoders[channel] = self._decoder(channel)
        decoder = self._decoders[channel]
        if decoder is not None and len(block.payloads):
            decoder.add(block)

    def _decoder(self, channel: Channel) -> Decoder | None:
        try:
            decoder = decoder_for(channel)
        except UnreadableDefinitionError as error:
            self._unread[channel] = str(error)
            return None
        if decoder is None:
            self._unread[channel] = "carries nothing that is read"
        return decoder

    def log(self) -> Log:
        """The log.

        Raises:
            InputFileError: there was not one message.
        """
        if not self.num_messages:
            said = f" ({'; '.join(self._notes)})" if self._notes else ""
            raise InputFileError(self._path, f"no message can be read{said}")
        streams = []
        for channel, decoder in self._decoders.items():
            if decoder is not None:
                streams += decoder.streams()
                self._notes += [f"topic {channel.topic}: {note}" for note in decoder.notes()]
        for channel, reason in self._unread.items():
            kind = f"{channel.type_name}, {channel.encoding}" if channel.type_name else channel.encoding
            self._notes.append(f"topic {channel.topic} ({kind}): {self._counts[channel]} messages not read: {reason}")
        topics = [
            {"topic": channel.topic, "type": channel.type_name, "messages": count}
            for channel, count in self._counts.items()
        ]
        return Log(
            self._path,
            self._format,
            sha256_tree(self._path),
            tuple(streams),
            tuple(self._notes),
            {**self.metadata, "topics": topics},
        )


def decoder_for(channel: Channel) -> Decoder | None:
    """What decodes a channel, None if its messages carry nothing that is read.

    Raises:
        UnreadableDefinitionError: they would be read, but their definition is missing or damaged.
    """
    name = family_of(channel.type_name)
    if name is None:
        return None
    if name in NAMED:
        return NAMED[name](channel.topic, unpacker(channel))
    if channel.encoding in ("cdr", "ros1"):
        store, type_name = ros_types(channel)
        try:
            return ArrayDecoder(channel, FAMILIES[name], store.fielddefs, type_name)
        except (VariableSizeError, KeyError):
            raise UnreadableDefinitionError("definition: found sequences, expected numbers and strings") from None
    return ObjectDecoder(channel, FAMILIES[name], unpacker(channel))
