"""Readers of robot logs by name: what is readable, and which reader a path belongs to."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.streams import Log


@dataclass(frozen=True)
class Reader:
    """One layout of logs."""

    id: str
    """Key in `READERS` and `Log.format`."""
    title: str
    """What a user calls it."""
    suffixes: tuple[str, ...]
    """Lower case, with the dot; '' for a folder."""
    sniff: Callable[[Path], bool]
    """Whether an existing path looks like this layout, from its first bytes or its file names; never raises."""
    read: Callable[[Path], Log]
    """Everything the log holds; raises `InputFileError` if nothing of it can be read."""


def _reader(id: str, title: str, suffixes: tuple[str, ...], module: str) -> Reader:
    """A reader whose module, with functions `sniff(path)` and `read(path)`, is imported at first use."""

    def call(name: str, path: Path) -> object:
        return getattr(importlib.import_module(f"{__name__}.{module}"), name)(path)

    def sniff(path: Path) -> bool:
        try:
            return bool(call("sniff", path))
        except ModuleNotFoundError:
            return path.suffix.lower() in suffixes and path.is_file()

    def read(path: Path) -> Log:
        try:
            log = call("read", path)
        except ModuleNotFoundError as error:
            reason = f"{title} is read with {error.name}, which is not installed: pip install 'asap[robot]'"
            raise InputFileError(path, reason) from None
        assert isinstance(log, Log)
        return log

    return Reader(id, title, suffixes, sniff, read)


_ALL: tuple[Reader, ...] = (
    _reader("ros2_bag", "ROS 2 bag folder (metadata.yaml, .db3 or .mcap)", ("",), "ros2_bag"),
    _reader("mcap", "MCAP (ROS 2, ROS 1, protobuf, JSON)", (".mcap",), "mcap"),
    _reader("db3", "ROS 2 bag file (SQLite)", (".db3",), "db3"),
    _reader("ros1_bag", "ROS 1 bag", (".bag",), "ros1_bag"),
    _reader("sage", "SAGE folder (control.csv, state_motor.csv)", ("",), "sage"),
    _reader("lerobot", "LeRobot data set v2.1 or v3.0", ("",), "lerobot"),
    _reader("asap_npz", "ASAP real log motion_<n>.npz", (".npz",), "asap_npz"),
    _reader("asap_pkl", "ASAP or PBHC pkl with action", (".pkl",), "asap_pkl"),
    _reader("pace", "PACE recording", (".pt",), "pace"),
    _reader("bam", "BAM motor record", (".json",), "bam"),
    _reader("matlab", "MATLAB v7.3 or v5", (".mat",), "matlab"),
    _reader("hdf5", "HDF5", (".h5", ".hdf5"), "hdf5"),
    _reader("c3d", "C3D motion capture", (".c3d",), "c3d"),
    _reader("motive_csv", "OptiTrack Motive CSV 1.2x", (".csv",), "motive"),
    _reader("optitrack_v1", "OptiTrack CSV 1.1", (".csv",), "motive_v1"),
    _reader("vicon_csv", "Vicon CSV", (".csv",), "vicon"),
    _reader("trc", "TRC motion capture", (".trc",), "trc"),
    _reader("qualisys_tsv", "Qualisys TSV (3D, 6D)", (".tsv",), "qualisys"),
    _reader("csv", "CSV with joint columns", (".csv",), "table_csv"),
)

READERS: Mapping[str, Reader] = {reader.id: reader for reader in _ALL}
"""In the order in which they are asked: the narrower layout before the wider."""


def sniff(path: Path) -> Reader | None:
    """The reader that `path` belongs to, None if no reader knows it.

    Content decides; between several that accept it, one whose suffix fits comes first.
    """
    suffix = "" if path.is_dir() else path.suffix.lower()
    fitting = sorted(READERS.values(), key=lambda reader: suffix not in reader.suffixes)
    return next((reader for reader in fitting if reader.sniff(path)), None)


def read_log(path: Path | str) -> Log:
    """Read a log of any known layout.

    Raises:
        InputFileError: missing, of no known layout, or nothing of it can be read.
    """
    path = Path(path)
    if not path.exists():
        raise InputFileError(path, "missing")
    reader = sniff(path)
    if reader is None:
        known = "; ".join(f"{reader.title} {'/'.join(filter(None, reader.suffixes))}".strip() for reader in _ALL)
        found = "an empty file" if path.is_file() and path.stat().st_size == 0 else "no log that a reader knows"
        raise InputFileError(path, f"holds {found}. Readable: {known}")
    return reader.read(path)
