"""What the readers share: numbers and text taken from npz files and dicts, every fault named, every size bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.pickle_stand_ins import MAX_BYTES
from asap_core.rotations import Array

_MOST_ITEMS = 1 << 24
"""Numbers of a nested list."""
_DEEPEST = 5


class NpzFields(Mapping[str, Array]):
    """The numeric fields of an npz, opened one by one when asked for and never with pickle.

    Raises:
        InputFileError: missing, truncated, no npz or more than 1 GiB; from a look-up, a field that is missing or holds
            no numbers.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise InputFileError(path, "a folder, expected a file" if path.is_dir() else "missing")
        try:
            archive = np.load(path, allow_pickle=False)
        except Exception as error:  # a damaged archive can raise nearly anything
            text = "neither npz nor npy" if "pickle" in str(error) else str(error)
            raise InputFileError(path, f"not a whole npz file: {text}") from None
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputFileError(path, "found a single array, expected an npz")
        self._archive = archive
        assert archive.zip is not None  # as long as it is open
        size = sum(item.file_size for item in archive.zip.infolist())
        if size > MAX_BYTES:
            archive.close()
            raise InputFileError(path, f"size: found {size} bytes, expected at most {MAX_BYTES}")

    def __enter__(self) -> NpzFields:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    def __iter__(self) -> Iterator[str]:
        return iter(self._archive.files)

    def __len__(self) -> int:
        return len(self._archive.files)

    def __contains__(self, key: object) -> bool:
        return key in self._archive.files

    def __getitem__(self, key: str) -> Array:
        return numbers(self.path, key, self.raw(key))

    def get(self, key: str, default: Any = None) -> Any:
        """Numbers of a field, `default` if there is none; one that holds no numbers is refused all the same."""
        return self[key] if key in self else default  # noqa: SIM401 (it would call itself)

    def raw(self, key: str) -> Any:
        """A field as it is, text for instance."""
        if key not in self:
            raise InputFileError(self.path, f"{key}: missing; found {listed(self)}")
        try:
            return self._archive[key]
        except Exception as error:
            raise InputFileError(self.path, f"{key}: cannot be read: {error}") from None

    def text(self, key: str) -> str | None:
        """A field that holds one text, None if there is none."""
        values = self.texts(key)
        return values[0] if values is not None and len(values) == 1 else None

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A field that holds a list of texts, None if there is none."""
        if key not in self:
            return None
        try:
            value = self._archive[key]
        except Exception:  # an object array; text is never worth a pickle
            return None
        return texts(value)


def listed(names: Iterable[Any]) -> str:
    """Names for an error text, the first 30 of many."""
    words = [str(name)[:80] for name in names]
    return ", ".join(words[:30]) + (f" and {len(words) - 30} more" if len(words) > 30 else "") or "no field"


def texts(value: Any) -> tuple[str, ...] | None:
    """A list or array of texts as a tuple, None for anything else."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "US":
            return None
        value = value.reshape(-1).tolist()
    if not isinstance(value, list | tuple):
        return None
    out = tuple(item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in value)
    return out if all(isinstance(item, str) for item in out) else None


def numbers(path: Path, field: str, value: Any) -> Array:
    """A float64 copy of an array, a tensor, a number or a nested list of numbers.

    Raises:
        InputFileError: text, bytes, objects, nothing, or too many.
    """
    if value is None or isinstance(value, bytes | str | Mapping):
        raise InputFileError(path, f"{field}: found {type(value).__name__}, expected numbers")
    if isinstance(value, list | tuple) and _is_too_much(value):
        raise InputFileError(path, f"{field}: found a list of more than {_MOST_ITEMS} numbers or too deep a one")
    try:
        values = np.asarray(value)
    except Exception as error:  # ragged lists, tensors that numpy does not know
        raise InputFileError(path, f"{field}: found {type(value).__name__}, expected numbers: {error}") from None
    if values.dtype.kind not in "fiu":
        raise InputFileError(path, f"{field}: found type {values.dtype}, expected numbers")
    if values.size > MAX_BYTES // 8:
        raise InputFileError(path, f"{field}: found {values.size} numbers, expected at most {MAX_BYTES // 8}")
    return np.array(values, dtype=np.float64)


def one_number(path: Path, field: str, value: Any) -> float:
    """A number that may come as an array of one.

    Raises:
        InputFileError: anything else.
    """
    values = numbers(path, field, value)
    if values.size != 1:
        raise InputFileError(path, f"{field}: found shape {values.shape}, expected one number")
    return float(values.reshape(-1)[0])


def take(path: Path, fields: Mapping[Any, Any], key: str, where: str = "") -> Array:
    """Numbers of a dict's field, named with the place it stands in.

    Raises:
        InputFileError: missing, or no numbers.
    """
    if key not in fields:
        raise InputFileError(path, f"{where}{key}: missing; found {listed(fields)}")
    return numbers(path, f"{where}{key}", fields[key])


def require_mapping(path: Path, field: str, value: Any, keys: str) -> Mapping[Any, Any]:
    """`value` if it is a dict.

    Raises:
        InputFileError: it is something else.
    """
    if not isinstance(value, Mapping):
        raise InputFileError(path, f"{field}: found {type(value).__name__}, expected a dict with {keys}")
    return value


def _is_too_much(value: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a nested list has more than `_MOST_ITEMS` items (shared parts count again) or is too deep."""
    level: list[Any] = [value]
    total = 0
    for _ in range(_DEEPEST):
        total += sum(map(len, level))
        if total > _MOST_ITEMS:
            return True
        level = [item for part in level for item in part if isinstance(item, list | tuple)]
        if not level:
            return False
    return True
