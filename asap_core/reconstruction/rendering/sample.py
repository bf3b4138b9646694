"""The project's own sample video: a person who squats, made from nothing but this project's files.

`python -m asap_core.reconstruction.rendering.sample data/human data/video` writes it anew, and its truth beside.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

from asap_core.files import write_json
from asap_core.motions.formats.npz import write_npz
from asap_core.motions.human import HumanMotion
from asap_core.motions.samples import FPS, SAMPLES, poses
from asap_core.motions.skeleton import NUM_JOINTS, body_offsets
from asap_core.motions.tables import Source
from asap_core.reconstruction.camera import Camera
from asap_core.reconstruction.rendering.mp4 import write_mp4
from asap_core.reconstruction.rendering.render import Shot, place, render

NAME = "person_squat"
_STILL = 18
"""Frames of standing before and after the squat."""
_SIDE, _PERSON, _DISTANCE, _HEADING = 640, 1.74, 3.2, np.radians(148.0)
_CAMERA = Camera(focal=720.0, pitch=0.09, roll=0.0, height=1.2, centre=(_SIDE / 2, _SIDE / 2))
_CRF = 23


def sample_shot() -> Shot:
    """The squat of `motions.samples`, longer by its first and last frames, before a camera at breast height."""
    rotations, pelvis = poses(SAMPLES["squat"]())
    rotations = np.pad(rotations, ((_STILL, _STILL), (0, 0)), mode="edge").reshape(-1, NUM_JOINTS, 3)
    path = np.pad(pelvis, ((_STILL, _STILL), (0, 0)), mode="edge")
    source = Source(f"{NAME}.mp4", "", "asap_core.reconstruction.rendering.sample 1")
    motion = HumanMotion(NAME, FPS, rotations, path, body_offsets(), source)
    return place(motion, _CAMERA, _SIDE, _SIDE, _PERSON, _DISTANCE, _HEADING)


def write_sample(videos: Path, truth: Path) -> list[Path]:
    """Write the video into one folder, and into the other its truth; return the paths.

    The truth is the motion (world: the ground z = 0, the camera above the origin, looking along x), the body's 23
    keypoints in that world, m, and the camera.
    """
    shot = sample_shot()
    video = videos / f"{NAME}.mp4"
    motion, points, scene = (truth / f"{NAME}.truth{suffix}" for suffix in (".parquet", ".npz", ".json"))
    write_mp4(render(shot), FPS, video, _CRF)
    shot.motion.save(motion)
    write_npz(points, {"keypoints": shot.keypoints().astype(np.float32)})
    about = {"camera": asdict(shot.camera), "person_height": shot.body.stature, "width": _SIDE, "height": _SIDE}
    write_json(scene, about | {"fps": FPS, "frames": shot.motion.num_frames})
    return [video, motion, points, scene]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m asap_core.reconstruction.rendering.sample VIDEOS TRUTH")
    write_sample(Path(sys.argv[1]), Path(sys.argv[2]))
