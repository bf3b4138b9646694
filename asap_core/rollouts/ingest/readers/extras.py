"""Libraries that only some readers need."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from asap_core.errors import InputFileError


def require(path: Path, module: str, what: str) -> Any:
    """The module, imported.

    Raises:
        InputFileError: not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InputFileError(
            path, f"{what} is read with {module}, which is not installed: pip install 'asap[robot]'"
        ) from None
