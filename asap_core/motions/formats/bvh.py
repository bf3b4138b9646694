"""Reader of BVH (LAFAN1, CMU, Mixamo and their like), put on the 24 SMPL joints with the file's own bones.

A BVH file's zero pose is whatever its author bound: a T-pose, or, as in LAFAN1, every bone along x. A rotation is
therefore taken against SMPL's T-pose: for each joint a constant turn brings the zero pose's bones into the T-pose, the
pelvis and the chest by their three or four bones, a single bone by the shortest turn from its parent's. Bone
directions, and so the joints' positions, are the file's own; the twist of a bone about itself is as good as the zero
pose. The unit of length and the up axis are not in the file and are left open.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asap_core.files import sha256_file
from asap_core.motions.formats.bvh_file import load_bvh
from asap_core.motions.formats.bvh_joints import map_joints
from asap_core.motions.formats.clip import Declared, HumanClip
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.skeleton import INDEX, JOINT_NAMES, NUM_JOINTS, PARENTS, body_offsets, place_joints
from asap_core.motions.tables import check_array
from asap_core.rotations import Array

_NEAR_T_POSE = np.cos(np.radians(25.0))
"""A bone of the zero pose that lies nearer to the T-pose than this keeps its direction."""
_SIDE = {"Pelvis": ("L_Hip", "R_Hip"), "Chest": ("L_Shoulder", "R_Shoulder")}
_UP = {"Pelvis": "Chest", "Chest": "Head"}
_NEXT = {
    "Torso": "Spine", "Spine": "Chest", "Neck": "Head",
    **{f"{side}_{a}": f"{side}_{b}" for side in "LR" for a, b in (
        ("Hip", "Knee"), ("Knee", "Ankle"), ("Ankle", "Toe"), ("Thorax", "Shoulder"), ("Shoulder", "Elbow"),
        ("Elbow", "Wrist"))},
}  # fmt: skip
"""The one bone that says where a joint with a single bone points."""
_HAND = 0.054 / 0.146
"""Wrist to hand over elbow to wrist (Drillis and Contini), for files whose hand ends at the wrist."""
_BENDING = 0.01
"""Of the stature: how far a joint may move against its parent bone before the user is told."""


def read(path: Path) -> list[HumanClip]:
    """The one motion of the file, in its own unit of length and world.

    Raises:
        InputFileError: missing, truncated, no BVH, or joints that cannot be mapped, with those found and expected.
    """
    bvh = load_bvh(path)
    joint_of = map_joints(path, bvh)
    turns, places = bvh.pose()
    check_array(path, "MOTION", places.reshape(len(places), -1), (None, 3 * len(bvh.joints)))
    check_array(path, "MOTION", turns.reshape(len(turns), -1), (None, 9 * len(bvh.joints)))
    rest = _rest_turns(bvh.zero_pose(), joint_of)
    world = np.stack([turns[:, joint_of[name]] @ rest[j].T for j, name in enumerate(JOINT_NAMES)], axis=1)
    placed = np.stack([places[:, joint_of[name]] for name in JOINT_NAMES], axis=1)
    skeleton, bending = _bones(world, placed)
    notes = [*bvh.notes, *_bending_notes(skeleton, bending), "L_Hand and R_Hand are placed beyond the wrists"]
    clip = HumanClip(
        path=path,
        name=path.stem,
        format="bvh",
        sha256=sha256_file(path),
        joint_rotations=_local_rotvec(world),
        root_translation=placed[:, 0],
        fps=bvh.fps,
        skeleton=skeleton,
        declared=Declared(angle_unit="rad", frame="world"),
        notes=tuple(notes),
    )
    return [clip]


def _rest_turns(zero: Array, joint_of: dict[str, int]) -> Array:
    """Rotations (24, 3, 3) that bring each joint's bones of the zero pose (J, 3) into SMPL's T-pose."""
    place = {name: zero[index] for name, index in joint_of.items()}
    tpose = place_joints(np.tile(np.eye(3), (1, NUM_JOINTS, 1, 1)), np.zeros((1, 3)), body_offsets())[0]
    rest = np.tile(np.eye(3), (NUM_JOINTS, 1, 1))
    for j, name in enumerate(JOINT_NAMES):
        inherited = rest[PARENTS[j]] if j else rest[0]
        if name in _SIDE:
            left, right = _SIDE[name]
            zero_frame = _frame(place[left] - place[right], place[_UP[name]] - place[name])
            wanted = _frame(tpose[INDEX[left]] - tpose[INDEX[right]], tpose[INDEX[_UP[name]]] - tpose[j])
            turn = wanted.T @ zero_frame
            rest[j] = inherited if _angle_cosine(turn @ inherited.T) > _NEAR_T_POSE else turn
        elif name in _NEXT:
            bone = inherited @ (place[_NEXT[name]] - place[name])
            rest[j] = _swing(bone, tpose[INDEX[_NEXT[name]]] - tpose[j]) @ inherited
        else:
            rest[j] = inherited
    return rest


def _frame(side: Array, up: Array) -> Array:
    """Rotation (3, 3) that brings `side` to x and `up`, as near as it can be, to y; none where they are parallel."""
    forward = np.cross(side, up)
    if not np.linalg.norm(forward) > 1e-6 * np.linalg.norm(side) * np.linalg.norm(up):
        return np.eye(3)
    x, z = side / np.linalg.norm(side), forward / np.linalg.norm(forward)
    return np.stack([x, np.cross(z, x), z])


def _angle_cosine(turn: Array) -> float:
    return float(np.trace(turn) - 1) / 2


def _swing(bone: Array, wanted: Array) -> Array:
    """The shortest rotation from `bone` to `wanted`, about the left-right axis where they are opposite."""
    length = np.linalg.norm(bone)
    if length == 0.0:
        return np.eye(3)
    a, b = bone / length, wanted / np.linalg.norm(wanted)
    cosine = float(a @ b)
    if cosine > _NEAR_T_POSE:
        return np.eye(3)
    axis = np.cross(a, b)
    if cosine < -_NEAR_T_POSE:
        axis = np.cross(b, np.cross([1.0, 0.0, 0.0], b))
    from scipy.spatial.transform import Rotation

    return Rotation.from_rotvec(axis / np.linalg.norm(axis) * np.arccos(np.clip(cosine, -1, 1))).as_matrix()


def _bones(world: Array, placed: Array) -> tuple[Array, Array]:
    """Mean rest offsets (24, 3) and how far each joint strays from its own, (24,), in the file's unit."""
    skeleton, bending = np.zeros((NUM_JOINTS, 3)), np.zeros(NUM_JOINTS)
    for j in range(1, NUM_JOINTS):
        parent = PARENTS[j]
        offset = np.einsum("tji,tj->ti", world[:, parent], placed[:, j] - placed[:, parent])
        skeleton[j] = offset.mean(axis=0)
        bending[j] = np.linalg.norm(offset - skeleton[j], axis=1).max()
    for side in "LR":
        skeleton[INDEX[f"{side}_Hand"]] = _HAND * skeleton[INDEX[f"{side}_Wrist"]]
    return skeleton, bending


