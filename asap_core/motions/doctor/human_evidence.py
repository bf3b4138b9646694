"""What a person's clip says of its own up axis, frame, rate and unit: figures, not verdicts.

Everything is measured in the clip's own world and unit, on its own bones or, for SMPL's layouts, on the free body of
`skeleton.body_offsets` in metres. The limits at which a figure becomes a verdict are the constants below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asap_core.motions.formats.clip import HumanClip
from asap_core.motions.skeleton import INDEX, STATURE, body_offsets, leg_length, place_joints, world_rotations
from asap_core.rotations import Array

GRAVITY = 9.81
"""m/s²."""
UP_LEAST, UP_MARGIN = 0.7, 0.3
"""Cosine that the body's direction from its feet must have with the up axis, and its lead over the next axis. The 39
published clips, jumps and one-legged stands among them, have at least 0.98 and 0.79."""
TILT_MOST = 13.0
"""Degrees between a standing body and the nearest axis; beyond, the frame is a pitched camera's and no world. The 39
published clips have at most 10.6."""
FLIGHT_LEAST = 6
"""Frames of flight below which gravity gives no rate."""
FACTOR_SPREAD = 1.2
"""A rate is wrong if it is off from gravity's by more than this factor; half or double are 0.5 and 2. In the nine
published clips with flight it is off by 1.015 at most."""
STATURE_RANGE = (0.9, 2.6)
"""m. What a person's bones may measure from sole to head; units differ by ten, so at most one fits."""

_CLEAR = 0.06
"""Of the leg's length: how far ankles and toes must be above their lowest to be in flight."""
_GROUND_WIDTH = 0.15
"""Of the leg's length: spread of the standing feet across their line from which they give a plane."""
_TRAVEL_RANGE = (0.15, 1.5)
"""Root travel over that of the standing feet: sliding feet and flight lower it; the next unit is ten times off."""
_UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001}
_FEET = [INDEX[f"{side}_{joint}"] for side in "LR" for joint in ("Ankle", "Toe")]
_ANKLES = [INDEX["L_Ankle"], INDEX["R_Ankle"]]
_AXES = {f"{sign}{name}": direction * np.eye(3)[k] for sign, direction in (("", 1), ("-", -1)) for k, name in
         enumerate("xyz")}  # fmt: skip
# (mass share, from, to, share of the way) after Winter, Biomechanics and Motor Control of Human Movement, table 4.1.
_SEGMENTS = (
    (0.081, "Head", "Head", 0.0), (0.497, "Pelvis", "Neck", 0.45),
    *((mass, f"{side}_{a}", f"{side}_{b}", way) for side in "LR" for mass, a, b, way in (
        (0.028, "Shoulder", "Elbow", 0.436), (0.022, "Elbow", "Wrist", 0.682), (0.1, "Hip", "Knee", 0.433),
        (0.0465, "Knee", "Ankle", 0.433), (0.0145, "Ankle", "Toe", 0.5))),
)  # fmt: skip


@dataclass(frozen=True)
class UpFigures:
    """Which axis points up."""

    scores: dict[str, float]
    """Cosine between standing foot → centre of mass (median over the clip) and each of x, y, z, -x, -y, -z."""
    best: str
    margin: float
    """Lead of the best over the next of another axis."""
    gravity: float | None
    """Cosine between the body's acceleration in flight and down, if there is flight; -1 would be a clip upside down."""


@dataclass(frozen=True)
class CameraFigures:
    """Whether the frame is a camera's."""

    up: str
    """The axis nearest to the standing body; a camera has -y up."""
    tilt: float
    """Degrees between the standing body and that axis."""
    ground_tilt: float | None
    """Degrees between that axis and the normal of the plane through the standing feet, if they cover an area."""


@dataclass(frozen=True)
class RateFigures:
    """What gravity says of the rate."""

    flight_frames: int
    acceleration: float | None
    """Of the centre of mass along up in flight, m/s², at the clip's stated rate; None without flight or rate."""
    gravity_fps: float | None
    """Rate at which flight has gravity's acceleration, Hz; None without flight."""
    factor: float | None
    """Stated over gravity's rate: 2 is a clip labelled at twice its rate; None without either."""


