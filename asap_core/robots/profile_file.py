"""A robot profile as a JSON file, so that users can add robots and edit what the import had to choose."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import read_object, write_json
from asap_core.robots.profile import Link, RobotProfile, Shape, VirtualLink

FORMAT = "asap-robot-profile"
VERSION = 1
_PARTS = {"links": Link, "fixed_links": Link, "virtual_links": VirtualLink, "shapes": Shape}
_PAIRS = ("correspondences", "paper_correspondences", "collision_excludes")
_NAMES = ("foot_links", "lower_body_links", "upper_body_links", "tracking_links")
_TEXTS = ("name", "torso_link")


def write_profile(path: Path | str, profile: RobotProfile, notes: list[str]) -> None:
    """Write a profile with what should be checked about it, atomically; numbers keep their full precision."""
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION, "notes": notes}
    for field in fields(profile):
        value = getattr(profile, field.name)
        if field.name in _PARTS:
            content[field.name] = [asdict(part) for part in value]
        else:
            content[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
    write_json(path, content)


def read_profile(path: Path | str) -> RobotProfile:
    """Read what `write_profile` wrote, or what a user made of it.

    Raises:
        InputFileError: missing, not JSON, another format, a field missing, unknown or of a wrong kind.
    """
    path = Path(path)
    content = read_object(path)
    found = (content.pop("format", None), content.pop("version", None))
    if found != (FORMAT, VERSION):
        raise InputFileError(path, f"format: found {found[0]!r} version {found[1]}, expected {FORMAT!r} {VERSION}")
    content.pop("notes", None)
    names = [field.name for field in fields(RobotProfile)]
    for name in names:
        if name not in content:
            raise InputFileError(path, f"field {name}: missing; expected {', '.join(names)}")
    for name in content:
        if name not in names:
            raise InputFileError(path, f"field {name}: unknown; expected {', '.join(names)}")
    try:
        profile = RobotProfile(**{name: _value(path, name, content[name]) for name in names})
        _check_names(path, profile)
    except (TypeError, ValueError, KeyError) as error:
        raise InputFileError(path, f"{error}") from None
    return profile


def _value(path: Path, name: str, value: Any) -> Any:
    if name in _TEXTS:
        if not isinstance(value, str) or not value:
            raise InputFileError(path, f"field {name}: found {value!r}, expected a name")
        return value
    if not isinstance(value, list):
        raise InputFileError(path, f"field {name}: found {type(value).__name__}, expected a list")
    if name in _PARTS:
        return tuple(_part(path, name, item) for item in value)
    if name in _NAMES:
        return tuple(str(item) for item in value)
    if name in _PAIRS:
        if not all(isinstance(item, list) and len(item) == 2 for item in value):
            raise InputFileError(path, f"field {name}: expected pairs [a, b]")
        return tuple((str(first), str(second)) for first, second in value)
    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputFileError(path, f"field {name}: expected numbers in rows of equal length") from None
    if not np.isfinite(numbers).all():
        raise InputFileError(path, f"field {name}: found a NaN or infinity, expected finite numbers")
    return numbers


def _part(path: Path, name: str, item: Any) -> Any:
    kind = _PARTS[name]
    if not isinstance(item, dict):
        raise InputFileError(path, f"field {name}: found {type(item).__name__}, expected objects")
    try:
        return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in item.items()})
    except TypeError as error:
        known = ", ".join(field.name for field in fields(kind))
        raise InputFileError(path, f"field {name}: {error}; expected {known}") from None


def _check_names(path: Path, profile: RobotProfile) -> None:
    """Every link that is named exists, and parents come before their children."""
    seen: set[str] = set()
    for link in (*profile.links, *profile.fixed_links):
        if (link.parent is None) != (not seen):
            raise InputFileError(path, f"link {link.name}: parent is {link.parent}; the first link alone has none")
        if link.parent is not None and link.parent not in seen:
            raise InputFileError(path, f"link {link.name}: its parent {link.parent!r} does not come before it")
        seen.add(link.name)
    groups = (*profile.foot_links, *profile.lower_body_links, *profile.upper_body_links, *profile.tracking_links)
    for name in (*groups, profile.torso_link, *(link for link, _ in profile.correspondences)):
        profile.link_index(name)
    for shape in profile.shapes:
        if shape.link not in seen:
            raise InputFileError(path, f"shapes: no link {shape.link!r}")
    if profile.sole_points.ndim != 3 or profile.sole_points.shape[::2] != (len(profile.foot_links), 3):
        raise InputFileError(path, f"field sole_points: found shape {profile.sole_points.shape}, expected (feet, S, 3)")
