"""Faults put into a clean clip on purpose; the screen and the imitator are scored on finding them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from asap_core.motions.human import HumanMotion
from asap_core.motions.robot import RobotMotion
from asap_core.motions.skeleton import INDEX, JOINT_NAMES, sole_points
from asap_core.rotations import Array, quat_mul, quat_to_rotvec, rotate, rotvec_to_quat

FLOAT, DEPTH, SLIDE, SKATE, TELEPORT, LEAN, SPEED_UP = 0.5, 0.1, 1.0, 0.2, 0.7, np.radians(25.0), 3.0
"""m, m, m/s, m/s, m, rad, times."""
_PAIRS = tuple((INDEX[name], INDEX["R_" + name[2:]]) for name in JOINT_NAMES if name.startswith("L_"))


@dataclass(frozen=True)
class Fault:
    """One way to spoil a clip, and the rules of which one has to speak for the right reason."""

    make: Callable[[HumanMotion], HumanMotion]
    rules: frozenset[str]


def _shift(fault: str, num_frames: int, fps: float) -> Array:
    """(T, 3) m: how a fault that moves the whole body moves it."""
    frame = np.arange(num_frames)[:, None]
    if fault == "float":
        return np.tile([0.0, 0.0, FLOAT], (num_frames, 1))
    if fault == "penetration":
        return np.tile([0.0, 0.0, -DEPTH], (num_frames, 1))
    if fault == "slide":
        return np.asarray(frame / fps * [SLIDE, 0.0, 0.0])
    if fault == "skate":
        return np.asarray(frame / fps * [SKATE, 0.0, 0.0])
    return np.asarray((frame >= num_frames // 2) * [TELEPORT, 0.0, 0.0])


def shifts(fault: str) -> Callable[[HumanMotion], HumanMotion]:
    """The whole body moved: `float` and `penetration` for the whole clip, `slide` and `skate` carried along x at a
    constant speed, `teleport` from the middle frame on."""

    def make(motion: HumanMotion) -> HumanMotion:
        return _moved(motion, _shift(fault, motion.num_frames, motion.fps))

    return make


def leans(motion: HumanMotion) -> HumanMotion:
    """The world tilted by 25° about x, as by a wrong camera, and put back to the ground at its old level."""
    tilt = rotvec_to_quat(np.array([LEAN, 0.0, 0.0]))
    rotations = motion.joint_rotations.copy()
    rotations[:, 0] = quat_to_rotvec(quat_mul(tilt, rotvec_to_quat(rotations[:, 0])))
    start = motion.root_translation[0]
    path = rotate(tilt, motion.root_translation - start) + start
    tilted = replace(motion, joint_rotations=rotations, root_translation=path)
    return _moved(tilted, np.array([0.0, 0.0, standing_level(motion) - standing_level(tilted)]))


def swaps(motion: HumanMotion) -> HumanMotion:
    """Every left joint's rotation column given to the right one and back, not mirrored: an exporter's mix-up."""
    return replace(motion, joint_rotations=_swapped(motion.joint_rotations))


def speeds_up(motion: HumanMotion) -> HumanMotion:
    """The same frames at three times their rate."""
    return replace(motion, fps=motion.fps * SPEED_UP)


FAULTS: dict[str, Fault] = {
    "float": Fault(shifts("float"), frozenset({"float"})),
    "penetration": Fault(shifts("penetration"), frozenset({"penetration"})),
    "slide": Fault(shifts("slide"), frozenset({"slide"})),
    "skate": Fault(shifts("skate"), frozenset({"slide"})),
    "teleport": Fault(shifts("teleport"), frozenset({"jump"})),
    "lean": Fault(leans, frozenset({"balance", "infeasible"})),
    "swap": Fault(swaps, frozenset({"anatomy"})),
    "speed_up": Fault(speeds_up, frozenset({"infeasible", "jump", "joint_speed", "force"})),
}
"""By name, in the order of the tables."""


def spoil_robot(motion: RobotMotion, fault: str) -> RobotMotion:
    """The same fault in a robot's motion: one that moves the whole body, or `speed_up`."""
    if fault == "speed_up":
        return replace(motion, fps=motion.fps * SPEED_UP)
    return replace(motion, root_pos=motion.root_pos + _shift(fault, motion.num_frames, motion.fps))


def asymmetry(motion: HumanMotion) -> float:
    """Mean distance in m that `swaps` moves the hands, elbows, knees, ankles and toes: what the fault changes."""
    ends = [INDEX[f"{side}_{name}"] for side in "LR" for name in ("Hand", "Elbow", "Knee", "Ankle", "Toe")]
    change = motion.joint_positions()[:, ends] - swaps(motion).joint_positions()[:, ends]
    return float(np.linalg.norm(change, axis=-1).mean())


def standing_level(motion: HumanMotion) -> float:
    """Height in m of the lowest sole point, its 10th percentile over the clip."""
    rotations = motion.global_rotations()
    joints = motion.joint_positions(rotations)
    heights = [joints[:, j, 2] + (rotations[:, j] @ offset)[:, 2] for j, offset in sole_points(motion.skeleton)]
    return float(np.percentile(np.min(heights, axis=0), 10))


def _moved(motion: HumanMotion, by: Array) -> HumanMotion:
    return replace(motion, root_translation=motion.root_translation + by)


def _swapped(rotations: Array) -> Array:
    out = rotations.copy()
    for left, right in _PAIRS:
        out[:, left], out[:, right] = rotations[:, right], rotations[:, left]
    return out
