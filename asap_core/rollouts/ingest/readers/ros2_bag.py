"""ROS 2 bags as folders: metadata.yaml if there is one, and one or several .db3 or .mcap files, compressed or not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.readers import db3, mcap
from asap_core.rollouts.ingest.readers.blocks import Sink
from asap_core.rollouts.ingest.readers.collect import Collector
from asap_core.rollouts.ingest.readers.inflate import SUFFIX, ZSTD, Inflating, inflated
from asap_core.rollouts.ingest.streams import Log

METADATA = "metadata.yaml"

_INFORMATION = "rosbag2_bagfile_information"
_READERS: dict[str, Callable[[Path, Sink], None]] = {".mcap": mcap.read_into, ".db3": db3.read_into}
_SPLIT = re.compile(r"^(?P<stem>.*?)(?:_(?P<number>\d+))?$")
_MAX_METADATA = 10_000_000


def sniff(path: Path) -> bool:
    """Whether a folder holds a bag's metadata, or one bag's files and nothing else.

    Without metadata, several files are one bag only where they are named `<folder>_<number>`, as rosbag2 names the
    parts of a split bag; `run_1.mcap` and `run_2.mcap` in a folder of logs are two runs.
    """
    try:
        return path.is_dir() and (_names_bag(path / METADATA) or _is_one_bag(path))
    except OSError:
        return False


def read(path: Path) -> Log:
    """Everything the bag holds; the files of a split bag follow each other.

    Raises:
        InputFileError: no file of the bag, several bags in one folder, compressed files, or no message can be read.
    """
    collector = Collector(path, "ros2_bag")
    metadata = _metadata(path, collector)
    form, mode = str(metadata.get("compression_format") or ""), str(metadata.get("compression_mode") or "").lower()
    if form not in ("", ZSTD):
        raise InputFileError(path / METADATA, f"compression_format: found {form!r}, expected none or {ZSTD!r}")
    target: Sink = Inflating(collector) if mode == "message" else collector
    for file in _ordered(path, metadata, collector):
        try:
            with inflated(file) as plain:
                _READERS[_kind(file)](plain, target)
        except InputFileError as error:
            collector.note(f"{file.name} not read: {error.reason}")
    promised = metadata.get("message_count")
    if isinstance(promised, int) and promised != collector.num_messages:
        collector.note(f"{METADATA} says {promised} messages, the files hold {collector.num_messages}")
    return collector.log()


def _names_bag(path: Path) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as stream:
        return _INFORMATION.encode() in stream.read(4096)


def _is_one_bag(path: Path) -> bool:
    files = _files(path)
    own = (METADATA, *(file.name for file in files))
    others = [child for child in path.iterdir() if not child.name.startswith((".", *own))]
    parts_of_one = len(files) == 1 or all(_part(file)[0] == path.name for file in files)
    return bool(files) and not others and parts_of_one


def _files(path: Path) -> list[Path]:
    """Files of the folder with the magic bytes of a bag."""
    found = [file for file in sorted(path.iterdir()) if _kind(file) in _READERS and file.is_file()]
    return [file for file in found if file.suffix == SUFFIX or mcap.sniff(file) or db3.sniff(file)]


def _kind(file: Path) -> str:
    """The suffix under that of compression."""
    return Path(file.name.removesuffix(SUFFIX)).suffix.lower()


def _metadata(path: Path, collector: Collector) -> dict[str, Any]:
    """What metadata.yaml says, empty if it is missing or damaged."""
    file = path / METADATA
    if not file.is_file():
        collector.note(f"no {METADATA}; the files tell what they hold")
        return {}
    try:
        if file.stat().st_size > _MAX_METADATA:
            raise ValueError("larger than any of a bag")
        content = yaml.safe_load(file.read_text())
        information = content[_INFORMATION]
        return {str(key): value for key, value in information.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, yaml.YAMLError) as error:
        collector.note(f"{METADATA} is damaged ({type(error).__name__}); the files tell what they hold")
        return {}


def _ordered(path: Path, metadata: dict[str, Any], collector: Collector) -> list[Path]:
    """The bag's files in the order of recording.

    Raises:
        InputFileError: there is none, or they belong to several bags.
    """
    listed = metadata.get("relative_file_paths")
    if isinstance(listed, list) and listed:
        files = [path / Path(str(name)).name for name in listed]
        for file in files:
            if not file.is_file():
                collector.note(f"{file.name} is missing, though {METADATA} lists it")
        present = [file for file in files if file.is_file() and _kind(file) in _READERS]
        if present:
            return present
    files = _files(path)
    if not files:
        raise InputFileError(path, "holds no .db3 or .mcap of a ROS 2 bag")
    stems = {_part(file)[0] for file in files}
    if len(stems) > 1:
        raise InputFileError(path, f"holds several bags ({', '.join(sorted(stems))}) and no {METADATA}; name one file")
    return sorted(files, key=_part)


def _part(file: Path) -> tuple[str, int]:
    """(name without the number, number) of a file of a split bag: `run_10.mcap` comes after `run_9.mcap`."""
    match = _SPLIT.match(Path(file.name.removesuffix(SUFFIX)).stem)
    assert match is not None
    return match["stem"], int(match["number"] or 0)
