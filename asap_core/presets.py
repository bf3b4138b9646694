"""Presets: files of whole sections that take the place of those in `params.yaml`.

A preset is copied into `params.yaml` and not referred to from there, so that one file holds every value of a run and
DVC sees each of them.
"""

from __future__ import annotations

import re
from pathlib import Path

from asap_core.config import load_params
from asap_core.errors import ConfigError, unknown_name
from asap_core.files import atomic_file

_SECTION = re.compile(r"^(?P<name>[A-Za-z_]\w*):.*?(?=^[^\s#]|^#|\Z)", re.DOTALL | re.MULTILINE)
"""A top-level key with all that is indented below it, up to the next line that is not."""


def preset_names(folder: Path) -> list[str]:
    """Names of the presets in a folder."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def apply_preset(params: Path, name: str, folder: Path) -> list[str]:
    """Put the sections of preset `name` into the file `params`, comments included; the names of those that changed.

    Raises:
        UnknownNameError: `folder` holds no such preset.
        ConfigError: the file cannot be read, or would not be valid afterwards; it is then left as it was.
    """
    if name not in preset_names(folder):
        raise unknown_name("preset", name, preset_names(folder))
    text = _read(params)
    changed = []
    for section, block in _sections(_read(folder / f"{name}.yaml")).items():
        old = _sections(text).get(section)
        if old is None:
            text = f"{text.rstrip()}\n\n{block}"
        elif old.rstrip() != block.rstrip():
            text = text.replace(old, f"{block.rstrip()}\n{old[len(old.rstrip()) + 1 :]}")
        else:
            continue
        changed.append(section)
    with atomic_file(params) as partial:
        partial.write_text(text, encoding="utf-8")
        try:
            load_params(partial)
        except ConfigError as error:
            reason = str(error).replace(str(partial), f"{params} with preset {name}")
            raise ConfigError(f"{reason}\n  nothing was changed") from None
    return changed


def _sections(text: str) -> dict[str, str]:
    return {match["name"]: match[0] for match in _SECTION.finditer(text)}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
