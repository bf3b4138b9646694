"""Where the body is, roughly, frame by frame: what the whole-sequence solution starts from."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter1d, median_filter

from asap_core.reconstruction.body import SHAPE_GROUPS, BodyState, Pose, upright
from asap_core.reconstruction.camera import Camera
from asap_core.reconstruction.markers import columns, landmark_points
from asap_core.rotations import Array

_LIMBS = (
    ("shoulder", "elbow"), ("elbow", "wrist"), ("shoulder", "hip"), ("hip", "knee"), ("knee", "ankle"),
)  # fmt: skip
_MEDIAN, _SMOOTH = 0.3, 0.1
"""s over which the first path is filtered."""


def metric_scale(metric: Array, weights: Array, shape: Array) -> float:
    """What the network's metres (T, P, 3) are to be multiplied with to fit a body of this shape."""
    rest = Pose(shape, upright(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0, 0.0]]))).place(landmark_points())[0]
    found, wanted = 0.0, 0.0
    seen = weights > 0
    for side in ("left", "right"):
        for start, end in _LIMBS:
            a, b = columns(f"{side}_{start}", f"{side}_{end}")
            both = seen[:, a] & seen[:, b]
            if both.any():
                found += float(np.median(np.linalg.norm(metric[both, a] - metric[both, b], axis=-1)))
                wanted += float(np.linalg.norm(rest[a] - rest[b]))
    return wanted / found if found > 0 else 1.0


def towards(sights: Array) -> Array:
    """Rotations (T, 3, 3) that turn the camera's axis onto lines of sight (T, 3) the short way."""
    unit = sights / np.linalg.norm(sights, axis=-1, keepdims=True)
    x, y, z = unit.T
    share = 1.0 / (1.0 + z)
    rows = [[1 - share * x * x, -share * x * y, x], [-share * x * y, 1 - share * y * y, y], [-x, -y, z]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def hip_sights(pixels: Array, camera: Camera) -> Array:
    """Directions (T, 3) in the camera's frame to the middle of the hips."""
    middle = pixels[:, columns("left_hip", "right_hip")].mean(axis=1)
    return np.concatenate([(middle - camera.centre) / camera.focal, np.ones((len(middle), 1))], axis=1)


def distances(relative: Array, pixels: Array, weights: Array, camera: Camera, fps: float) -> Array:
    """Positions (T, 3) in the camera's frame that put landmarks at `relative` (T, P, 3) to them nearest to `pixels`."""
    target = (pixels - camera.centre) / camera.focal
    weight = weights[..., None]
    a = np.zeros((*target.shape, 3))
    a[..., 0, 0] = a[..., 1, 1] = 1.0
    a[..., 2] = -target
    b = target * relative[..., 2:] - relative[..., :2]
    normal = np.einsum("tpki,tpk,tpkj->tij", a, np.broadcast_to(weight, target.shape), a)
    pull = np.einsum("tpki,tpk,tpk->ti", a, np.broadcast_to(weight, target.shape), b)
    seen = weights.sum(axis=1) > 0
    path = np.empty((len(pixels), 3))
    path[seen] = np.linalg.solve(normal[seen] + 1e-9 * np.eye(3), pull[seen][..., None])[..., 0]
    path[:, 2] = np.clip(path[:, 2], 0.3, 100.0)
    times = np.arange(len(path))
    for axis in range(3):
        path[~seen, axis] = np.interp(times[~seen], times[seen], path[seen, axis])
    path = median_filter(path, (2 * int(_MEDIAN * fps / 2) + 1, 1), mode="nearest")
    return np.asarray(gaussian_filter1d(path, max(_SMOOTH * fps, 0.5), axis=0, mode="nearest"))


def facing(points: Array) -> Array:
    """Orientation (T, 4) wxyz of pelvis frames (x left, y up, z forward) from landmarks (T, P, 3)."""
    from scipy.spatial.transform import Rotation

    hips, shoulders = points[:, columns("left_hip", "right_hip")], points[:, columns("left_shoulder", "right_shoulder")]
    left = (hips[:, 0] - hips[:, 1]) + 0.5 * (shoulders[:, 0] - shoulders[:, 1])
    up = shoulders.mean(axis=1) - hips.mean(axis=1)
    up /= np.linalg.norm(up, axis=-1, keepdims=True).clip(1e-9)
    left -= up * (left * up).sum(axis=-1, keepdims=True)
    left /= np.linalg.norm(left, axis=-1, keepdims=True).clip(1e-9)
    axes = np.stack([left, up, np.cross(left, up)], axis=-1)
    return Rotation.from_matrix(axes).as_quat(scalar_first=True)


def first_state(points: Array) -> BodyState:
    """A relaxed body with its pelvis near landmarks (T, P, 3) in the world."""
    hips = points[:, columns("left_hip", "right_hip")].mean(axis=1)
    start = upright(hips, facing(points))
    middle = Pose(np.zeros(len(SHAPE_GROUPS)), start).place(landmark_points())
    return BodyState(2 * hips - middle[:, columns("left_hip", "right_hip")].mean(axis=1), start.balls, start.angles)
