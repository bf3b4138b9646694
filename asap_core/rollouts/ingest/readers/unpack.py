"""From the bytes of one message to an object with its fields, by the library that owns the encoding."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from asap_core.rollouts.ingest.readers.blocks import Channel
from asap_core.rollouts.ingest.readers.definitions import known_types, stored_types

Unpack = Callable[[bytes | memoryview], Any]


class UnreadableDefinitionError(ValueError):
    """The recording neither holds a usable definition of the message, nor is it one that is known."""


def canonical(type_name: str) -> str:
    """`package/msg/Name` of any writing of a ROS type, DDS's `package::msg::dds_::Name_` among them."""
    parts = [part for part in type_name.replace("::", "/").replace(".", "/").split("/") if part not in ("msg", "dds_")]
    return "/msg/".join((parts[0], parts[-1].rstrip("_"))) if len(parts) > 1 else type_name


def ros_types(channel: Channel) -> tuple[Any, str]:
    """A type store that holds the channel's message, and the type's name in it.

    The recording's own definition comes first, then the known ones.

    Raises:
        UnreadableDefinitionError: neither has it.
    """
    name = canonical(channel.type_name)
    reason = "no definition in the file"
    if channel.schema and channel.schema_encoding in ("ros1msg", "ros2msg", "ros2idl"):
        try:
            store = stored_types(name, channel.schema_encoding, channel.schema.decode())
            store.get_msgdef(name)
            return store, name
        except Exception as error:  # the parser and the code that it makes fail in many ways on a damaged text
            reason = f"definition not understood: {type(error).__name__}"
    if channel.encoding == "cdr" and name in known_types().fielddefs:
        return known_types(), name
    raise UnreadableDefinitionError(reason)


def unpacker(channel: Channel) -> Unpack:
    """A function from payload to object; it raises whatever the library raises on damaged bytes.

    Raises:
        UnreadableDefinitionError: no definition, or an encoding that none of the libraries has.
    """
    if channel.encoding == "json":
        return lambda payload: json.loads(bytes(payload))
    if channel.encoding == "protobuf":
        return _protobuf(channel)
    if channel.encoding not in ("cdr", "ros1"):
        raise UnreadableDefinitionError(f"encoding {channel.encoding!r}, readable: cdr, ros1, protobuf, json")
    store, name = ros_types(channel)
    decode = store.deserialize_cdr if channel.encoding == "cdr" else store.deserialize_ros1
    return lambda payload: decode(payload, name)


def _protobuf(channel: Channel) -> Unpack:
    from mcap.records import Schema
    from mcap_protobuf.decoder import DecoderFactory

    schema = Schema(id=1, data=channel.schema, encoding=channel.schema_encoding, name=channel.type_name)
    try:
        decode = DecoderFactory().decoder_for("protobuf", schema)
    except Exception as error:  # protobuf raises its own kinds, and TypeErrors of its C library
        raise UnreadableDefinitionError(f"definition not understood: {type(error).__name__}") from None
    if decode is None:
        raise UnreadableDefinitionError(f"schema encoding {channel.schema_encoding!r}, expected 'protobuf'")
    return lambda payload: decode(bytes(payload))
