"""A room's floor and wall as a still camera sees them."""

from __future__ import annotations

import cv2
import numpy as np

from asap_core.reconstruction.camera import Camera
from asap_core.reconstruction.rendering.raster import Image

_TILE, _WALL = 0.5, 9.0
"""Side of a floor tile and distance of the wall, m."""
_LIGHT_TILE, _DARK_TILE, _WALL_COLOUR, _SKIRTING = (168, 160, 150), (150, 142, 132), (208, 210, 205), (120, 116, 112)
_GRAIN = 5.0
"""Standard deviation of the still texture, grey levels."""


def draw_background(camera: Camera, width: int, height: int, seed: int = 0) -> Image:
    """A picture (height, width, 3) RGB: a tiled floor up to a wall across the view; the texture is drawn by `seed`."""
    column, row = np.meshgrid(np.arange(width, dtype=float), np.arange(height, dtype=float))
    centre = camera.centre
    ray = np.stack([(column - centre[0]) / camera.focal, (row - centre[1]) / camera.focal, np.ones_like(row)], axis=-1)
    ray = ray @ camera.rotation()
    along = np.where(ray[..., 2] < 0, -camera.height / np.minimum(ray[..., 2], -1e-9), np.inf)
    floor = along * np.maximum(ray[..., 0], 1e-9) < _WALL
    along = np.where(floor, along, 0.0)
    tile = (np.floor(along * ray[..., 0] / _TILE) + np.floor(along * ray[..., 1] / _TILE)) % 2
    wall_height = camera.height + _WALL * ray[..., 2] / np.maximum(ray[..., 0], 1e-9)
    picture = np.where((wall_height < 0.1)[..., None], np.array(_SKIRTING), np.array(_WALL_COLOUR)).astype(float)
    picture = np.where(floor[..., None], np.where(tile[..., None] > 0, _LIGHT_TILE, _DARK_TILE), picture)
    grain = np.random.default_rng(seed).normal(0.0, _GRAIN, (height, width, 1))
    return np.clip(np.round(cv2.GaussianBlur(picture + grain, (3, 3), 0)), 0, 255).astype(np.uint8)
