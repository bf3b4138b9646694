"""Fills a posed body into a picture: back to front, flat faces lit from one side, a soft shadow on the ground."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from asap_core.reconstruction.camera import Camera
from asap_core.reconstruction.rendering.body_mesh import REGIONS, BodyMesh
from asap_core.rotations import Array

Image = NDArray[np.uint8]
_COLOURS = {
    "skin": (204, 160, 136), "shirt": (52, 92, 150), "trousers": (72, 68, 74), "shoes": (214, 210, 206),
    "hair": (58, 42, 34), "eye": (236, 236, 232), "iris": (48, 36, 30),
}  # fmt: skip
"""RGB."""
_LIGHT = np.array([-0.45, 0.35, 0.82])
"""Towards the light, in the world."""
_AMBIENT, _SHADOW = 0.45, 0.45
_SUBPIXEL = 4
"""Bits of a pixel in which corners are placed."""
_NEAREST = 0.2
"""m; a face with a corner nearer to the camera is left out."""


def region_colours(body: BodyMesh) -> Array:
    """RGB (F, 3) of each face, the mean of its corners'."""
    table = np.array([_COLOURS[name] for name in REGIONS], dtype=float)
    return table[body.regions[body.faces]].mean(axis=1)


def draw_shadow(image: Image, camera: Camera, body: BodyMesh, vertices: Array) -> Image:
    """The picture with the shadow of the body on the ground: the hulls of its parts, blurred."""
    flat = vertices - vertices[:, 2:] / _LIGHT[2] * _LIGHT
    pixels = camera.project(camera.seen(flat))
    pixels = np.clip(np.round(pixels), -4 * max(image.shape), 4 * max(image.shape)).astype(np.int32)
    mask = np.zeros(image.shape[:2], np.uint8)
    part = body.weights.argmax(axis=1)
    for joint in np.unique(part):
        cv2.fillConvexPoly(mask, cv2.convexHull(pixels[part == joint]), 255)
    left, top, width, height = cv2.boundingRect(mask)
    if width == 0:
        return image
    rows = slice(max(top - 20, 0), top + height + 20)
    columns = slice(max(left - 20, 0), left + width + 20)
    soft = cv2.GaussianBlur(mask[rows, columns], (0, 0), 4.0).astype(np.float32)[..., None] / 255.0
    out = image.copy()
    out[rows, columns] = (image[rows, columns] * (1.0 - _SHADOW * soft)).astype(np.uint8)
    return out


def draw_body(image: Image, camera: Camera, body: BodyMesh, vertices: Array, colours: Array) -> None:
    """Fill the faces that look at the camera into `image`, the farthest first."""
    seen = camera.seen(vertices)
    corners = np.round(camera.project(seen) * (1 << _SUBPIXEL)).astype(np.int32)[body.faces]
    edge, other = (corners[:, 2 + k] - corners[:, k] for k in (0, 1))
    facing = edge[:, 0].astype(float) * other[:, 1] - edge[:, 1].astype(float) * other[:, 0] < 0
    deep = seen[:, 2][body.faces]
    order = np.flatnonzero(facing & (deep.min(axis=1) > _NEAREST))
    order = order[np.argsort(-deep[order].mean(axis=1), kind="stable")]
    shade = colours[order] * _brightness(vertices[body.faces[order]])[:, None]
    for face, colour in zip(corners[order], shade.tolist(), strict=True):
        cv2.fillConvexPoly(image, face, colour, cv2.LINE_8, _SUBPIXEL)


def _brightness(faces: Array) -> Array:
    """(F,) of faces (F, 4, 3) under the light."""
    normal = np.cross(faces[:, 2] - faces[:, 0], faces[:, 3] - faces[:, 1])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    return _AMBIENT + (1.0 - _AMBIENT) * np.clip(normal @ (_LIGHT / np.linalg.norm(_LIGHT)), 0.0, 1.0)
