"""Pictures of a `HumanMotion` as one camera sees it, and exactly where the body's joints are in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import cv2
import numpy as np

from asap_core.motions.human import HumanMotion
from asap_core.reconstruction.camera import Camera
from asap_core.reconstruction.rendering.background import draw_background
from asap_core.reconstruction.rendering.body_mesh import BodyMesh, load_body_mesh
from asap_core.reconstruction.rendering.planted import planted_path
from asap_core.reconstruction.rendering.raster import Image, draw_body, draw_shadow, region_colours
from asap_core.rotations import Array, quat_mul, quat_to_rotvec, rotate, rotvec_to_quat


@dataclass(frozen=True)
class Shot:
    """A person before a camera, T frames, in the camera's world: z up, the ground z = 0, the camera above the origin.

    The person is the body mesh, so the truth is the mesh's: its joints and keypoints, not the motion's.
    """

    motion: HumanMotion
    """As acted: turned, placed and scaled to the body, over the mesh's own skeleton."""
    body: BodyMesh
    camera: Camera
    width: int
    height: int
    """px."""

    def joints(self) -> Array:
        """(T, 24, 3) of the body, m."""
        return self.motion.joint_positions()

    def keypoints(self) -> Array:
        """(T, 23, 3) `KEYPOINT_NAMES`, m."""
        return np.stack([self.body.regressor @ vertices for vertices in self.vertices()])

    def vertices(self) -> Iterator[Array]:
        """(V, 3) of each frame, m."""
        for rotations, pelvis in zip(self.motion.global_rotations(), self.motion.root_translation, strict=True):
            yield self.body.pose(rotations, pelvis)[0]


def place(
    motion: HumanMotion,
    camera: Camera,
    width: int,
    height: int,
    person_height: float,
    distance: float,
    heading: float = np.pi,
) -> Shot:
    """Put the person before the camera.

    Args:
        motion: z up; its rate is the video's.
        camera: in whose world the person is placed.
        width: of the picture, px.
        height: of the picture, px.
        person_height: sole to crown, m.
        distance: of the middle of the person's path from the camera's foot, straight ahead, m.
        heading: where the person faces in the first frame, rad from the viewing direction; π is towards the camera.
    """
    body = load_body_mesh().fitted(motion.skeleton, person_height)
    path = planted_path(motion, body, motion.global_rotations())
    turn = heading - _facing(motion)
    quat = np.array([np.cos(turn / 2), 0.0, 0.0, np.sin(turn / 2)])
    rotations = motion.joint_rotations.copy()
    rotations[:, 0] = quat_to_rotvec(quat_mul(quat, rotvec_to_quat(rotations[:, 0])))
    path = rotate(quat, path)
    path[:, :2] += (distance, 0.0) - (path[:, :2].min(axis=0) + path[:, :2].max(axis=0)) / 2
    acted = replace(motion, joint_rotations=rotations, root_translation=path, skeleton=body.offsets)
    return Shot(acted, body, camera, width, height)


def _facing(motion: HumanMotion) -> float:
    """rad of the direction in which the body faces in the first frame."""
    ahead = motion.global_rotations()[0, 0] @ np.array([0.0, 0.0, 1.0])
    return float(np.arctan2(ahead[1], ahead[0]))


def render(shot: Shot, seed: int = 0) -> Iterator[Image]:
    """Each frame as RGB (height, width, 3); equal shots give equal frames. The floor's grain is drawn by `seed`."""
    scene = draw_background(shot.camera, shot.width, shot.height, seed)
    colours = region_colours(shot.body)
    for vertices in shot.vertices():
        picture = draw_shadow(scene, shot.camera, shot.body, vertices)
        draw_body(picture, shot.camera, shot.body, vertices, colours)
        yield cv2.GaussianBlur(picture, (3, 3), 0.6).astype(np.uint8)
