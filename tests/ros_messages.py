"""Recordings that tests write: messages with every field set, in every container."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mcap.writer import CompressionType, Writer
from rosbags.interfaces import Nodetype
from rosbags.rosbag1 import Writer as Ros1Writer
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as Ros2Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from asap_core.rollouts.ingest.readers.definitions import DEFINITIONS, definition_text, known_types

START_NS = 1_764_460_000_000_000_000


@dataclass(frozen=True)
class Recorded:
    """A message with its topic and time of arrival."""

    topic: str
    type_name: str
    time_ns: int
    message: Any


def make(type_name: str, /, **fields: Any) -> Any:
    """A message object of the ROS 2 definitions."""
    return known_types().types[type_name](**fields)


def header(time_ns: int, frame: str = "world") -> Any:
    """std_msgs/Header."""
    stamp = make("builtin_interfaces/msg/Time", sec=time_ns // 10**9, nanosec=time_ns % 10**9)
    return make("std_msgs/msg/Header", stamp=stamp, frame_id=frame)


def vector(kind: str, values: Sequence[float], letters: str = "xyz") -> Any:
    """Point, Vector3 or Quaternion."""
    return make(f"geometry_msgs/msg/{kind}", **dict(zip(letters, map(float, values), strict=True)))


def pose(pos: Sequence[float], xyzw: Sequence[float]) -> Any:
    """geometry_msgs/Pose."""
    orientation = vector("Quaternion", xyzw, "xyzw")
    return make("geometry_msgs/msg/Pose", position=vector("Point", pos), orientation=orientation)


def random_message(type_name: str, rng: np.random.Generator, store: Any = None) -> Any:
    """A message with a random number in every field; strings are 'world'."""
    store = store or known_types()
    values = {name: _random(node, rng, store) for name, node in store.fielddefs[type_name][1]}
    return store.types[type_name](**values)


def _random(node: Any, rng: np.random.Generator, store: Any) -> Any:
    kind, detail = node
    if kind == Nodetype.NAME:
        return random_message(detail, rng, store)
    if kind == Nodetype.BASE:
        return "world" if detail[0] == "string" else _numbers(detail[0], rng, 1)[0].item()
    (inner, inner_detail), count = detail
    if kind == Nodetype.SEQUENCE:
        count = 3
    if inner == Nodetype.NAME:
        return [random_message(inner_detail, rng, store) for _ in range(count)]
    return _numbers(inner_detail[0], rng, count)


def _numbers(base: str, rng: np.random.Generator, count: int) -> Any:
    if base.startswith("float"):
        return rng.normal(size=count).astype(base)
    info = np.iinfo(base)
    return rng.integers(info.min, info.max, count, dtype=base, endpoint=True)


def robot_run(seconds: float = 0.4, *, seed: int = 0, crc: int = 0) -> list[Recorded]:
    """LowState at 500 Hz, LowCmd at 50 Hz and a mocap pose at 100 Hz, in the order of arrival."""
    rng = np.random.default_rng(seed)
    run = []
    for k in range(int(seconds * 500)):
        state = random_message("unitree_hg/msg/LowState", rng)
        state.tick, state.crc = 2 * k, crc
        run.append(Recorded("/lowstate", "unitree_hg/msg/LowState", START_NS + 2_000_000 * k, state))
    for k in range(int(seconds * 50)):
        command = random_message("unitree_hg/msg/LowCmd", rng)
        command.crc = crc
        run.append(Recorded("/lowcmd", "unitree_hg/msg/LowCmd", START_NS + 20_000_000 * k + 300_000, command))
    for k in range(int(seconds * 100)):
        stamp = START_NS + 10_000_000 * k
        stamped = make(
            "geometry_msgs/msg/PoseStamped", header=header(stamp), pose=pose(rng.normal(size=3), rng.normal(size=4))
        )
        run.append(Recorded("/mocap/pose", "geometry_msgs/msg/PoseStamped", stamp + 5_100_000, stamped))
    return sorted(run, key=lambda recorded: recorded.time_ns)


def write_mcap(
    path: Path,
    run: Sequence[Recorded],
    *,
    little_endian: bool = True,
    compression: CompressionType = CompressionType.ZSTD,
    chunk_size: int = 100_000,
    use_chunking: bool = True,
    definitions: bool = True,
) -> None:
    """ROS 2 messages as the MCAP library writes them."""
    with open(path, "wb") as stream:
        writer = Writer(stream, chunk_size=chunk_size, compression=compression, use_chunking=use_chunking)
        writer.start(profile="ros2")
        channels: dict[str, int] = {}
        for recorded in run:
            if recorded.topic not in channels:
                text = definition_text(recorded.type_name).encode() if definitions else b""
                schema = writer.register_schema(recorded.type_name, "ros2msg" if definitions else "", text)
                channels[recorded.topic] = writer.register_channel(recorded.topic, "cdr", schema)
            data = bytes(known_types().serialize_cdr(recorded.message, recorded.type_name, little_endian=little_endian))
            writer.add_message(channels[recorded.topic], recorded.time_ns, data, recorded.time_ns)
        writer.finish()


def write_mcap_json(path: Path, run: Sequence[Recorded]) -> None:
    """The same messages as JSON."""
    with open(path, "wb") as stream:
        writer = Writer(stream)
        writer.start()
        channels: dict[str, int] = {}
        for recorded in run:
            if recorded.topic not in channels:
                schema = writer.register_schema(recorded.type_name, "jsonschema", b'{"type": "object"}')
                channels[recorded.topic] = writer.register_channel(recorded.topic, "json", schema)
            data = json.dumps(_plain(asdict(recorded.message))).encode()
            writer.add_message(channels[recorded.topic], recorded.time_ns, data, recorded.time_ns)
        writer.finish()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if not key.startswith("__")}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def ros1_types() -> Any:
    """ROS 1's messages with Unitree's among them."""
    store = get_typestore(Stores.ROS1_NOETIC)
    for name, text in DEFINITIONS.items():
        if name.startswith("unitree"):
            store.register(get_types_from_msg(text, name))
    return store


def as_ros1(message: Any, type_name: str, store: Any) -> Any:
    """The same message with ROS 1's header."""
    values = {}
    for name, (kind, detail) in store.fielddefs[type_name][1]:
        value = getattr(message, name, 7)
        if kind == Nodetype.NAME:
            value = as_ros1(value, detail, store)
        elif kind == Nodetype.ARRAY and detail[0][0] == Nodetype.NAME:
            value = [as_ros1(item, detail[0][1], store) for item in value]
        values[name] = value
    return store.types[type_name](**values)


