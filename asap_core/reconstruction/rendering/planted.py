"""Where a body of other proportions goes: soles on the ground, and the foot that stands stays where it stands."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter1d

from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import leg_length, sole_points
from asap_core.reconstruction.rendering.body_mesh import REGIONS, BodyMesh
from asap_core.rotations import Array

_TOUCH = 0.01
"""m over which a point of a sole stops carrying the foot."""
_FLIGHT = 0.03
"""m of clearance that a reconstructed motion shows while it stands."""
_SMOOTH = 1.0
"""Frames over which the soles' height is smoothed, standard deviation."""


def planted_path(motion: HumanMotion, body: BodyMesh, rotations: Array) -> Array:
    """Pelvis (T, 3), m, of `body` moving with `rotations` (T, 24, 3, 3) of `motion`.

    Height: the lowest point of the soles is on the ground z = 0, or as high above it as the motion's own soles fly,
    in proportion to the legs. Level: a sole that carries stands still; in flight the motion's own path is followed.
    """
    scale = leg_length(body.offsets) / leg_length(motion.skeleton)
    soles = _soles(body, rotations)
    low = soles[..., 2].min(axis=1)
    flight = scale * _clearance(motion, rotations)
    path = scale * motion.root_translation
    path[:, 2] = gaussian_filter1d(flight - low, _SMOOTH, mode="nearest")
    carry = np.exp(-(soles[..., 2] - low[:, None]) / _TOUCH)
    carry = carry[:-1] * carry[1:]
    moved = np.einsum("tv,tva->ta", carry, np.diff(soles[..., :2], axis=0)) / carry.sum(axis=1, keepdims=True)
    standing = np.exp(-np.maximum(flight[:-1], flight[1:]) / _TOUCH)[:, None]
    steps = standing * -moved + (1.0 - standing) * np.diff(path[:, :2], axis=0)
    path[1:, :2] = path[0, :2] + np.cumsum(steps, axis=0)
    return path


def _soles(body: BodyMesh, rotations: Array) -> Array:
    """Vertices (T, S, 3) of the shoes' undersides with the pelvis at the origin."""
    shoes = np.flatnonzero(body.regions == REGIONS.index("shoes"))
    under = shoes[body.vertices[shoes, 1] < 0.03]
    part = BodyMesh(
        body.vertices[under], body.joints, body.faces, body.weights[under], body.regions[under], body.regressor
    )
    return np.stack([part.pose(frame, np.zeros(3))[0] for frame in rotations])


def _clearance(motion: HumanMotion, rotations: Array) -> Array:
    """How high (T,) the motion's lowest sole is above where it usually stands, less what is noise; m."""
    joints = motion.joint_positions(rotations)
    heights = [joints[:, joint, 2] + rotations[:, joint, 2] @ offset for joint, offset in sole_points(motion.skeleton)]
    lowest = np.min(heights, axis=0)
    return np.maximum(lowest - np.percentile(lowest, 10) - _FLIGHT, 0.0)
