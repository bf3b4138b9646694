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
_WIDTHS = {"pos": 3, "quat": 4, "axis": 3, "com": 3, "inertia_quat": 4, "inertia": 3, "offset": 3, "end": 3}
_DIRECTIONS = ("quat", "axis", "inertia_quat")
_MAY_BE_NULL = ("parent", "joint", "axis", "end")
_KINDS = ("sphere", "capsule", "box")
_MOST = 1e6
"""Larger than any length, mass, torque or gain of a robot; larger ones overflow in what follows."""


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
        _check_joints(path, profile)
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
    if not (np.abs(numbers) < _MOST).all():
        raise InputFileError(path, f"field {name}: found a NaN or more than {_MOST:g}, expected finite numbers")
    return numbers


def _part(path: Path, name: str, item: Any) -> Any:
    kind = _PARTS[name]
    if not isinstance(item, dict):
        raise InputFileError(path, f"field {name}: found {type(item).__name__}, expected objects")
    for key, value in item.items():
        _check_part(path, f"field {name}: {item.get('name', item.get('link'))}: {key}", key, value)
    try:
        return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in item.items()})
    except TypeError as error:
        known = ", ".join(field.name for field in fields(kind))
        raise InputFileError(path, f"field {name}: {error}; expected {known}") from None


def _check_part(path: Path, where: str, key: str, value: Any) -> None:
    """Refuse a value that is not what `key` of a link, virtual link or shape holds."""
    if value is None and key in _MAY_BE_NULL:
        return
    if key in _WIDTHS or key == "size":
        values = value if isinstance(value, list) else []
        numbers = all(_is_number(x) for x in values) and len(values) == _WIDTHS.get(key, max(len(values), 1))
        if not numbers or (key in _DIRECTIONS and max(map(abs, values)) < 1e-6):
            width = _WIDTHS.get(key, "1 to 3")
            raise InputFileError(path, f"{where}: found {value!r}, expected {width} numbers that are not all 0")
    elif key == "mass":
        if not _is_number(value) or value < 0:
            raise InputFileError(path, f"{where}: found {value!r}, expected kg, not below 0")
    elif not isinstance(value, str) or (key == "kind" and value not in _KINDS):
        wanted = f"one of {', '.join(_KINDS)}" if key == "kind" else "a name"
        raise InputFileError(path, f"{where}: found {value!r}, expected {wanted}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST


def _check_joints(path: Path, profile: RobotProfile) -> None:
    """Every joint has a name of its own, an axis and a range."""
    links = [link.name for link in (*profile.links, *profile.fixed_links)]
    links += [point.name for point in profile.virtual_links]
    for names, kind in ((profile.joint_names, "joint"), (tuple(links), "link")):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputFileError(path, f"{kind} {', '.join(twice)}: there is more than one")
    for link in profile.links:
        if (link.joint is None) != (link.axis is None):
            raise InputFileError(path, f"link {link.name}: joint and axis: expected both or neither")
    for index in np.flatnonzero(profile.joint_lower >= profile.joint_upper):
        found = f"from {profile.joint_lower[index]:g} to {profile.joint_upper[index]:g} rad"
        raise InputFileError(path, f"joint {profile.joint_names[index]}: limits: found {found}, expected a range")


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
    pairs = (*profile.correspondences, *profile.paper_correspondences)
    for name in (*groups, profile.torso_link, *(link for link, _ in pairs)):
        profile.link_index(name)
    for virtual in profile.virtual_links:
        if virtual.parent not in seen:
            raise InputFileError(path, f"virtual_links {virtual.name}: no link {virtual.parent!r}")
    for first, second in profile.collision_excludes:
        if {first, second} - seen:
            raise InputFileError(path, f"collision_excludes: no link {first!r} or {second!r}")
    for shape in profile.shapes:
        if shape.link not in seen:
            raise InputFileError(path, f"shapes: no link {shape.link!r}")
    if profile.sole_points.ndim != 3 or profile.sole_points.shape[::2] != (len(profile.foot_links), 3):
        raise InputFileError(path, f"field sole_points: found shape {profile.sole_points.shape}, expected (feet, S, 3)")
