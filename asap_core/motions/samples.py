"""The project's own human motions: a squat, a side step and a kick, written as AMASS clips of 30 frames per second.

`python -m asap_core.motions.samples data/human` writes them anew. They are slow enough that balance is nearly static:
before a foot leaves the ground, the weight is over the other one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from asap_core.motions.formats.amass import write_amass
from asap_core.motions.skeleton import ANKLE_HEIGHT, INDEX, NUM_JOINTS, REST_TO_WORLD, body_offsets
from asap_core.rotations import Array

FPS = 30.0
_STAND_DROP = 0.012
"""How far the pelvis hangs below straight legs, m: knees never lock."""
_NARROW = 0.05
"""Half the distance of the ankles in motions that lift a foot, m."""
_SWAY = 0.12
"""How far the pelvis goes sideways until the weight is over one foot, a person's or a wider robot's, m."""


@dataclass
class _Script:
    """Key-framed channels of a motion; times in s, lengths in m, angles in rad, world x forward and y left."""

    duration: float
    pelvis: Array
    """(T, 3) pelvis relative to standing."""
    lean: Array
    """(T,) forward lean of the pelvis and all above."""
    arms: Array
    """(T,) both arms raised forward from hanging."""
    feet: dict[str, Array]
    """Side L or R -> (T, 3) ankle relative to standing under its hip."""


def _times(duration: float) -> Array:
    return np.arange(round(duration * FPS) + 1) / FPS


def _channel(times: Array, keys: list[tuple[float, float]]) -> Array:
    """Values at `times` through (time, value) keys, with minimum-jerk moves between them."""
    out = np.full(len(times), keys[0][1])
    for (start, before), (end, after) in pairwise(keys):
        s = np.clip((times - start) / (end - start), 0.0, 1.0)
        out = np.where(times >= start, before + (after - before) * s**3 * (10 - 15 * s + 6 * s * s), out)
    return out


def squat() -> _Script:
    """Down by 0.12 m with the arms forward, a short hold, and up: 3.4 s."""
    times = _times(3.4)
    down = _channel(times, [(0.4, 0.0), (1.5, 1.0), (1.8, 1.0), (2.9, 0.0)])
    pelvis = np.stack([-0.05 * down, 0 * down, -0.12 * down], axis=1)
    still = 0 * pelvis
    return _Script(3.4, pelvis, 0.28 * down, 0.8 * down, {"L": still, "R": still})


def side_step() -> _Script:
    """A step of 0.16 m to the left and closing: 5.6 s."""
    times = _times(5.6)
    width, over, none = 0.16, 0.16 + _SWAY, 0 * times
    sway = _channel(times, [(0.3, 0.0), (1.2, -_SWAY), (1.9, -_SWAY), (3.2, over), (3.9, over), (5.0, width)])
    dip = _channel(times, [(0.3, 0.0), (1.2, -0.045), (4.3, -0.045), (5.1, 0.0)])
    left_way, right_way = (_channel(times, [(start, 0.0), (start + 0.6, width)]) for start in (1.25, 3.25))
    left = np.stack([none, left_way - _inwards(), _lift(times, 1.2, 1.9, 0.05)], axis=1)
    right = np.stack([none, right_way + _inwards(), _lift(times, 3.2, 3.9, 0.05)], axis=1)
    return _Script(5.6, np.stack([none, sway, dip], axis=1), none, none + 0.15, {"L": left, "R": right})


def kick() -> _Script:
    """A low forward kick of the right foot, standing on the left: 4.6 s."""
    times = _times(4.6)
    none = 0 * times
    sway = _channel(times, [(0.3, 0.0), (1.2, _SWAY), (3.2, _SWAY), (4.1, 0.0)])
    back = _channel(times, [(1.5, 0.0), (2.0, -0.03), (2.4, -0.03), (3.0, 0.0)])
    dip = _channel(times, [(0.3, 0.0), (1.2, -0.03), (3.3, -0.03), (4.1, 0.0)])
    reach = _channel(times, [(1.3, 0.0), (1.6, -0.06), (2.15, 0.32), (2.3, 0.32), (3.0, 0.0)])
    rise = _channel(times, [(1.2, 0.0), (1.6, 0.08), (2.15, 0.16), (2.3, 0.16), (3.1, 0.0)])
    left = np.stack([none, none - _inwards(), none], axis=1)
    right = np.stack([reach, none + _inwards(), rise], axis=1)
    return _Script(4.6, np.stack([back, sway, dip], axis=1), none, none + 0.15, {"L": left, "R": right})


SAMPLES: dict[str, Callable[[], _Script]] = {"squat": squat, "side_step": side_step, "kick": kick}


def _lift(times: Array, start: float, end: float, height: float) -> Array:
    middle = (start + end) / 2
    return _channel(times, [(start, 0.0), (middle, height), (end, 0.0)])


def _inwards() -> float:
    """From under the hip to the narrow stance, m."""
    return float(body_offsets()[INDEX["L_Hip"], 0]) - _NARROW


def _about_x(angle: Array) -> Array:
    """Rotations (T, 3, 3) about the rest frame's x (left) axis: positive bends forward."""
    c, s, o, i = np.cos(angle), np.sin(angle), np.zeros_like(angle), np.ones_like(angle)
    return np.stack([np.stack([i, o, o], -1), np.stack([o, c, -s], -1), np.stack([o, s, c], -1)], -2)


