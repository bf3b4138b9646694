"""A skeleton's lines, and its two side views as a picture."""

from __future__ import annotations

import numpy as np

from asap_core.motions.skeleton import JOINT_NAMES, PARENTS
from asap_core.reconstruction.video_file import Image
from asap_core.rotations import Array

BONES = [(parent, joint) for joint, parent in enumerate(PARENTS) if parent >= 0]
LEFT_COLOUR, RIGHT_COLOUR, MIDDLE_COLOUR = (70, 140, 255), (255, 110, 70), (60, 200, 120)
BRIDGED_COLOUR = (150, 150, 150)
"""RGB; bridged frames are grey."""
_BACKGROUND, _GROUND = (250, 250, 250), (190, 190, 190)
_SPAN = 2.4
"""m that a view is high."""
_SOLE = 0.3
"""m of it that lie below the ground."""


def titles(one_camera: bool) -> tuple[str, str]:
    """What the two side views show: a single camera looks along x of its motion's world."""
    return ("from the camera", "from the camera's right") if one_camera else ("along x", "along y")


def bone_colours(bridged: bool) -> list[tuple[int, int, int]]:
    """One RGB colour per bone: by side, or grey."""
    by_side = {"L": LEFT_COLOUR, "R": RIGHT_COLOUR}
    return [BRIDGED_COLOUR if bridged else by_side.get(JOINT_NAMES[b][:2].rstrip("_"), MIDDLE_COLOUR) for _, b in BONES]


def draw_bones(image: Image, points: Array, bridged: bool, width: int) -> None:
    """Draw the bones between joints (24, 2), px, into an RGB picture; what lies far outside is left out."""
    import cv2

    limit = 4 * max(image.shape)
    for (parent, joint), colour in zip(BONES, bone_colours(bridged), strict=True):
        ends = points[[parent, joint]]
        if np.all(np.abs(ends) < limit):
            first, second = ((round(float(x)), round(float(y))) for x, y in ends)
            cv2.line(image, first, second, colour, width, cv2.LINE_AA)


def side_views(positions: Array, bridged: bool, side: int, titles: tuple[str, str]) -> Image:
    """Two squares, one above the other (2·side, side, 3): the world along x, and from its right, along y.

    Args:
        positions: joints (24, 3) in the world, m.
        bridged: whether the frame is without the person.
        side: px.
        titles: of both.
    """
    import cv2

    picture = np.empty((2 * side, side, 3), dtype=np.uint8)
    for number, (across, sign) in enumerate(((1, -1.0), (0, 1.0))):
        view = picture[number * side : (number + 1) * side]
        view[:] = _BACKGROUND
        scale = side / _SPAN
        ground = int(side - _SOLE * scale)
        cv2.line(view, (0, ground), (side, ground), _GROUND, 1, cv2.LINE_AA)
        x = side / 2 + sign * scale * (positions[:, across] - positions[0, across])
        draw_bones(view, np.stack([x, ground - scale * positions[:, 2]], axis=1), bridged, max(2, side // 160))
        cv2.putText(view, titles[number], (8, 18), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (90, 90, 90), 1, cv2.LINE_AA)
    return picture
