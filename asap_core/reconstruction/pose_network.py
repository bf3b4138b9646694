"""Landmarks of the person in one region of a picture: BlazePose's landmark network, at 256 × 256."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from asap_core.reconstruction.detector import Region
from asap_core.reconstruction.landmarks import LANDMARK_NAMES
from asap_core.reconstruction.network import Floats, Network
from asap_core.reconstruction.video_file import Image
from asap_core.reconstruction.weights import read_weights
from asap_core.rotations import Array

SIDE = 256
"""px of the network's square input."""
_POINTS = 39
"""The body's landmarks, two that say where the person is, and four that are not used."""
_BODY = len(LANDMARK_NAMES)
_HEAT = 64
"""px of the heat maps' side."""
_REACH = 3
"""px of a heat map around a landmark, each way, over which it is refined."""
_LEAST_HEAT = 0.5


@dataclass(frozen=True)
class Pose:
    """What the network says of one region."""

    score: float
    """From 0 to 1: whether a person is there."""
    pixels: Array
    """(33, 2) px of the picture."""
    metric: Array
    """(33, 3) m from the middle of the hips; x right, y down, z away, in the camera's axes."""
    confidence: Array
    """(33,) from 0 to 1."""
    next_region: Region
    """Where the person is now, as the place to look in the next picture."""


class PoseNetwork:
    """The landmark network."""

    def __init__(self, model: str, weights: Path) -> None:
        """Load the network `model`, full or heavy, from the folder `weights`.

        Raises:
            InputFileError: its file is missing or another one.
            MissingPartError: the extra `video` is not installed.
        """
        shapes = [(1, _POINTS * 5), (1, 1), (1, _HEAT, _HEAT, _POINTS), (1, _POINTS * 3)]
        self._network = Network(read_weights(model, weights), shapes)

    def look(self, image: Image, region: Region) -> Pose:
        """The landmarks of the person in `region` of an RGB picture (h, w, 3)."""
        landmarks, score, heat, metric = self._network.run(cut_out(image, region))
        rows = landmarks.reshape(_POINTS, 5).astype(float)
        place = region.to_picture(SIDE)
        points = refined(rows[:, :2], heat) @ place[:, :2].T + place[:, 2]
        turned = metric.reshape(_POINTS, 3)[:_BODY].astype(float)
        turned[:, :2] = turned[:, :2] @ (place[:, :2].T * (SIDE / region.size))
        return Pose(
            score=float(score[0]),
            pixels=points[:_BODY],
            metric=turned,
            confidence=np.prod(_sigmoid(rows[:_BODY, 3:5]), axis=1),
            next_region=Region.around(points[_BODY], points[_BODY + 1]),
        )


def cut_out(image: Image, region: Region) -> Floats:
    """The region as the network's input (256, 256, 3), from 0 to 1; black beyond the picture."""
    import cv2

    place = region.to_picture(SIDE)
    corners = place @ np.array([[0, SIDE, 0, SIDE], [0, 0, SIDE, SIDE], [1, 1, 1, 1]])
    height, width = image.shape[:2]
    left, top = np.clip(np.floor(corners.min(axis=1)), 0, (width, height)).astype(int)
    right, bottom = np.clip(np.ceil(corners.max(axis=1)) + 1, 0, (width, height)).astype(int)
    part = image[top:bottom, left:right]
    place[:, 2] -= left, top
    for _ in range(int(math.log2(max(1.0, region.size / SIDE)))):
        rows, columns = part.shape[0] // 2, part.shape[1] // 2
        if min(rows, columns) == 0:
            break
        part = cv2.resize(part[: 2 * rows, : 2 * columns], (columns, rows), interpolation=cv2.INTER_AREA)
        place /= 2
        place[:, 2] -= 0.25
    if part.size == 0:
        return np.zeros((SIDE, SIDE, 3), dtype=np.float32)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    crop = cv2.warpAffine(part, place, (SIDE, SIDE), flags=flags, borderMode=cv2.BORDER_CONSTANT)
    return np.multiply(crop, np.float32(1 / 255), dtype=np.float32)


def refined(points: Array, heat: Floats) -> Array:
    """Landmarks (39, 2) in px of the input, moved to the centre of the heat around them.

    Args:
        points: what the network regressed, px of the input.
        heat: logits (64, 64, 39), one map per landmark.

    Source: MediaPipe's `RefineLandmarksFromHeatmapCalculator`: a 7 × 7 window, taken where it holds 0.5 or more.
    """
    step = SIDE // _HEAT
    offsets = np.arange(-_REACH, _REACH + 1)
    cells = np.floor(np.clip(points / step, -1e6, 1e6)).astype(int)
    x, y = cells[:, :1] + offsets, cells[:, 1:] + offsets
    inside = ((y >= 0) & (y < _HEAT))[:, :, None] & ((x >= 0) & (x < _HEAT))[:, None, :]
    inside &= np.all((cells >= 0) & (cells < _HEAT), axis=1)[:, None, None]
    rows, columns = np.clip(y, 0, _HEAT - 1)[:, :, None], np.clip(x, 0, _HEAT - 1)[:, None, :]
    window = _sigmoid(heat[rows, columns, np.arange(len(points))[:, None, None]].astype(float)) * inside
    total = window.sum(axis=(1, 2))
    use = window.max(axis=(1, 2)) >= _LEAST_HEAT
    total = np.where(use, total, 1.0)
    centre = np.stack([(window.sum(axis=1) * x).sum(axis=1), (window.sum(axis=2) * y).sum(axis=1)], axis=1)
    return np.where(use[:, None], centre / total[:, None] * step, points)


def _sigmoid(values: Array) -> Array:
    return 1 / (1 + np.exp(-np.clip(values, -100, 100)))
