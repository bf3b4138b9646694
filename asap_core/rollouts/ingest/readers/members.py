"""Numbers out of decoded messages, whichever library decoded them: objects, protobuf messages and JSON alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def member(value: Any, name: str) -> Any:
    """Field `name` of a message or JSON object.

    Raises:
        KeyError: there is none.
    """
    if isinstance(value, dict):
        return value[name]
    try:
        return getattr(value, name)
    except AttributeError:
        raise KeyError(name) from None


def resolve(value: Any, path: Sequence[str]) -> Any:
    """What `path` leads to; a field that is a list of messages gives the list of what its elements lead to.

    Raises:
        KeyError: a part of the path is missing.
    """
    for at, name in enumerate(path):
        try:
            value = member(value, name)
        except KeyError:
            if isinstance(value, dict) or not _is_list(value):
                raise
            return [resolve(element, path[at:]) for element in value]
    return value


def has(value: Any, path: str) -> bool:
    """Whether a message has `path`."""
    try:
        resolve(value, path.split("."))
    except KeyError:
        return False
    return True


def stamp(message: Any) -> float:
    """Seconds of `header.stamp` or `timestamp`, whatever its fields are called; NaN if the message has none."""
    for path in ("header.stamp", "timestamp", "stamp"):
        if has(message, path):
            time = resolve(message, path.split("."))
            seconds = _first(time, ("sec", "secs", "seconds"))
            rest = _first(time, ("nanosec", "nsec", "nsecs", "nanos"))
            return float("nan") if seconds is None or rest is None else float(seconds) + float(rest) * 1e-9
    return float("nan")


def column(messages: Sequence[Any], path: str) -> NDArray[Any]:
    """(N, ...) values of `path`; numbers, or nested lists of numbers of one shape.

    Raises:
        KeyError: a message lacks the path.
        ValueError: shapes differ, or something else than numbers is there.
    """
    parts = path.split(".")
    found = [resolve(message, parts) for message in messages]
    values = np.array([list(value) for value in found] if found and _is_list(found[0]) else found)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{path} holds {values.dtype}, expected numbers")
    return values


def _is_list(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | dict)


def _first(value: Any, names: Sequence[str]) -> Any:
    return next((member(value, name) for name in names if has(value, name)), None)