def write_ros1_bag(path: Path, run: Sequence[Recorded], compression: str | None = None) -> None:
    """The same messages as a ROS 1 bag."""
    store = ros1_types()
    writer = Ros1Writer(path)
    if compression:
        writer.chunk_threshold = 50_000
        writer.set_compression(Ros1Writer.CompressionFormat[compression.upper()])
    with writer:
        connections: dict[str, Any] = {}
        for recorded in run:
            if recorded.topic not in connections:
                connections[recorded.topic] = writer.add_connection(recorded.topic, recorded.type_name, typestore=store)
            message = as_ros1(recorded.message, recorded.type_name, store)
            data = store.serialize_ros1(message, recorded.type_name)
            writer.write(connections[recorded.topic], recorded.time_ns, data)


def write_mcap_ros1(path: Path, run: Sequence[Recorded]) -> None:
    """The same messages of ROS 1 in MCAP."""
    store = ros1_types()
    with open(path, "wb") as stream:
        writer = Writer(stream)
        writer.start(profile="ros1")
        channels: dict[str, int] = {}
        for recorded in run:
            if recorded.topic not in channels:
                text, _ = store.generate_msgdef(recorded.type_name, ros_version=1)
                name = recorded.type_name.replace("/msg/", "/")
                schema = writer.register_schema(name, "ros1msg", text.encode())
                channels[recorded.topic] = writer.register_channel(recorded.topic, "ros1", schema)
            message = as_ros1(recorded.message, recorded.type_name, store)
            data = bytes(store.serialize_ros1(message, recorded.type_name))
            writer.add_message(channels[recorded.topic], recorded.time_ns, data, recorded.time_ns)
        writer.finish()


def write_bag(
    path: Path,
    run: Sequence[Recorded],
    plugin: StoragePlugin = StoragePlugin.SQLITE3,
    compression: CompressionMode = CompressionMode.NONE,
) -> Path:
    """The same messages as a ROS 2 bag folder; its only storage file is returned."""
    writer = Ros2Writer(path, version=9, storage_plugin=plugin)
    if compression != CompressionMode.NONE:
        writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        connections: dict[str, Any] = {}
        for recorded in run:
            if recorded.topic not in connections:
                connections[recorded.topic] = writer.add_connection(
                    recorded.topic, recorded.type_name, typestore=known_types()
                )
            data = known_types().serialize_cdr(recorded.message, recorded.type_name)
            writer.write(connections[recorded.topic], recorded.time_ns, data)
    return next(file for file in path.iterdir() if file.suffix != ".yaml")


def strip_definitions(path: Path) -> None:
    """Make a .db3 as old recorders wrote it, without message definitions."""
    database = sqlite3.connect(path)
    database.execute("DROP TABLE message_definitions")
    database.commit()
    database.close()
