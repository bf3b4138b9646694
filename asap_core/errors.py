"""Every error the product raises on purpose. Each message names file, field, found, expected and the valid answers."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class AsapError(Exception):
    """Base of all errors a user can meet; the command line prints its text and exits non-zero, without a traceback."""


class ConfigError(AsapError):
    """`params.yaml` holds an unknown key, a wrong type or a value out of range."""


class InputFileError(AsapError):
    """A file that a stage reads is missing, truncated, of another format or holds impossible values.

    Attributes:
        path: the file.
        reason: what is wrong with it, without the path.
    """

    def __init__(self, path: Path | str, reason: str) -> None:
        self.path = Path(path)
        self.reason = reason
        super().__init__(f"{path}: {reason}")


class UnknownNameError(AsapError):
    """A joint, link, motion, robot, stage or other name that does not exist."""


class ContractError(AsapError):
    """A policy or delta model does not fit the robot, the motion or the simulator it is used with."""


class MissingPartError(AsapError):
    """An optional package is not installed; the message names the make target that brings it."""


class StageError(AsapError):
    """A stage cannot run or did not reach what it promises."""


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> UnknownNameError:
    """An `UnknownNameError` that lists the valid names and suggests the nearest."""
    names = sorted(valid)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UnknownNameError(f"unknown {kind} {name!r}; valid: {', '.join(names)}.{hint}")


def check_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise `unknown_name` for the first of `names` that is not in `known`."""
    valid = list(known)
    for name in names:
        if name not in valid:
            raise unknown_name(kind, name, valid)