@dataclass(frozen=True)
class UnitFigures:
    """In what unit lengths are."""

    stature: dict[str, float]
    """Sole to head in m of the clip's own bones, taken as each unit; empty if it has none."""
    leg_travel: dict[str, float]
    """Root travel over the travel of the body against its standing feet, for each unit; about 1 where it is right."""
    best: str | None
    """The unit that fits the bones, or the travel where there are no bones; None if neither tells."""


def clip_joints(clip: HumanClip) -> Array:
    """Joint positions (T, 24, 3) in the clip's own world and unit, up to a constant."""
    world = world_rotations(clip.joint_rotations)
    offsets = body_offsets() if clip.skeleton is None else clip.skeleton
    root = clip.root_translation
    if clip.root_point == "hip_centre":
        root = root - world[:, 0] @ offsets[[INDEX["L_Hip"], INDEX["R_Hip"]]].mean(axis=0)
    return place_joints(world, root, offsets)


def up_axis(clip: HumanClip) -> UpFigures:
    """The axis along which the body stands above its feet, and whether flight falls along it."""
    joints = clip_joints(clip)
    body = _upright(joints)
    scores = {name: float(body @ axis) for name, axis in _AXES.items()}
    best = max(scores, key=lambda name: scores[name])
    margin = scores[best] - max(score for name, score in scores.items() if name[-1] != best[-1])
    falls = _falls(joints, _AXES[best])
    gravity = None
    if falls:
        acceleration = np.sum([frames * fall for frames, fall in falls], axis=0)
        gravity = float(-acceleration @ _AXES[best] / max(np.linalg.norm(acceleration), 1e-12))
    return UpFigures(scores, best, margin, gravity)


def camera_frame(clip: HumanClip) -> CameraFigures:
    """How far the standing body and the ground under its feet are from the nearest axis."""
    joints = clip_joints(clip)
    body = _upright(joints)
    up = max(_AXES, key=lambda name: float(body @ _AXES[name]))
    tilt = float(np.degrees(np.arccos(np.clip(body @ _AXES[up], -1, 1))))
    return CameraFigures(up, tilt, _ground_tilt(joints, body, _AXES[up]))


def camera_frame_suspect(figures: CameraFigures) -> bool:
    """Whether the frame is a camera's: up is negative, or the body stands askew of every axis."""
    return figures.up.startswith("-") or figures.tilt > TILT_MOST


def fps_evidence(clip: HumanClip, up: str | None = None) -> RateFigures:
    """The rate at which flight falls with gravity. `up` is the up axis if it is known, else the one measured."""
    joints = clip_joints(clip)
    axis = _AXES[up or up_axis(clip).best]
    falls = _falls(joints, axis)
    if not falls:
        return RateFigures(0, None, None, None)
    frames = sum(count for count, _ in falls)
    to_metres = _metres_per_unit(clip)
    fall = float(sum(count * (acceleration @ axis) for count, acceleration in falls) / frames) * to_metres
    rate = float(np.sqrt(GRAVITY / -fall)) if fall < 0 else None
    if clip.fps is None:
        return RateFigures(frames, None, rate, None)
    return RateFigures(frames, fall * clip.fps**2, rate, None if rate is None else clip.fps / rate)


def units(clip: HumanClip) -> UnitFigures:
    """The unit in which the clip's bones are a person's, or in which its standing feet stand still."""
    if clip.skeleton is not None:
        height = float(leg_length(clip.skeleton) / leg_length(body_offsets()) * STATURE)
        stature = {name: height * factor for name, factor in _UNITS.items()}
        best = next((name for name, value in stature.items() if STATURE_RANGE[0] < value < STATURE_RANGE[1]), None)
        return UnitFigures(stature, {}, best)
    travel = _travel(clip)
    best = next((name for name, value in travel.items() if _TRAVEL_RANGE[0] < value < _TRAVEL_RANGE[1]), None)
    return UnitFigures({}, travel, best)


