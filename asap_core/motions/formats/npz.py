"""Npz files: shapes told from the headers, and deterministic writing."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.files import atomic_file

_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def npz_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Shapes of an npz's fields by name from their headers alone; empty if it is none or cut."""
    try:
        if not path.is_file() or not zipfile.is_zipfile(path):
            return {}
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            return {name.removesuffix(".npy"): _shape(archive, name) for name in names}
    except Exception:  # a damaged archive can raise nearly anything; reading it will say what
        return {}


def write_npz(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays as an npz atomically; equal arrays give equal bytes."""
    with atomic_file(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for key, values in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, np.asarray(values, order="C"), allow_pickle=False)
            info = zipfile.ZipInfo(f"{key}.npy", _ZIP_DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, buffer.getvalue())


def _shape(archive: zipfile.ZipFile, name: str) -> tuple[int, ...]:
    with archive.open(name) as stream:
        major, _ = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape: tuple[int, ...] = read(stream)[0]
        return shape
