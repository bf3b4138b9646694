"""ROS 2 bags in SQLite: one file, with or without message definitions, whole or cut.

Source: rosbag2_storage_sqlite3 (tables topics, messages, and message_definitions since ROS 2 Iron).
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.readers.blocks import Block, Channel, Sink
from asap_core.rollouts.ingest.readers.collect import Collector
from asap_core.rollouts.ingest.readers.magic import begins_with
from asap_core.rollouts.ingest.streams import Log

MAGIC = b"SQLite format 3\0"

_ROWS = 512
_SIDE_FILES = ("-wal", "-journal")


def sniff(path: Path) -> bool:
    """Whether a file is an SQLite database."""
    return begins_with(path, MAGIC)


def read(path: Path) -> Log:
    """Everything a .db3 file holds.

    Raises:
        InputFileError: no SQLite database, not of ROS 2, or no message of it can be read.
    """
    collector = Collector(path, "db3")
    read_into(path, collector)
    return collector.log()


def read_into(path: Path, collector: Sink) -> None:
    """Give the messages of a .db3 to `collector` in the order in which they were written.

    Raises:
        InputFileError: no SQLite database or not of ROS 2.
    """
    try:
        with _opened(path) as database:
            channels = _channels(database)
            if not channels:
                raise InputFileError(path, "table topics: found no topic, expected those of a ROS 2 bag")
            _messages(database, channels, collector)
    except (sqlite3.Error, OverflowError) as error:
        raise InputFileError(path, f"no ROS 2 bag can be read from it: {error}") from None
    except OSError as error:
        raise InputFileError(path, f"cannot be read: {error.strerror or error}") from None


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The database, never written to; what a killed recorder left in a side file is applied in a copy."""
    beside = [side for suffix in _SIDE_FILES if (side := Path(f"{path}{suffix}")).exists() and side.stat().st_size]
    with tempfile.TemporaryDirectory() as folder:
        if beside:
            for source in (path, *beside):
                shutil.copyfile(source, Path(folder) / source.name)
            address = (Path(folder) / path.name).as_uri()
        else:
            address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as database:
            # Otherwise SQLite refuses a file that is shorter than its header says, however much of it is there.
            database.execute("PRAGMA writable_schema = ON")
            database.text_factory = lambda data: data.decode(errors="replace")
            yield database


def _channels(database: sqlite3.Connection) -> dict[int, Channel]:
    definitions = _definitions(database)
    channels = {}
    for key, name, kind, form in database.execute("SELECT id, name, type, serialization_format FROM topics"):
        encoding, text = definitions.get(str(kind), ("", ""))
        channels[key] = Channel(str(name), str(kind), str(form), encoding, text.encode())
    return channels


def _definitions(database: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """(encoding, text) by message type; empty where the bag is older than they are."""
    query = "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
    try:
        return {str(kind): (str(encoding), str(text)) for kind, encoding, text in database.execute(query)}
    except sqlite3.Error:
        return {}


def _messages(database: sqlite3.Connection, channels: dict[int, Channel], collector: Sink) -> None:
    cursor = database.execute("SELECT topic_id, timestamp, data FROM messages")
    while True:
        rows, error = _fetch(cursor)
        by_topic: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
        strange = 0
        for topic, time, data in rows:
            if topic in channels and isinstance(time, int) and time >= 0 and isinstance(data, bytes):
                by_topic[topic].append((time, data))
            else:
                strange += 1
        for topic, messages in by_topic.items():
            receive = np.array([time for time, _ in messages], np.uint64)
            collector.add(channels[topic], Block([data for _, data in messages], receive))
        if strange:
            collector.note("rows of table messages without a known topic, a time or bytes were left out")
        if error is not None:
            collector.note(f"damaged or cut after {collector.num_messages} messages ({error}); those were read")
        if error is not None or not rows:
            return


def _fetch(cursor: sqlite3.Cursor) -> tuple[list[tuple], sqlite3.Error | None]:
    """The next rows, and the error that ended them if one did."""
    rows: list[tuple] = []
    try:
        while len(rows) < _ROWS and (row := cursor.fetchone()) is not None:
            rows.append(row)
    except sqlite3.Error as error:
        return rows, error
    return rows, None
