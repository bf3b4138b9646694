"""C3D, the binary format of biomechanics, read with ezc3d: markers in POINT, NaN where occluded.

Time is (first frame + k) / POINT:RATE, so that a cropped take keeps its place. Length unit from POINT:UNITS. The axis
that POINT:Y_SCREEN names is vertical. Analog channels are not read.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.rollouts.ingest.readers import c3d_worker
from asap_core.rollouts.ingest.readers.extras import require
from asap_core.rollouts.ingest.readers.mocap import Clock, length_unit, marker_stream, rate
from asap_core.rollouts.ingest.streams import Log

FORMAT = "c3d"
_BLOCK = 512
_KEY = 0x50
_PATIENCE_S, _PATIENCE_S_PER_BYTE = 20.0, 2e-6
"""How long the worker may take; it reads 2 MB in a second, and on some damage never ends."""


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
    require(path, "ezc3d", "C3D")
    _check_extent(path)
    content = _in_own_process(path)
    points = content["points"]
    if points.ndim != 3 or not points.size:
        raise InputFileError(path, "no marker frames")
    hertz = rate(path, "POINT:RATE", _first(content["rate"]))
    count = points.shape[1]
    labels = content["labels"].tolist()[:count]
    labels += [f"point {i + 1}" for i in range(len(labels), count)]
    frame = int(content["first_frame"]) + np.arange(points.shape[2])
    declared = length_unit(_first(content["units"])) | _up_axis(_first(content["vertical"]))
    stream = marker_stream("markers", Clock(frame / hertz, frame), points.transpose(2, 1, 0), labels, declared)
    analog = int(content["analogs"])
    notes = (f"{analog} analog channels not read",) if analog else ()
    return Log(path, FORMAT, sha256_file(path), (stream,), notes)


def _in_own_process(path: Path) -> dict[str, NDArray[Any]]:
    """What the worker read; a crash of the C++ library ends the worker only."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "points.npz"
        command = [sys.executable, "-P", c3d_worker.__file__, str(path.resolve()), str(out)]
        patience = _PATIENCE_S + _PATIENCE_S_PER_BYTE * path.stat().st_size
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=patience)
        except subprocess.TimeoutExpired:
            raise InputFileError(path, f"not a readable C3D: no end after {patience:.0f} s") from None
        if done.returncode or not out.is_file():
            said = done.stderr.strip().splitlines()[-1:] or ["damaged so that the reading library crashed"]
            raise InputFileError(path, f"not a readable C3D: {said[0][:160]}")
        with np.load(out, allow_pickle=False) as content:
            return {name: content[name] for name in content.files}


def _first(values: NDArray[Any]) -> str:
    return str(values[0]).strip() if values.size else ""


def _up_axis(vertical: str) -> dict[str, str]:
    axis = vertical.lower()
    return {"up_axis": axis[1]} if len(axis) == 2 and axis[0] == "+" and axis[1] in "xyz" else {}


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
