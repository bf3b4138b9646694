"""Track Row Column files (TRC, of Motion Analysis, used by OpenSim): markers after five header rows.

Row 3 has the values of row 2's names (rate, counts, units), row 4 the markers' names above their X columns. Empty
cells are occluded. The up axis is not written.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.rollouts.ingest.readers.mocap import Clock, frames, length_unit, marker_stream, rate
from asap_core.rollouts.ingest.readers.text import Lines, cells, first_line, read_numbers, separator_of
from asap_core.rollouts.ingest.streams import Log

FORMAT = "trc"


def sniff(path: Path) -> bool:
    """Text that starts with `PathFileType`."""
    return path.is_file() and first_line(path).lstrip('"').startswith("PathFileType")


def read(path: Path) -> Log:
    """The markers; time is frame by rate from the first time of the file.

    Raises:
        InputFileError: the header is cut or of another layout, or no frame can be read.
    """
    lines = Lines(path)
    head = [next(lines, "") for _ in range(5)]
    separator = separator_of(head[1])
    keys, found, names = (cells(line, separator) for line in head[1:4])
    meta = dict(zip(keys, found, strict=False))
    if "DataRate" not in meta or not names or not names[0].lower().startswith("frame"):
        raise InputFileError(path, "header: expected rows DataRate … and Frame#, Time, markers")
    hertz = rate(path, "DataRate", meta["DataRate"])
    labels = [name for name in names[2::3] if name]
    if not labels or any(cell for i, cell in enumerate(names[2:]) if i % 3):
        raise InputFileError(path, "header row 4: expected a marker's name above every third column")
    table = read_numbers(lines, separator, list(range(2 + 3 * len(labels))), pad=True)
    frame = frames(path, table.values[:, 0])
    start = table.values[0, 1] if np.isfinite(table.values[0, 1]) else 0.0
    clock = Clock(start + (frame - frame[0]) / hertz, frame)
    positions = table.values[:, 2:].reshape(len(frame), len(labels), 3)
    notes = list(table.notes)
    for key, read_count in (("NumFrames", len(frame)), ("NumMarkers", len(labels))):
        if meta.get(key, "").isdigit() and int(meta[key]) != read_count:
            notes.append(f"the header's {key} is {meta[key]}, {read_count} were read")
    stream = marker_stream("markers", clock, positions, labels, length_unit(meta.get("Units", "")))
    return Log(path, FORMAT, sha256_file(path), (stream,), tuple(notes), {key: meta[key] for key in meta if key})
