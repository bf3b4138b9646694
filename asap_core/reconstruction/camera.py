"""One still camera above a level ground, and what is known about it and the person."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from asap_core.errors import ConfigError
from asap_core.rotations import Array

CAMERA_VARIABLES = ("focal", "pitch", "roll", "height")
"""What the columns of `Camera.derivatives` are by: log of the focal length, rad, rad, log of the height."""
_NEAREST = 0.2
"""Points are taken to be at least this far in front of the camera, m."""
_RANGES = {
    "focal": (50.0, 100_000.0, "px"),
    "pitch": (-1.4, 1.4, "rad"),
    "roll": (-0.8, 0.8, "rad"),
    "camera_height": (0.05, 50.0, "m"),
    "person_height": (0.4, 2.6, "m"),
}


@dataclass(frozen=True)
class Known:
    """What the user knows of a scene; what is None is estimated or assumed.

    Raises:
        ConfigError: from the constructor, on a value that no camera or person has.
    """

    focal: float | None = None
    """px of the full image."""
    pitch: float | None = None
    """rad by which the camera looks down; negative: up."""
    camera_height: float | None = None
    """Of the camera's centre above the ground, m."""
    person_height: float | None = None
    """Sole to crown, barefoot, m."""
    roll: float | None = None
    """rad by which the camera is turned clockwise, seen from behind."""

    def __post_init__(self) -> None:
        for name, (low, high, unit) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                degrees = f" ({math.degrees(value):.3g}°)" if unit == "rad" else ""
                raise ConfigError(f"{name}: found {value:g}{degrees}, expected {low:g} to {high:g} {unit}")


@dataclass(frozen=True)
class Camera:
    """A pinhole camera at (0, 0, height) of a z-up world, looking along x but for pitch and roll."""

    focal: float
    """px"""
    pitch: float
    """rad down"""
    roll: float
    """rad clockwise about the viewing direction, as seen from behind the camera"""
    height: float
    """m"""
    centre: tuple[float, float]
    """Principal point, px."""

    def rotation(self) -> Array:
        """(3, 3) world to camera; the rows are the camera's right, down and forward in the world."""
        sine, cosine = np.sin(self.pitch), np.cos(self.pitch)
        level = np.array([[0.0, -1.0, 0.0], [-sine, 0.0, -cosine], [cosine, 0.0, -sine]])
        return _turn(self.roll) @ level

    def seen(self, places: Array) -> Array:
        """World points (..., 3) in the camera's frame, m."""
        return (places - np.array([0.0, 0.0, self.height])) @ self.rotation().T

    def project(self, seen: Array) -> Array:
        """Pixels (..., 2) of points (..., 3) in the camera's frame."""
        return self.focal * seen[..., :2] / np.maximum(seen[..., 2:], _NEAREST) + self.centre

    def pixel_rows(self, seen: Array) -> Array:
        """(..., 2, 3) derivative of pixels by world position, for points (..., 3) in the camera's frame."""
        return self._by_seen(seen) @ self.rotation()

    def derivatives(self, seen: Array) -> Array:
        """(..., 2, 4) derivative of pixels by the `CAMERA_VARIABLES`."""
        by_seen = self._by_seen(seen)
        sine, cosine = np.sin(self.pitch), np.cos(self.pitch)
        tilted = np.array([[0.0, 0.0, 0.0], [-cosine, 0.0, sine], [-sine, 0.0, -cosine]])
        turn = _turn(self.roll)
        place = seen @ self.rotation()
        x, y = seen[..., 0], seen[..., 1]
        moved = np.stack(
            [
                place @ (turn @ tilted).T,
                np.stack([y, -x, np.zeros_like(x)], axis=-1),
                np.broadcast_to(-self.height * self.rotation()[:, 2], seen.shape),
            ],
            axis=-1,
        )
        out = np.empty((*seen.shape[:-1], 2, len(CAMERA_VARIABLES)))
        out[..., 0] = self.project(seen) - self.centre
        out[..., 1:] = by_seen @ moved
        return out

    def moved(self, step: Array) -> Camera:
        """Changed by a step (4,) of the `CAMERA_VARIABLES`."""
        focal, height = self.focal * float(np.exp(step[0])), self.height * float(np.exp(step[3]))
        return Camera(focal, self.pitch + float(step[1]), self.roll + float(step[2]), height, self.centre)

    def _by_seen(self, seen: Array) -> Array:
        """(..., 2, 3) derivative of pixels by position in the camera's frame."""
        depth = np.maximum(seen[..., 2], _NEAREST)
        out = np.zeros((*seen.shape[:-1], 2, 3))
        out[..., 0, 0] = out[..., 1, 1] = self.focal / depth
        out[..., 2] = np.where(seen[..., 2:] > _NEAREST, -self.focal * seen[..., :2] / depth[..., None] ** 2, 0.0)
        return out


def _turn(roll: float) -> Array:
    """Of the camera's axes: x to the right and y down become those of a camera turned clockwise."""
    sine, cosine = np.sin(roll), np.cos(roll)
    return np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]])
