"""A person's body as a mesh on the 24 SMPL joints, and how a `HumanMotion` moves it.

Rest frame as in `motions.skeleton`: x left, y up, z forward, m, the soles at y = 0. The mesh is MakeHuman's (CC0), with
COCO's 17 keypoints and six of the feet as weighted means of its vertices; `export_mesh` makes the file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.motions.formats.fields import NpzFields
from asap_core.motions.skeleton import INDEX, NUM_JOINTS, PARENTS, place_joints
from asap_core.rotations import Array

FILE = Path(__file__).parent / "body_mesh.npz"
MOST_JOINTS = 4
"""That move one vertex."""
REGIONS = ("skin", "shirt", "trousers", "shoes", "hair", "eye", "iris")
KEYPOINT_NAMES = (
    "nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder", "left_elbow",
    "right_elbow", "left_wrist", "right_wrist", "left_hip", "right_hip", "left_knee", "right_knee", "left_ankle",
    "right_ankle", "left_big_toe", "left_small_toe", "left_heel", "right_big_toe", "right_small_toe", "right_heel",
)  # fmt: skip
_LIMBS = {
    f"{side}_{joint}": f"{side}_{end}"
    for side in "LR"
    for joint, end in (("Hip", "Knee"), ("Knee", "Ankle"), ("Shoulder", "Elbow"), ("Elbow", "Wrist"), ("Wrist", "Hand"))
}
"""Joint → where the bone ends that points as the motion's skeleton has it."""


@dataclass(frozen=True)
class BodyMesh:
    """A body of V vertices and F faces at rest."""

    vertices: Array
    """(V, 3) m."""
    joints: Array
    """(24, 3) m."""
    faces: NDArray[np.integer]
    """(F, 4) corners, counter-clockwise from outside; a triangle has its last one twice."""
    weights: Array
    """(V, 24) share of each joint's movement; rows sum to 1."""
    regions: NDArray[np.integer]
    """(V,) place in `REGIONS`."""
    regressor: Array
    """(23, V) `KEYPOINT_NAMES` as weighted means of vertices; rows sum to 1."""

    @property
    def stature(self) -> float:
        """Sole to crown, m."""
        return float(np.ptp(self.vertices[:, 1]))

    @property
    def offsets(self) -> Array:
        """(24, 3) of each joint from its parent, m; row 0 zero."""
        offsets = np.zeros((NUM_JOINTS, 3))
        offsets[1:] = self.joints[1:] - self.joints[list(PARENTS[1:])]
        return offsets

    def fitted(self, skeleton: Array, stature: float) -> BodyMesh:
        """The body at another stature, its limbs at rest along those of `skeleton` (24, 3), whose rotations follow."""
        turns, offsets = np.tile(np.eye(3), (NUM_JOINTS, 1, 1)), self.offsets
        for joint, end in _LIMBS.items():
            turns[INDEX[joint]] = _turn_between(offsets[INDEX[end]], skeleton[INDEX[end]])
        for side in "LR":
            turns[INDEX[f"{side}_Hand"]] = turns[INDEX[f"{side}_Wrist"]]
        vertices, joints = self.pose(turns, self.joints[0])
        lowest = np.array([0.0, vertices[:, 1].min(), 0.0])
        scale = stature / np.ptp(vertices[:, 1])
        return replace(self, vertices=(vertices - lowest) * scale, joints=(joints - lowest) * scale)

    def pose(self, rotations: Array, pelvis: Array) -> tuple[Array, Array]:
        """Vertices (V, 3) and joints (24, 3) with each joint's frame turned by `rotations` (24, 3, 3), m."""
        joints = place_joints(rotations[None], pelvis[None], self.offsets)[0]
        moves = np.concatenate([rotations, (joints - np.einsum("jab,jb->ja", rotations, self.joints))[..., None]], -1)
        blended = (self.weights @ moves.reshape(NUM_JOINTS, 12)).reshape(-1, 3, 4)
        return np.einsum("vab,vb->va", blended[..., :3], self.vertices) + blended[..., 3], joints


@cache
def load_body_mesh(path: Path = FILE) -> BodyMesh:
    """Read what `export_mesh` wrote.

    Raises:
        InputFileError: missing or damaged.
    """
    with NpzFields(path) as fields:
        vertices = fields["vertices"]
        count, index = len(vertices), fields["weight_joints"].astype(int)
        weights = np.zeros((count, NUM_JOINTS))
        np.add.at(weights, (np.arange(count)[:, None], index), fields["weights"])
        starts = fields["keypoint_starts"].astype(int)
        regressor = np.zeros((len(KEYPOINT_NAMES), count))
        points, shares = fields["keypoint_vertices"].astype(int), fields["keypoint_weights"]
        for row, (start, end) in enumerate(pairwise(starts)):
            regressor[row, points[start:end]] = shares[start:end]
        return BodyMesh(
            vertices,
            fields["joints"],
            fields["faces"].astype(int),
            weights / weights.sum(axis=1, keepdims=True),
            fields["regions"].astype(int),
            regressor / regressor.sum(axis=1, keepdims=True),
        )


def _turn_between(start: Array, end: Array) -> Array:
    """The shortest rotation (3, 3) that takes one direction to another."""
    from scipy.spatial.transform import Rotation

    axis = np.cross(start, end)
    angle = np.arctan2(np.linalg.norm(axis), start @ end)
    return Rotation.from_rotvec(axis / max(float(np.linalg.norm(axis)), 1e-12) * angle).as_matrix()
