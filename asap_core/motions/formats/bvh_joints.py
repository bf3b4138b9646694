"""Which joint of a BVH file stands for which of the 24 SMPL joints: limbs by name, the trunk by its path."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.motions.formats.bvh_file import BvhFile
from asap_core.motions.formats.fields import listed

_ALIASES: dict[str, tuple[str, ...]] = {
    "Pelvis": ("hips", "hip", "pelvis", "root", "bip01"),
    "Hip": ("upleg", "hip", "thigh", "upperleg", "hipjoint"),
    "Knee": ("leg", "knee", "shin", "calf", "lowleg", "lowerleg"),
    "Ankle": ("foot", "ankle"),
    "Toe": ("toebase", "toe", "toes", "foottoe"),
    "Shoulder": ("arm", "uparm", "upperarm", "shoulder"),
    "Elbow": ("forearm", "elbow", "lowarm", "lowerarm"),
    "Wrist": ("hand", "wrist"),
    "Head": ("head",),
}
"""Names in lower case without side, prefix and separators; the earlier wins."""
_LIMBS = ("Hip", "Knee", "Ankle", "Toe", "Shoulder", "Elbow", "Wrist")


def map_joints(path: Path, bvh: BvhFile) -> dict[str, int]:
    """SMPL joint → index of the file's joint. Two of a trunk with fewer joints than SMPL's may be the same one.

    Raises:
        InputFileError: a joint that is needed has no counterpart; the text lists the names found and those expected.
    """
    names = {_plain(name): index for index, name in reversed(list(enumerate(bvh.names)))}
    found = {joint: _find(names, joint) for joint in _wanted()}
    missing = [joint for joint, index in found.items() if index is None]
    if missing:
        expected = "; ".join(f"{joint}: {', '.join(_candidates(joint))}" for joint in missing)
        raise InputFileError(
            path, f"joints: found {listed(bvh.names)}; none for {', '.join(missing)}, expected one of ({expected})"
        )
    mapped = {joint: index for joint, index in found.items() if index is not None}
    mapped |= _trunk(path, bvh, mapped)
    for side in "LR":
        mapped[f"{side}_Hand"] = mapped[f"{side}_Wrist"]
    return mapped


def _wanted() -> list[str]:
    return ["Pelvis", *(f"{side}_{limb}" for side in "LR" for limb in _LIMBS), "Head"]


def _plain(name: str) -> str:
    """Lower case, without what stands before a colon, `mixamorig` and separators."""
    name = name.rpartition(":")[2].lower().removeprefix("mixamorig")
    return re.sub(r"[^a-z0-9]", "", name)


def _candidates(joint: str) -> list[str]:
    """Plain names that may stand for a SMPL joint, the likeliest first."""
    side, _, limb = joint.rpartition("_")
    aliases = _ALIASES[limb]
    if not side:
        return list(aliases)
    word = {"L": "left", "R": "right"}[side]
    spellings = (f"{word}{{}}", f"{side.lower()}{{}}", f"{{}}{word}", f"{{}}{side.lower()}")
    return [spelling.format(alias) for spelling in spellings for alias in aliases]


def _find(names: dict[str, int], joint: str) -> int | None:
    return next((names[name] for name in _candidates(joint) if name in names), None)


def _trunk(path: Path, bvh: BvhFile, mapped: dict[str, int]) -> dict[str, int]:
    """The spine, neck and collar joints, from the paths between pelvis, head and arms."""
    ways = {joint: _way(path, bvh, mapped["Pelvis"], mapped[joint]) for joint in ("Head", "L_Shoulder", "R_Shoulder")}
    left, right = ways["L_Shoulder"], ways["R_Shoulder"]
    shared = [index for index in left if index in right and index in ways["Head"][:-1]]
    if not shared:
        raise InputFileError(path, "joints: found no spine joint from which the head and both arms come")
    spine = [shared[round(k)] for k in np.linspace(0, len(shared) - 1, 3)]
    chest = shared[-1]
    after = {joint: way[way.index(chest) + 1 :] for joint, way in ways.items()}
    neck = after["Head"][0]
    collars = {f"{side}_Thorax": (after[f"{side}_Shoulder"][-2:] or [chest])[0] for side in "LR"}
    return dict(zip(("Torso", "Spine", "Chest"), spine, strict=True)) | {"Neck": neck} | collars


def _way(path: Path, bvh: BvhFile, start: int, end: int) -> list[int]:
    """Joints below `start` down to `end`, both sides of the way in order."""
    way = [end]
    while way[-1] != start:
        parent = bvh.joints[way[-1]].parent
        if parent < 0:
            names = bvh.names
            raise InputFileError(path, f"joints: {names[end]} does not come from {names[start]}")
        way.append(parent)
    return way[-2::-1]
