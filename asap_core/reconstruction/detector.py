"""Where persons are in a picture: BlazePose's detector, on the whole picture at 224 × 224."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.reconstruction.network import Floats, Network
from asap_core.reconstruction.video_file import Image
from asap_core.reconstruction.weights import read_weights
from asap_core.rotations import Array

SIDE = 224
"""px of the network's square input."""
_GRIDS = ((8, 2), (16, 2), (32, 6))
"""(stride in px, anchors per cell), as the network's authors published them."""
_NUM_ANCHORS = 2254
_LEAST_SCORE = 0.5
_SAME_PERSON = 0.3
"""Overlap (intersection over union) from which two boxes are the same person."""
_MARGIN = 1.25
"""Side of the square that is cut out, over the diameter of the circle that holds the person."""


@dataclass(frozen=True)
class Region:
    """A turned square of the picture that holds one person, head up."""

    x: float
    """Centre, px."""
    y: float
    size: float
    """Side, px."""
    angle: float
    """rad from the picture's axes to the square's, positive from x to y."""

    @classmethod
    def around(cls, centre: Array, rim: Array) -> Region:
        """The square for a person whose hips' middle is `centre` (2,) and whose head's far rim is `rim` (2,), px."""
        across, down = rim - centre
        return cls(
            x=float(centre[0]),
            y=float(centre[1]),
            size=2 * _MARGIN * math.hypot(across, down),
            angle=math.remainder(math.pi / 2 - math.atan2(-down, across), 2 * math.pi),
        )

    def to_picture(self, side: int) -> Array:
        """Matrix (2, 3) from a point of the square, drawn with `side` × `side` px, to the picture."""
        scale = self.size / side
        cosine, sine = scale * math.cos(self.angle), scale * math.sin(self.angle)
        turn = np.array([[cosine, -sine], [sine, cosine]])
        middle = np.array([self.x, self.y]) - turn @ np.full(2, side / 2)
        return np.column_stack([turn, middle])


def anchors() -> Array:
    """(2254, 2) centres of the network's anchors, x and y as shares of the input's side."""
    grids = []
    for stride, per_cell in _GRIDS:
        cells = (np.arange(SIDE // stride) + 0.5) * stride / SIDE
        y, x = np.meshgrid(cells, cells, indexing="ij")
        grids.append(np.repeat(np.stack([x, y], axis=-1).reshape(-1, 2), per_cell, axis=0))
    return np.concatenate(grids)


class Detector:
    """Finds persons in a picture."""

    def __init__(self, weights: Path) -> None:
        """Load the network from the folder `weights`.

        Raises:
            InputFileError: its file is missing or another one.
            MissingPartError: the extra `video` is not installed.
        """
        self._network = Network(read_weights("detector", weights), [(1, _NUM_ANCHORS, 12), (1, _NUM_ANCHORS, 1)])
        self._anchors = anchors()

    def find(self, image: Image) -> list[Region]:
        """One region per person in an RGB picture (h, w, 3), the surest first."""
        tensor, scale, shift = _letterboxed(image)
        boxes, logits = self._network.run(tensor)
        scores = 1 / (1 + np.exp(-np.clip(logits[:, 0].astype(float), -100, 100)))
        sure = np.flatnonzero(scores >= _LEAST_SCORE)
        order = sure[np.argsort(-scores[sure], kind="stable")]
        raw, at = boxes[order].astype(float) / SIDE, self._anchors[order]
        corners = np.hstack([raw[:, :2] + at - raw[:, 2:4] / 2, raw[:, :2] + at + raw[:, 2:4] / 2])
        points = (raw[:, 4:8].reshape(-1, 2, 2) + at[:, None]) * SIDE
        regions = []
        for same in _persons(corners):
            centre, rim = np.average(points[same], axis=0, weights=scores[order][same])
            regions.append(Region.around((centre - shift) / scale, (rim - shift) / scale))
        return regions


def _letterboxed(image: Image) -> tuple[Floats, float, Array]:
    """The picture in the middle of a black square, from −1 to 1; its scale and its shift (2,) in px."""
    import cv2

    height, width = image.shape[:2]
    scale = SIDE / max(height, width)
    w, h = round(width * scale), round(height * scale)
    left, top = (SIDE - w) // 2, (SIDE - h) // 2
    square = np.full((SIDE, SIDE, 3), -1.0, dtype=np.float32)
    square[top : top + h, left : left + w] = cv2.resize(image, (w, h), interpolation=cv2.INTER_AREA) / 127.5 - 1
    return square, scale, np.array([left, top], dtype=float)


def _persons(corners: Array) -> list[NDArray[np.intp]]:
    """Rows of boxes (N, 4) that belong together; the first row of each group is its surest."""
    left = np.arange(len(corners))
    area = np.prod(corners[:, 2:] - corners[:, :2], axis=1)
    groups = []
    while len(left):
        best = left[0]
        low = np.maximum(corners[left, :2], corners[best, :2])
        high = np.minimum(corners[left, 2:], corners[best, 2:])
        shared = np.prod(np.maximum(high - low, 0), axis=1)
        same = shared / (area[left] + area[best] - shared) > _SAME_PERSON
        same[0] = True
        groups.append(left[same])
        left = left[~same]
    return groups
