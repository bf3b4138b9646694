"""Which motions the video bench renders, and the persons and cameras that a seed draws for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from asap_core.motions.formats.amass import read_amass
from asap_core.motions.human import HumanMotion
from asap_core.motions.samples import FPS, SAMPLES, poses
from asap_core.motions.skeleton import NUM_JOINTS, body_offsets
from asap_core.motions.tables import Source
from asap_core.reconstruction.camera import Camera
from asap_core.reconstruction.rendering.render import Shot, place
from asap_core.rotations import Array

TUNED_ON = ("squat_level1", "walk_level1", "kick_level1", "side_jump_level1")
"""Clips that the lift's weights were chosen on; the bench renders none of them."""
HELD_OUT = (
    "walk_level3", "step_forward_back_level2", "single_foot_balance_level3", "jump_forward_level2", "shoot_level1",
    "kick_level2", "squat_level3", "TigerWoods_level1",
)  # fmt: skip
"""Clips of the release that the bench renders; without the release, the motions that the project makes itself."""
SIDE = 640
"""Width and height of the pictures, px."""
_SECONDS = 5.0
_FOCAL, _FOCAL_SHARE = 700.0, 0.25
_PERSON, _CAMERA_HEIGHT = (1.50, 1.95), (0.8, 1.8)
"""m."""
_OFF_AIM, _TURN = np.radians(4.0), np.radians(80.0)
"""How far the camera points above or below the person's middle, and the person faces away from it, at most."""
_SHARE = (0.45, 0.60)
"""Of the picture's height that the person takes."""
_MARGIN = 12.0
"""px between the person and the picture's edge."""


def bench_motions(shared: Path) -> list[HumanMotion]:
    """The motions to render, at most 5 s each: of the release, if it is there, and two of the project's own."""
    folder = shared / "data" / "asap" / "smpl"
    clips = [path for name in HELD_OUT for path in sorted(folder.glob(f"video_{name}*_amass.npz"))]
    found = [read_amass(path, name) for path, name in zip(clips, HELD_OUT, strict=False)]
    own = ("side_step", "kick") if found else tuple(SAMPLES)
    return [_first_seconds(motion) for motion in (*found, *map(made_motion, own))]


def made_motion(name: str) -> HumanMotion:
    """One of the project's own motions."""
    rotations, pelvis = poses(SAMPLES[name]())
    source = Source(name, "", "asap samples 1")
    return HumanMotion(name, FPS, rotations.reshape(-1, NUM_JOINTS, 3), pelvis, body_offsets(), source)


def _first_seconds(motion: HumanMotion) -> HumanMotion:
    count = min(motion.num_frames, round(_SECONDS * motion.fps))
    return replace(
        motion,
        joint_rotations=motion.joint_rotations[:count],
        root_translation=motion.root_translation[:count],
    )


def draw_shot(motion: HumanMotion, seed: int) -> Shot:
    """The motion acted by a person of a drawn height before a camera of drawn focal length, height, pitch and side.

    The camera stands as near as the person's share of the picture tells, and farther until all of the path is inside.
    """
    rng = np.random.default_rng([seed, *motion.name.encode()])
    focal = _FOCAL * (1.0 + rng.uniform(-_FOCAL_SHARE, _FOCAL_SHARE))
    person, height = rng.uniform(*_PERSON), rng.uniform(*_CAMERA_HEIGHT)
    off_aim, heading = rng.uniform(-_OFF_AIM, _OFF_AIM), np.pi + rng.uniform(-_TURN, _TURN)
    near = distance = focal * person / (rng.uniform(*_SHARE) * SIDE)
    camera = Camera(focal, 0.0, 0.0, height, (SIDE / 2, SIDE / 2))
    shot = place(motion, camera, SIDE, SIDE, person, near, heading)
    joints = shot.joints()
    while True:
        camera = replace(camera, pitch=float(np.arctan2(height - person / 2, distance) + off_aim))
        away = np.array([distance - near, 0.0, 0.0])
        if _is_inside(camera, joints + away, person):
            there = replace(shot.motion, root_translation=shot.motion.root_translation + away)
            return replace(shot, motion=there, camera=camera)
        distance *= 1.05


def _is_inside(camera: Camera, joints: Array, person: float) -> bool:
    """Whether the joints (T, 24, 3) and what a body has around them are in the picture."""
    seen = camera.seen(joints)
    around = _MARGIN + camera.focal * 0.07 * person / seen[..., 2].min()
    pixels = camera.project(seen)
    return bool(seen[..., 2].min() > 0.5 and pixels.min() > around and pixels.max() < SIDE - around)
