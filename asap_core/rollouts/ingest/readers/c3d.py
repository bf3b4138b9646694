"""C3D, the binary format of biomechanics, read with ezc3d: markers in POINT, NaN where occluded.

Time is (first frame + k) / POINT:RATE, so that a cropped take keeps its place. Length unit from POINT:UNITS. The axis
that POINT:Y_SCREEN names is vertical. Analog channels are not read.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.rollouts.ingest.readers.extras import require
from asap_core.rollouts.ingest.readers.mocap import Clock, length_unit, marker_stream, rate
from asap_core.rollouts.ingest.streams import Log

FORMAT = "c3d"
_BLOCK = 512
_KEY = 0x50


def sniff(path: Path) -> bool:
    """The key byte of C3D in the file's second byte and in its parameter section."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(2)
            if len(head) < 2 or head[1] != _KEY or head[0] == 0:
                return False
            stream.seek((head[0] - 1) * _BLOCK + 1)
            return stream.read(1) == bytes([_KEY])
    except OSError:
        return False


def read(path: Path) -> Log:
    """All markers.

    Raises:
        InputFileError: ezc3d is not installed, or the file is no C3D, damaged, cut or without markers.
    """
    ezc3d = require(path, "ezc3d", "C3D")
    _check_extent(path)
    try:
        content = ezc3d.c3d(str(path))
        points = np.asarray(content["data"]["points"], dtype=np.float64)
        group = content["parameters"]["POINT"]
        labels = [str(label) for key in ("LABELS", "LABELS2", "LABELS3") for label in _value(group, key)]
        first = int(content["header"]["points"]["first_frame"])
        hertz = rate(path, "POINT:RATE", str(_value(group, "RATE")[0]))
    except InputFileError:
        raise
    except Exception as error:  # the C++ library raises nearly anything on a damaged file
        raise InputFileError(path, f"not a readable C3D: {str(error)[:160] or type(error).__name__}") from None
    if points.ndim != 3 or not points.size:
        raise InputFileError(path, "no marker frames")
    labels += [f"point {i + 1}" for i in range(len(labels), points.shape[1])]
    frame = first + np.arange(points.shape[2])
    declared = length_unit(str(next(iter(_value(group, "UNITS")), ""))) | _up_axis(group)
    positions = np.moveaxis(points[:3], (0, 1, 2), (2, 1, 0))
    stream = marker_stream("markers", Clock(frame / hertz, frame), positions, labels[: points.shape[1]], declared)
    analog = content["data"]["analogs"].shape[1]
    notes = (f"{analog} analog channels not read",) if analog else ()
    return Log(path, FORMAT, sha256_file(path), (stream,), notes)


def _value(group: Any, name: str) -> list[Any]:
    return list(group[name]["value"]) if name in group else []


def _up_axis(group: Any) -> dict[str, str]:
    vertical = str(next(iter(_value(group, "Y_SCREEN")), "")).strip().lower()
    return {"up_axis": vertical[1]} if len(vertical) == 2 and vertical[0] == "+" and vertical[1] in "xyz" else {}


def _check_extent(path: Path) -> None:
    """The header's frames must fit into the file; ezc3d fills what is missing with zeros or allocates it.

    Raises:
        InputFileError: they do not, or the header is no C3D's.
    """
    size = path.stat().st_size
    with open(path, "rb") as stream:
        head = stream.read(_BLOCK)
    if len(head) < _BLOCK or not sniff(path):
        raise InputFileError(path, "not C3D: its key byte 0x50 is missing or the header is cut")
    (place,) = struct.unpack_from("<B", head)
    with open(path, "rb") as stream:
        stream.seek((place - 1) * _BLOCK)
        parameters = stream.read(4)
    order = ">" if len(parameters) == 4 and parameters[3] == 86 else "<"
    points, analogs, first, last = struct.unpack_from(f"{order}4H", head, 2)
    (start,) = struct.unpack_from(f"{order}H", head, 16)
    (scale,) = struct.unpack_from(f"{order}f", head, 12)
    frames = last - first + 1
    need = (start - 1) * _BLOCK + frames * (4 * points + analogs) * (4 if scale < 0 else 2)
    if start < 2 or frames < 1 or need > size + _BLOCK:
        raise InputFileError(path, f"cut or damaged: {frames} frames of {points} markers end at byte {need} of {size}")
