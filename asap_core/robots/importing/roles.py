"""Which body of a humanoid is its hip, knee, foot, torso and so on: read from names, checked against the tree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from asap_core.errors import InputFileError
from asap_core.robots.importing.tree import TreeBody, rest_poses
from asap_core.rotations import Array

SIDED = ("hip", "knee", "foot", "shoulder", "elbow", "hand")
CENTRAL = ("torso", "head")
ROLES = tuple(f"{side}_{part}" for part in SIDED for side in ("left", "right")) + CENTRAL

_SIDE = {
    "left": re.compile(r"(^|[^a-z])(left|l)([^a-z]|$)|^left|left$"),
    "right": re.compile(r"(^|[^a-z])(right|r)([^a-z]|$)|^right|right$"),
}
_PART = {
    "hip": ("hip", "thigh", "upper_leg", "upperleg"),
    "knee": ("knee", "shank", "shin", "calf", "lower_leg", "lowerleg"),
    "foot": ("foot", "ankle", "sole"),
    "shoulder": ("shoulder", "upper_arm", "upperarm", "arm"),
    "elbow": ("elbow", "forearm", "lower_arm", "lowerarm"),
    "hand": ("hand", "wrist", "palm", "gripper"),
    "torso": ("torso", "chest", "trunk", "spine", "waist"),
    "head": ("head",),
}


@dataclass(frozen=True)
class Roles:
    """Body names by role. A hand or a head that no body is has its place on the forearm or the torso."""

    bodies: dict[str, str]
    """Role -> body; `left_hand`, `right_hand` and `head` may be absent."""
    guessed: tuple[str, ...]
    """Roles that were not found by name but by the tree."""


def find_roles(path: Path, bodies: tuple[TreeBody, ...], given: dict[str, str]) -> Roles:
    """Assign the roles.

    Args:
        path: of the model, for errors.
        bodies: links with joints of their own, the root first, in tree order.
        given: role -> body, from the user; wins over names.

    Raises:
        InputFileError: a given role or body does not exist, or a role that is needed is found by no name.
    """
    names = [body.name for body in bodies]
    for role, name in given.items():
        if role not in ROLES:
            raise InputFileError(path, f"role {role!r}: unknown; roles: {', '.join(ROLES)}")
        if name not in names:
            raise InputFileError(path, f"role {role}: no moving link {name!r}; links: {', '.join(names)}")
    found = dict(given)
    guessed = []
    for side in ("left", "right"):
        for part in SIDED:
            role = f"{side}_{part}"
            if role not in found and (link := _sided(bodies, side, part)) is not None:
                found[role] = link
    if "torso" not in found and (link := _torso(bodies, found)) is not None:
        found["torso"] = link
        guessed.append("torso")
    if "head" not in found and (heads := _named(names, "head")):
        found["head"] = heads[-1]
    missing = [role for role in ROLES if role not in found and not role.endswith(("hand", "head"))]
    if missing:
        option = f"give --role {missing[0]}=LINK"
        raise InputFileError(path, f"no link found for {', '.join(missing)}; {option}; links: {', '.join(names)}")
    _check_sides(path, bodies, found)
    return Roles(found, tuple(guessed))


def _sided(bodies: tuple[TreeBody, ...], side: str, part: str) -> str | None:
    """Of the bodies of this part: the first of hip, knee and elbow, the second of the shoulder, the last otherwise.

    The second body of a shoulder lies where its axes meet, the last one of a foot or hand is what touches.
    """
    own = [body.name for body in bodies if _is_side(body.name, side)]
    matches = _named(own, part)
    if not matches:
        return None
    if part in ("hip", "knee", "elbow"):
        return matches[0]
    if part == "shoulder":
        return matches[min(1, len(matches) - 1)]
    return matches[-1]


def _named(names: list[str], part: str) -> list[str]:
    """Names that hold the first of the part's words that any name holds."""
    for word in _PART[part]:
        matches = [name for name in names if word in name.lower()]
        if part == "shoulder" and word == "arm":
            matches = [name for name in matches if "forearm" not in name.lower() and "lower" not in name.lower()]
        if matches:
            return matches
    return []


def _is_side(name: str, side: str) -> bool:
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return bool(_SIDE[side].search(plain.replace("_", " ").replace("-", " ")))


def _torso(bodies: tuple[TreeBody, ...], found: dict[str, str]) -> str | None:
    """The last body from which both shoulders hang."""
    parents = {body.name: body.parent for body in bodies}
    if "left_shoulder" not in found or "right_shoulder" not in found:
        return None
    left, right = (_ancestors(found[f"{side}_shoulder"], parents) for side in ("left", "right"))
    shared = [name for name in left if name in right]
    return shared[0] if shared else None


def _ancestors(name: str, parents: dict[str, str | None]) -> list[str]:
    chain = []
    above = parents[name]
    while above is not None:
        chain.append(above)
        above = parents[above]
    return chain


def _check_sides(path: Path, bodies: tuple[TreeBody, ...], found: dict[str, str]) -> None:
    """Left is where y is positive, and a knee hangs on its hip."""
    poses = rest_poses(bodies)
    parents = {body.name: body.parent for body in bodies}

    def place(role: str) -> Array:
        return poses[found[role]][0]

    for part in ("hip", "shoulder", "foot"):
        if place(f"left_{part}")[1] <= place(f"right_{part}")[1]:
            raise InputFileError(
                path,
                f"left_{part} {found[f'left_{part}']} is not to the left (+y) of {found[f'right_{part}']} at zero "
                "angles; the model must face +x with z up",
            )
    for side in ("left", "right"):
        for upper, lower in (("hip", "knee"), ("knee", "foot"), ("shoulder", "elbow")):
            child, parent = found[f"{side}_{lower}"], found[f"{side}_{upper}"]
            if parent not in _ancestors(child, parents):
                raise InputFileError(path, f"{side}_{lower} {child} does not hang on {side}_{upper} {parent}")
