"""Masses and inertias of imported links: what no rigid body can have is replaced, and said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.robots.importing.meshes import guessed_mass, solid
from asap_core.robots.importing.tree import TreeBody
from asap_core.rotations import Array

_ASYMMETRY = 1e-6
_MARGIN = 0.05
"""A centre of mass this far outside its body's surface is suspicious, m."""
_FACTOR = 10.0
"""An inertia that differs from the uniform solid's by more than this is suspicious."""


def checked_bodies(
    path: Path, bodies: tuple[TreeBody, ...], points: dict[str, Array], changes: list[str]
) -> tuple[TreeBody, ...]:
    """The bodies with possible masses and inertias; every replacement and every doubt goes into `changes`.

    Raises:
        InputFileError: a link has neither mass nor a volume to guess it from.
    """
    return tuple(_checked(path, body, points[body.name], changes) for body in bodies)


def _checked(path: Path, body: TreeBody, points: Array, changes: list[str]) -> TreeBody:
    uniform = solid(points)
    if body.mass <= 0:
        if uniform is None:
            raise InputFileError(
                path, f"link {body.name}: mass {body.mass:g} kg and no volume; expected a mass above 0"
            )
        mass = guessed_mass(uniform)
        changes.append(f"{body.name}: mass {body.mass:g} kg, replaced by {mass:.3f} kg (its hull at 1000 kg/m³)")
        return replace(body, mass=mass, com=uniform.com, inertia=uniform.inertia * mass / uniform.volume)
    problem = inertia_problem(body.inertia)
    if problem is None:
        _doubts(body, points, None if uniform is None else uniform.inertia * body.mass / uniform.volume, changes)
        return body
    if uniform is not None:
        changes.append(f"{body.name}: inertia {problem}; replaced by that of its hull with the same mass")
        return replace(body, inertia=uniform.inertia * body.mass / uniform.volume)
    changes.append(f"{body.name}: inertia {problem}; replaced by that of a ball of 5 cm")
    return replace(body, inertia=np.eye(3) * 0.4 * body.mass * 0.05**2)


def inertia_problem(inertia: Array) -> str | None:
    """Why no rigid body has this inertia (3, 3), or None."""
    if np.abs(inertia - inertia.T).max() > _ASYMMETRY:
        return "is not symmetric"
    moments = np.linalg.eigvalsh(inertia)
    if moments[0] <= 0:
        return f"has the principal moment {moments[0]:.3g} kg m², expected above 0"
    if moments[2] > (moments[0] + moments[1]) * (1 + 1e-6):
        return (
            f"has a principal moment {moments[2]:.3g} kg m² above the sum of the others, {moments[0] + moments[1]:.3g}"
        )
    return None


def _doubts(body: TreeBody, points: Array, uniform: Array | None, changes: list[str]) -> None:
    if len(points) and (
        (body.com < points.min(axis=0) - _MARGIN).any() or (body.com > points.max(axis=0) + _MARGIN).any()
    ):
        changes.append(f"{body.name}: centre of mass {np.round(body.com, 3).tolist()} m lies outside its surface; kept")
    if uniform is not None:
        ratio = float(np.trace(body.inertia) / np.trace(uniform))
        if not 1 / _FACTOR < ratio < _FACTOR:
            changes.append(f"{body.name}: inertia is {ratio:.2g} times that of a uniform solid of its mass; kept")
