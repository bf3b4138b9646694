"""PACE's `chirp_data.pt`: `torch.save` of `time` (T,), `dof_pos` and `des_dof_pos` (T, J), read as tensors only."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.restricted_pickle import load_torch
from asap_core.rollouts.ingest.readers.assembly import Field, make_streams, unread
from asap_core.rollouts.ingest.streams import Log

FORMAT = "pace"
_KEYS = ("time", "dof_pos", "des_dof_pos")


def sniff(path: Path) -> bool:
    """A zip of torch's layout whose pickle names `des_dof_pos`."""
    if not path.is_file() or path.suffix.lower() not in (".pt", ".pth"):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            name = next((name for name in archive.namelist() if name.endswith("/data.pkl")), None)
            if name is None or archive.getinfo(name).file_size > 1 << 20:
                return False
            return b"des_dof_pos" in archive.read(name)
    except Exception:  # a damaged zip raises nearly anything; it is then another reader's
        return False


def read(path: Path) -> Log:
    """Joint angles and their targets; joint names and order are not in the file.

    Raises:
        InputFileError: cut, holding anything but tensors, or tensors of other shapes.
    """
    content = load_torch(path)
    if not isinstance(content, dict) or any(key not in content for key in _KEYS):
        found = ", ".join(map(str, content)) if isinstance(content, dict) else type(content).__name__
        raise InputFileError(path, f"found {found[:200]}, expected {', '.join(_KEYS)}")
    arrays = {key: _numbers(path, key, content[key]) for key in _KEYS}
    time = arrays["time"].reshape(-1)
    shape = arrays["dof_pos"].shape
    if len(shape) != 2 or len(time) != shape[0] or arrays["des_dof_pos"].shape != shape or not arrays["dof_pos"].size:
        found = ", ".join(f"{key} {tuple(values.shape)}" for key, values in arrays.items())
        raise InputFileError(path, f"found {found}, expected time (T,), dof_pos and des_dof_pos (T, J)")
    fields = [
        Field("joint_state", "joint_pos", arrays["dof_pos"]),
        Field("joint_command", "joint_target", arrays["des_dof_pos"]),
    ]
    streams = make_streams(path.stem, fields, receive_time=time, declared={"time_unit": "s"})
    return Log(path, FORMAT, sha256_file(path), streams, unread("keys", [str(k) for k in content if k not in _KEYS]))


def _numbers(path: Path, key: str, value: object) -> NDArray[np.float64]:
    import torch

    if not isinstance(value, torch.Tensor) or value.is_complex() or value.layout != torch.strided:
        raise InputFileError(path, f"field {key}: found {type(value).__name__}, expected a dense tensor of numbers")
    return value.to(torch.float64).numpy()
