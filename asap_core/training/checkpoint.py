"""Checkpoints: plain containers, numbers, strings and tensors, so that they load with `weights_only`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from asap_core.errors import InputFileError
from asap_core.files import write_tensors

FORMAT_VERSION = 2


def _to_tensors(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, dict):
        return {k: _to_tensors(v) for k, v in value.items()}
    return value


def _to_arrays(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.numpy()
    if isinstance(value, dict):
        return {k: _to_arrays(v) for k, v in value.items()}
    return value


def save_checkpoint(
    path: Path | str, learner: dict[str, Any], processes: Sequence[dict[str, Any]], extra: dict[str, Any]
) -> None:
    """Write all that is needed to go on, atomically.

    Args:
        path: the file.
        learner: networks, normalisers, optimiser.
        processes: `PpoTrainer.process_state` of each process that trains.
        extra: plain data.
    """
    content = {
        "format_version": FORMAT_VERSION,
        "learner": learner,
        "processes": [_to_tensors(process) for process in processes],
        "extra": extra,
    }
    write_tensors(path, content)


def load_checkpoint(path: Path | str) -> dict[str, Any]:
    """Read a checkpoint; the `environment` of each of `processes` comes back as numpy arrays.

    Raises:
        InputFileError: missing, truncated, of another version, or holding more than plain data.
    """
    if not Path(path).is_file():
        raise InputFileError(path, "missing; expected a checkpoint")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises half a dozen types for damaged files
        raise InputFileError(path, f"not a readable checkpoint: {str(error).splitlines()[0]}") from None
    found = content.get("format_version") if isinstance(content, dict) else None
    if found != FORMAT_VERSION:
        raise InputFileError(path, f"format_version is {found!r}, expected {FORMAT_VERSION}")
    processes = [{**process, "environment": _to_arrays(process["environment"])} for process in content["processes"]]
    return {**content, "processes": processes}