def poses(script: _Script) -> tuple[Array, Array]:
    """SMPL poses (T, 72) axis-angle and pelvis positions (T, 3) of a script over the project's body."""
    from scipy.spatial.transform import Rotation

    skeleton = body_offsets()
    frames = len(script.lean)
    local = np.tile(np.eye(3), (frames, NUM_JOINTS, 1, 1))
    root = REST_TO_WORLD @ _about_x(script.lean)
    local[:, 0] = root
    stand = -(skeleton[INDEX["L_Hip"]] + skeleton[INDEX["L_Knee"]] + skeleton[INDEX["L_Ankle"]])[1] + ANKLE_HEIGHT
    pelvis = script.pelvis + np.array([0.0, 0.0, stand - _STAND_DROP])
    for side in ("L", "R"):
        hip = INDEX[f"{side}_Hip"]
        ankle = script.feet[side] + np.array([0.0, skeleton[hip, 0], ANKLE_HEIGHT])
        reach = np.einsum("tji,tj->ti", root, ankle - pelvis) - skeleton[hip]
        for name, turn in zip(("Hip", "Knee", "Ankle"), _leg(side, reach, root, skeleton), strict=True):
            local[:, INDEX[f"{side}_{name}"]] = turn
    for side, sign in (("L", 1.0), ("R", -1.0)):
        hang = Rotation.from_rotvec([0.0, 0.0, -1.4 * sign]).as_matrix()
        local[:, INDEX[f"{side}_Shoulder"]] = _about_x(-script.arms - script.lean) @ hang
        local[:, INDEX[f"{side}_Elbow"]] = Rotation.from_rotvec([0.0, -0.5 * sign, 0.0]).as_matrix()
    rotvec = Rotation.from_matrix(local.reshape(-1, 3, 3)).as_rotvec()
    return rotvec.reshape(frames, 3 * NUM_JOINTS), pelvis


def _leg(side: str, reach: Array, root: Array, skeleton: Array) -> tuple[Array, Array, Array]:
    """Hip, knee and ankle rotations (T, 3, 3) that bring the ankle to `reach` (T, 3), hip to ankle in the pelvis frame.

    The knee points forward and the foot stays level with the world.
    """
    thigh, shank = (-skeleton[INDEX[f"{side}_{name}"], 1] for name in ("Knee", "Ankle"))
    distance = np.linalg.norm(reach, axis=1)
    bend = np.arccos((distance**2 - thigh**2 - shank**2) / (2 * thigh * shank))
    knee = _about_x(bend)
    straight = np.array([0.0, -thigh, 0.0]) + knee @ np.array([0.0, -shank, 0.0])
    hip = _frame(reach) @ np.swapaxes(_frame(straight), 1, 2)
    ankle = np.swapaxes(root @ hip @ knee, 1, 2) @ REST_TO_WORLD
    return hip, knee, ankle


def _frame(direction: Array) -> Array:
    """Frames (T, 3, 3) whose second axis is `direction` (T, 3) and whose first is as near x as that allows."""
    second = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    first = np.array([1.0, 0.0, 0.0]) - second * second[:, :1]
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    return np.stack([first, second, np.cross(first, second)], axis=-1)


def write_samples(folder: Path) -> list[Path]:
    """Write all samples as `<folder>/<name>.npz` and return the paths."""
    paths = []
    for name, script in SAMPLES.items():
        rotations, translation = poses(script())
        paths.append(folder / f"{name}.npz")
        write_amass(paths[-1], rotations, translation, FPS)
    return paths


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m asap_core.motions.samples FOLDER")
    write_samples(Path(sys.argv[1]))
