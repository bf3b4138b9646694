"""The tree of bodies that a model file describes, whichever language it is written in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from asap_core.rotations import Array, quat_mul, quat_to_matrix


@dataclass(frozen=True)
class Geometry:
    """What is drawn or collides, in its body's frame.

    `size` is (radius,) for spheres, the three half edges for boxes, (radius, half length along z) for capsules and
    cylinders, the scale (3,) for meshes that a file holds.
    """

    kind: Literal["mesh", "box", "sphere", "capsule", "cylinder"]
    pos: Array
    quat: Array
    size: Array
    collides: bool
    file: Path | None = None
    """Of a mesh."""
    vertices: Array | None = None
    """(V, 3) m of a mesh that the reader has at hand, in the frame of pos and quat."""


@dataclass(frozen=True)
class TreeJoint:
    """A hinge. What the file does not say is None."""

    name: str
    axis: Array
    """(3,) unit, in the body's frame."""
    lower: float | None = None
    upper: float | None = None
    """rad."""
    torque: float | None = None
    """N m."""
    speed: float | None = None
    """rad/s."""
    kp: float | None = None
    kd: float | None = None
    default: float | None = None
    """rad, of the file's standing pose."""


@dataclass(frozen=True)
class TreeBody:
    """A body whose joint, if any, turns about an axis through its origin."""

    name: str
    parent: str | None
    pos: Array
    """(3,) m in the parent's frame."""
    quat: Array
    """(4,) wxyz in the parent's frame."""
    joint: TreeJoint | None
    mass: float
    com: Array
    """(3,) m."""
    inertia: Array
    """(3, 3) kg m² about the centre of mass, in the body's frame."""
    geometries: tuple[Geometry, ...] = ()


@dataclass(frozen=True)
class ModelTree:
    """Bodies, each after its parent, the first being the root."""

    path: Path
    bodies: tuple[TreeBody, ...]
    changes: tuple[str, ...] = field(default=())
    """What the reader had to alter, in words."""


def rest_poses(bodies: tuple[TreeBody, ...]) -> dict[str, tuple[Array, Array]]:
    """Position (3,) and rotation (3, 3) of every body at zero joint angles, the root at the origin and level."""
    poses: dict[str, tuple[Array, Array]] = {}
    for body in bodies:
        if body.parent is None:
            poses[body.name] = (np.zeros(3), np.eye(3))
            continue
        pos, rot = poses[body.parent]
        poses[body.name] = (pos + rot @ body.pos, rot @ quat_to_matrix(body.quat))
    return poses


def moved_onto(body: TreeBody, parent: TreeBody) -> TreeBody:
    """`body`, whose parent is `parent`, as a child of that one's own parent, `parent` being welded there."""
    rot = quat_to_matrix(parent.quat)
    return replace(
        body,
        parent=parent.parent,
        pos=parent.pos + rot @ body.pos,
        quat=quat_mul(parent.quat[None], body.quat[None])[0],
    )