def _metres_per_unit(clip: HumanClip) -> float:
    """Of the clip's own bones; 1 for SMPL's layouts, whose body is in metres whatever the translation is."""
    return _UNITS[units(clip).best or "m"] if clip.skeleton is not None else 1.0


def _upright(joints: Array) -> Array:
    """Unit vector (3,) from the foot that stands to the centre of mass, median over the slower half of the clip.

    A body that hardly moves has its centre of mass above its foot, however it leans.
    """
    feet = joints[:, _FEET].reshape(len(joints), 2, 2, 3).mean(axis=2)
    speed = np.linalg.norm(np.gradient(feet, axis=0), axis=2)
    slow = speed <= np.median(speed.min(axis=1))
    some = slow.any(axis=1)
    foot = (feet * slow[..., None]).sum(axis=1)[some] / slow.sum(axis=1)[some, None]
    body = _centre_of_mass(joints)[some] - foot
    body /= np.maximum(np.linalg.norm(body, axis=1, keepdims=True), 1e-12)
    middle = np.median(body, axis=0)
    return middle / max(float(np.linalg.norm(middle)), 1e-12)


def _ground_tilt(joints: Array, body: Array, axis: Array) -> float | None:
    """Degrees between `axis` and the normal of the plane through the feet where they stand."""
    feet = joints[:, _ANKLES]
    speed = np.linalg.norm(np.diff(feet, axis=0, append=feet[-1:]), axis=2)
    points = feet[speed <= np.percentile(speed[:-1], 40)]
    if len(points) < 10:
        return None
    _, spread, directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    width, thickness = spread[1] / np.sqrt(len(points)), spread[2] / np.sqrt(len(points))
    if width < _GROUND_WIDTH * _leg(joints) or thickness > 0.3 * width:
        return None
    normal = directions[2] * np.sign(directions[2] @ body)
    return float(np.degrees(np.arccos(np.clip(normal @ axis, -1, 1))))


def _centre_of_mass(joints: Array) -> Array:
    """(T, 3)."""
    total = np.zeros((len(joints), 3))
    for mass, start, end, way in _SEGMENTS:
        a, b = joints[:, INDEX[start]], joints[:, INDEX[end]]
        total += mass * (a + way * (b - a))
    return total


def _leg(joints: Array) -> float:
    """Length of a leg in the clip's unit."""
    return 2 * float(np.linalg.norm(joints[0, INDEX["L_Hip"]] - joints[0, INDEX["L_Knee"]]))


def _falls(joints: Array, axis: Array) -> list[tuple[int, Array]]:
    """(frames, acceleration (3,) of the centre of mass per frame²) of each flight."""
    height = joints[:, _FEET] @ axis
    flying = ((height - np.percentile(height, 5, axis=0)) > _CLEAR * _leg(joints)).all(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flying.astype(int), [0]])))
    centre = _centre_of_mass(joints)
    falls = []
    for start, end in edges.reshape(-1, 2):
        if end - start >= FLIGHT_LEAST:
            at = np.arange(end - start) - (end - start - 1) / 2
            falls.append((int(end - start), 2 * np.polyfit(at, centre[start:end], 2)[0]))
    return falls


def _travel(clip: HumanClip) -> dict[str, float]:
    """Root travel over the travel that keeps the standing foot still, for each unit of the translation."""
    joints = clip_joints(clip)
    relative = joints[:, _ANKLES] - joints[:, :1]
    down = (joints[:, _ANKLES] - joints[:, [INDEX["Head"]]]).mean(axis=(0, 1))
    lower = np.argmax(relative @ down, axis=1)[:-1]
    needed = -np.diff(relative, axis=0)[np.arange(len(lower)), lower]
    moved = np.diff(clip.root_translation, axis=0)
    wanted = float((needed * needed).sum())
    found = float((moved * needed).sum())
    return {name: factor * found / max(wanted, 1e-12) for name, factor in _UNITS.items()}
