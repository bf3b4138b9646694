"""A robot's log and the motion capture of the same run, recorded to a file of its own, as one log."""

from __future__ import annotations

from dataclasses import replace

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.streams import Log

MOCAP = "asap.mocap"
"""Key of the joined log's metadata: name and sha256 of the file with the motion capture."""


def with_mocap(log: Log, mocap: Log) -> Log:
    """`log` with the bodies of `mocap`, stamps as they are: ingest finds the clocks' offset by the turning of both.

    Raises:
        InputFileError: `mocap` has no body with position and orientation.
    """
    bodies = [stream for stream in mocap.streams if {"pos", "quat"} <= set(stream.values)]
    if not bodies:
        found = ", ".join(f"{stream.name} ({stream.kind})" for stream in mocap.streams) or "nothing"
        raise InputFileError(mocap.path, f"found {found}, expected a rigid body with position and orientation")
    taken = {stream.name for stream in log.streams}
    named = [replace(s, name=f"mocap/{s.name}" if s.name in taken else s.name) for s in bodies]
    notes = (*log.notes, *(f"{mocap.path.name}: {note}" for note in mocap.notes))
    source = {"path": mocap.path.name, "sha256": mocap.sha256}
    return replace(log, streams=(*log.streams, *named), notes=notes, metadata={**log.metadata, MOCAP: source})
