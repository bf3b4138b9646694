"""Collision primitives and sole points from a body's geometry; meshes are read by trimesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from asap_core.robots.importing.tree import Geometry
from asap_core.robots.profile import Shape, Vector
from asap_core.rotations import Array, quat_to_matrix

_SOLE_DEPTH = 0.006
"""Points of a foot less than this above its lowest one belong to the sole, m."""
_POINTS_ON_CIRCLE = 12
_SIMPLER = 1.1
"""A simpler primitive may have this many times the volume of the smallest."""
_DENSITY = 1000.0
"""kg/m³, where a mass has to be guessed from a volume."""


@dataclass(frozen=True)
class Solid:
    """Of uniform density within the convex hull of a body's geometry."""

    volume: float
    """m³."""
    com: Array
    """(3,) m."""
    inertia: Array
    """(3, 3) m⁵ about the centre of mass; times kg/m³ it is kg m²."""


def surface_points(geometries: tuple[Geometry, ...]) -> tuple[Array, dict[str, str]]:
    """Points (V, 3) on the surface of a body, in its frame, m, from its colliding geometries if it has any.

    Returns:
        The points, and file -> reason of every mesh that could not be read.
    """
    colliding = tuple(geometry for geometry in geometries if geometry.collides)
    clouds: list[Array] = []
    problems: dict[str, str] = {}
    for geometry in colliding or geometries:
        try:
            local = _points(geometry)
        except Exception as error:  # trimesh raises whatever its parsers do on a damaged file
            problems[str(geometry.file)] = str(error) or type(error).__name__
            continue
        clouds.append(geometry.pos + local @ quat_to_matrix(geometry.quat).T)
    return (np.concatenate(clouds) if clouds else np.zeros((0, 3))), problems


def _points(geometry: Geometry) -> Array:
    if geometry.vertices is not None:
        return geometry.vertices
    if geometry.kind == "mesh":
        return _mesh_points(geometry)
    if geometry.kind == "box":
        corners = np.stack(np.meshgrid(*[(-1.0, 1.0)] * 3), axis=-1).reshape(-1, 3)
        return corners * geometry.size[:3]
    radius = geometry.size[0]
    ball = _ball(radius)
    if geometry.kind == "sphere":
        return ball
    end = np.array([0.0, 0.0, geometry.size[1]])
    if geometry.kind == "capsule":
        return np.concatenate([ball + end, ball - end])
    ring = ball[np.abs(ball[:, 2]) < 1e-9]
    return np.concatenate([ring + end, ring - end])


def _mesh_points(geometry: Geometry) -> Array:
    import trimesh

    if geometry.file is None or not geometry.file.is_file():
        raise FileNotFoundError("no such file")
    mesh: Any = trimesh.load(geometry.file, force="mesh", process=False)
    if len(mesh.vertices) == 0:
        raise ValueError("holds no vertices")
    return np.asarray(mesh.vertices, dtype=float) * geometry.size


def _ball(radius: float) -> Array:
    """Points on a sphere, the poles and the equator among them."""
    turn = np.arange(_POINTS_ON_CIRCLE) * (2 * np.pi / _POINTS_ON_CIRCLE)
    rise = np.linspace(-np.pi / 2, np.pi / 2, 7)
    around, up = (grid.reshape(-1) for grid in np.meshgrid(turn, rise))
    return radius * np.stack([np.cos(around) * np.cos(up), np.sin(around) * np.cos(up), np.sin(up)], axis=1)


def solid(points: Array) -> Solid | None:
    """The convex hull as a uniform solid; None if the points span no volume."""
    import trimesh

    try:
        hull: Any = trimesh.convex.convex_hull(points)
    except Exception:  # qhull refuses flat or too few points
        return None
    if hull.volume < 1e-9:
        return None
    hull.density = 1.0
    return Solid(float(hull.volume), np.asarray(hull.center_mass), np.asarray(hull.moment_inertia))


def guessed_mass(body: Solid) -> float:
    """kg, at the density of water."""
    return body.volume * _DENSITY


def fit_shape(link: str, points: Array) -> Shape | None:
    """The smallest of sphere, axis-aligned box and capsule that holds the points, the simpler one if they are near.

    None if the points span no volume.
    """
    if len(points) < 4 or np.ptp(points, axis=0).max() < 1e-3:
        return None
    candidates = [_sphere(link, points), _box(link, points), _capsule(link, points)]
    smallest = min(volume for volume, _ in candidates)
    return next(shape for volume, shape in candidates if volume <= _SIMPLER * smallest)


def _vector(values: Array) -> Vector:
    x, y, z = (round(float(value), 5) for value in values)
    return (x, y, z)


def _box(link: str, points: Array) -> tuple[float, Shape]:
    low, high = points.min(axis=0), points.max(axis=0)
    half = np.maximum((high - low) / 2, 1e-3)
    return 8 * float(half.prod()), Shape(link, "box", _vector((low + high) / 2), _vector(half))


def _sphere(link: str, points: Array) -> tuple[float, Shape]:
    centre = (points.min(axis=0) + points.max(axis=0)) / 2
    radius = float(np.linalg.norm(points - centre, axis=1).max())
    return 4 / 3 * np.pi * radius**3, Shape(link, "sphere", _vector(centre), (round(radius, 5),))


def _capsule(link: str, points: Array) -> tuple[float, Shape]:
    """Along the longest principal axis; its caps end where the points do."""
    middle = points.mean(axis=0)
    axis = np.linalg.svd(points - middle, full_matrices=False)[2][0]
    across = points - middle - np.outer((points - middle) @ axis, axis)
    low, high = across.min(axis=0), across.max(axis=0)
    middle = middle + (low + high) / 2
    along = (points - middle) @ axis
    radius = float(np.linalg.norm(points - middle - np.outer(along, axis), axis=1).max())
    reach = np.sqrt(np.maximum(radius**2 - np.linalg.norm(points - middle - np.outer(along, axis), axis=1) ** 2, 0))
    start, end = float((along + reach).min()), float((along - reach).max())
    if end - start < 1e-3:
        return np.inf, Shape(link, "sphere", _vector(middle), (round(radius, 5),))
    volume = np.pi * radius**2 * (end - start) + 4 / 3 * np.pi * radius**3
    ends = _vector(middle + start * axis), _vector(middle + end * axis)
    return volume, Shape(link, "capsule", ends[0], (round(radius, 5),), end=ends[1])


def sole_points(points: Array, down: Array, forward: Array) -> Array:
    """Four corners (4, 3) of the sole: heel left and right, then toe left and right, in the frame of `points`.

    Args:
        points: surface of the foot (V, 3), m.
        down: (3,) unit, downwards while it stands.
        forward: (3,) unit, where its toes point, across `down`.
    """
    depth = points @ down
    sole = points[depth > depth.max() - _SOLE_DEPTH]
    left = np.cross(forward, down)
    x, y = sole @ forward, sole @ left
    level = float(depth.max())
    corners = [_corner(x, y, end, side) for end in (-1.0, 1.0) for side in (1.0, -1.0)]
    return np.array([cx * forward + cy * left + level * down for cx, cy in corners])


def _corner(x: Array, y: Array, end: float, side: float) -> tuple[float, float]:
    """The sole's point that lies farthest towards this corner of its bounding rectangle."""
    half_x, half_y = max(float(np.ptp(x)) / 2, 1e-6), max(float(np.ptp(y)) / 2, 1e-6)
    best = int((end * x / half_x + side * y / half_y).argmax())
    return float(x[best]), float(y[best])