def _bending_notes(skeleton: Array, bending: Array) -> list[str]:
    limit = _BENDING * np.linalg.norm(skeleton, axis=1).sum() / 2
    found = [f"{JOINT_NAMES[j]} {bending[j]:.3g}" for j in np.flatnonzero(bending > limit)]
    if not found:
        return []
    return [f"joints left out bend between these and their parents, by up to (file's unit): {', '.join(found)}"]


def _local_rotvec(world: Array) -> Array:
    """Rotation vectors (T, 24, 3) against the parent of world rotations (T, 24, 3, 3)."""
    from scipy.spatial.transform import Rotation

    local = world.copy()
    for j in range(1, NUM_JOINTS):
        local[:, j] = np.swapaxes(world[:, PARENTS[j]], 1, 2) @ world[:, j]
    return Rotation.from_matrix(local.reshape(-1, 3, 3)).as_rotvec().reshape(len(world), NUM_JOINTS, 3)


def sniff(path: Path) -> Match | None:
    """By its first word."""
    try:
        with path.open("rb") as stream:
            head = stream.read(64)
    except OSError:
        return None
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"HIERARCHY"):
        return Match(1.0, "begins with HIERARCHY")
    return None


FORMAT = Format("bvh", "BVH (LAFAN1, CMU, Mixamo)", "human", (".bvh",), sniff, read)
