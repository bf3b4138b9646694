"""The person as a kinematic tree with few variables: SMPL-24 joints, of which some are balls and some are hinges.

Variables of a frame, in this order: pelvis position (3, m), rotation of each ball in its parent's frame (3 each, rad),
angle of each hinge (rad). The three joints of the spine share their hinges in thirds, neck and head in halves. Wrists
and toes stay straight. All frames share the shape: logarithms of how much longer the whole body, and each group of
bones beyond that, is than the base body's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.interpolate import CubicSpline

from asap_core.motions.skeleton import INDEX, NUM_JOINTS, PARENTS
from asap_core.rotations import Array, quat_mul, quat_to_matrix, quat_to_rotvec, rotate, rotvec_to_quat, slerp

BALLS = ("Pelvis", "L_Hip", "R_Hip", "L_Shoulder", "R_Shoulder")
BASE_HEIGHT = 1.70
"""Stature of the base body, sole to crown, m."""

_X, _Y, _Z = np.eye(3)

_CENTRE = {
    "Torso": (0.0, 0.085, -0.010),
    "Spine": (0.0, 0.100, -0.012),
    "Chest": (0.0, 0.077, -0.020),
    "Neck": (0.0, 0.203, 0.060),
    "Head": (0.0, 0.095, 0.035),
}
_LEFT = {
    "L_Hip": (0.106, -0.088, 0.0),
    "L_Knee": (0.0, -0.409, 0.0),
    "L_Ankle": (0.0, -0.427, 0.0),
    "L_Toe": (0.012, -0.042, 0.134),
    "L_Thorax": (0.022, 0.130, 0.071),
    "L_Shoulder": (0.160, -0.030, -0.004),
    "L_Elbow": (0.247, 0.0, 0.0),
    "L_Wrist": (0.262, 0.0, 0.0),
    "L_Hand": (0.105, 0.0, 0.0),
}


def _base_offsets() -> Array:
    offsets = np.zeros((NUM_JOINTS, 3))
    for name, value in (_CENTRE | _LEFT).items():
        offsets[INDEX[name]] = value
        if name.startswith("L_"):
            offsets[INDEX["R_" + name[2:]]] = np.array(value) * (-1.0, 1.0, 1.0)
    return offsets


BASE_OFFSETS = _base_offsets()
"""(24, 3) of the base body, m: MakeHuman's average young man (CC0, the mesh in `rendering`) at `BASE_HEIGHT`, its bones
between pelvis and chest shared out evenly."""


@dataclass(frozen=True)
class Hinge:
    """One angle, shared by equal parts between one or more joints that turn about the same axis of their own."""

    joints: tuple[str, ...]
    axis: Array
    """Unit, in the rest frame."""
    lower: float
    upper: float
    """rad; what a body does without force."""


_SPINE, _NECK = ("Torso", "Spine", "Chest"), ("Neck", "Head")
HINGES = (
    Hinge(_SPINE, _X, -0.5, 1.4),
    Hinge(_SPINE, _Z, -0.6, 0.6),
    Hinge(_SPINE, _Y, -0.8, 0.8),
    Hinge(_NECK, _X, -0.9, 0.9),
    Hinge(_NECK, _Z, -0.7, 0.7),
    Hinge(_NECK, _Y, -1.3, 1.3),
    Hinge(("L_Thorax",), _Z, -0.2, 0.6),
    Hinge(("L_Thorax",), -_Y, -0.4, 0.4),
    Hinge(("R_Thorax",), -_Z, -0.2, 0.6),
    Hinge(("R_Thorax",), _Y, -0.4, 0.4),
    Hinge(("L_Elbow",), -_Y, 0.0, 2.6),
    Hinge(("R_Elbow",), _Y, 0.0, 2.6),
    Hinge(("L_Knee",), _X, 0.0, 2.6),
    Hinge(("R_Knee",), _X, 0.0, 2.6),
    Hinge(("L_Ankle",), _X, -0.7, 1.0),
    Hinge(("L_Ankle",), _Z, -0.4, 0.4),
    Hinge(("R_Ankle",), _X, -0.7, 1.0),
    Hinge(("R_Ankle",), -_Z, -0.4, 0.4),
)  # fmt: skip
NUM_VARIABLES = 3 + 3 * len(BALLS) + len(HINGES)
NUM_CAMERA = 4
"""Variables of the camera, which all frames share like the shape."""
HINGE_SLICE = slice(3 + 3 * len(BALLS), NUM_VARIABLES)

SHAPE_GROUPS = ("body", "trunk", "shoulders", "hips", "thighs", "shanks", "feet", "upper_arms", "forearms")
"""What each number of a shape lengthens; the first one everything."""
NUM_SHARED = NUM_CAMERA + len(SHAPE_GROUPS)
_GROUP_OF = {
    "trunk": ("Torso", "Spine", "Chest", "Neck", "Head"),
    "shoulders": ("L_Thorax", "R_Thorax", "L_Shoulder", "R_Shoulder"),
    "hips": ("L_Hip", "R_Hip"),
    "thighs": ("L_Knee", "R_Knee"),
    "shanks": ("L_Ankle", "R_Ankle"),
    "feet": ("L_Toe", "R_Toe"),
    "upper_arms": ("L_Elbow", "R_Elbow"),
    "forearms": ("L_Wrist", "R_Wrist", "L_Hand", "R_Hand"),
}


@cache
def group_of_bone() -> Array:
    """(24,) index into `SHAPE_GROUPS` of the bone that ends at each joint; 0 for the pelvis."""
    groups = np.zeros(NUM_JOINTS, dtype=int)
    for name, joints in _GROUP_OF.items():
        groups[[INDEX[joint] for joint in joints]] = SHAPE_GROUPS.index(name)
    return groups


@cache
def ancestors() -> Array:
    """(24, 24) whether the second joint is the first or lies between it and the pelvis."""
    above = np.eye(NUM_JOINTS, dtype=bool)
    for joint in range(1, NUM_JOINTS):
        above[joint] |= above[PARENTS[joint]]
    return above


def shaped(shape: Array) -> Array:
    """Offsets (24, 3) of the joints of a body of this shape (9,), m."""
    extra = np.where(group_of_bone() > 0, shape[group_of_bone()], 0.0)
    return BASE_OFFSETS * np.exp(shape[0] + extra)[:, None]


@dataclass(frozen=True)
class BodyState:
    """Where the body is in T frames."""

    root: Array
    """(T, 3) pelvis in the world, m."""
    balls: Array
    """(T, 5, 4) wxyz, each in its parent's frame."""
    angles: Array
    """(T, 18) rad."""

    def __len__(self) -> int:
        return len(self.root)

    def part(self, frames: slice) -> BodyState:
        """Some of the frames."""
        return BodyState(self.root[frames], self.balls[frames], self.angles[frames])

    def refined(self, stride: int, frames: int) -> BodyState:
        """Every frame of `frames`, of which this is every `stride`-th; those after the last one hold."""
        times = stride * np.arange(len(self), dtype=float)
        at = np.minimum(np.arange(frames, dtype=float), times[-1])
        values = CubicSpline(times, np.concatenate([self.root, self.angles], axis=1))(at)
        balls = np.stack([slerp(self.balls[:, i], times, at) for i in range(len(BALLS))], axis=1)
        return BodyState(values[:, :3], balls, values[:, 3:])

    def moved(self, step: Array) -> BodyState:
        """Advanced by `step` (T, V); rotations from the left."""
        turn = step[:, 3 : HINGE_SLICE.start].reshape(len(step), len(BALLS), 3)
        balls = quat_mul(rotvec_to_quat(turn), self.balls)
        balls /= np.linalg.norm(balls, axis=-1, keepdims=True)
        return BodyState(self.root + step[:, :3], balls, self.angles + step[:, HINGE_SLICE])

    def joint_rotations(self) -> Array:
        """SMPL-24 rotation vectors (T, 24, 3), each in its parent's frame."""
        return quat_to_rotvec(self.local_rotations()[0])

    def local_rotations(self) -> tuple[Array, Array]:
        """Rotation (T, 24, 4) wxyz of each joint in its parent's frame; there the axes (T, K, 3) of `hinge_parts`."""
        local = np.zeros((len(self), NUM_JOINTS, 4))
        local[..., 0] = 1.0
        local[:, [INDEX[name] for name in BALLS]] = self.balls
        parts = hinge_parts()
        axes = np.empty((len(self), len(parts.joints), 3))
        for stage in range(parts.stage.max() + 1):
            now = np.flatnonzero(parts.stage == stage)
            half = 0.5 * self.angles[:, parts.hinge[now]] * parts.share[now]
            turn = np.concatenate([np.cos(half)[..., None], np.sin(half)[..., None] * parts.axis[now]], axis=-1)
            before = local[:, parts.joints[now]]
            axes[:, now] = rotate(before, np.broadcast_to(parts.axis[now], before[..., 1:].shape))
            local[:, parts.joints[now]] = quat_mul(before, turn)
        return local, axes


@dataclass(frozen=True)
class HingeParts:
    """Each joint's part of each hinge, K in all."""

    joints: Array
    hinge: Array
    share: Array
    axis: Array
    """(K, 3)"""
    stage: Array
    """How many hinges turn the joint before this one."""


@cache
def hinge_parts() -> HingeParts:
    """In the order of `HINGES`."""
    rows = []
    turned = dict.fromkeys(INDEX, 0)
    for i, hinge in enumerate(HINGES):
        for name in hinge.joints:
            rows.append((INDEX[name], i, 1.0 / len(hinge.joints), hinge.axis, turned[name]))
            turned[name] += 1
    return HingeParts(*(np.array(column) for column in zip(*rows, strict=True)))


def upright(root: Array, facing: Array) -> BodyState:
    """Bodies at `root` (T, 3) whose pelvis frames are `facing` (T, 4) wxyz, arms down, limbs slightly bent."""
    frames = len(root)
    balls = np.zeros((frames, len(BALLS), 4))
    balls[..., 0] = 1.0
    balls[:, 0] = facing
    balls[:, 3], balls[:, 4] = NEUTRAL_BALLS[3], NEUTRAL_BALLS[4]
    return BodyState(root, balls, np.tile(NEUTRAL_ANGLES, (frames, 1)))


NEUTRAL_BALLS = rotvec_to_quat(
    np.array([[0.0, 0.0, 0.0], [-0.1, 0.0, 0.0], [-0.1, 0.0, 0.0], [0.0, 0.0, -1.2], [0.0, 0.0, 1.2]])
)
"""(5, 4) a relaxed stand; the pelvis is not used."""
NEUTRAL_ANGLES = np.array([0.1] + [0.0] * 9 + [0.4, 0.4, 0.2, 0.2] + [0.0] * 4)
"""(18,) rad."""


@dataclass(frozen=True)
class Points:
    """Points that are fixed to joints, of the base body."""

    joints: Array
    """(P,)"""
    offsets: Array
    """(P, 3) in the joint's rest frame, m."""


class Pose:
    """A state of a shaped body, with the positions of its joints, and of points on it with their derivatives."""

    def __init__(self, shape: Array, state: BodyState) -> None:
        local, axes = state.local_rotations()
        self._stretch = float(np.exp(shape[0]))
        self._rotations = quat_to_matrix(local)
        offsets = shaped(shape)
        self.joints = np.empty((len(state), NUM_JOINTS, 3))
        """(T, 24, 3) world, m."""
        self.joints[:, 0] = state.root
        for level in _levels():
            above = [PARENTS[joint] for joint in level]
            frames = self._rotations[:, above]
            self._rotations[:, level] = frames @ self._rotations[:, level]
            self.joints[:, level] = self.joints[:, above] + (frames @ offsets[level][..., None])[..., 0]
        self._motions = self._turns(axes)

    def _turns(self, hinge_axes: Array) -> Array:
        """(T, 6, V - 3) axis of each rotational variable in the world, and below it the axis cross its origin."""
        frames, parts = len(self.joints), hinge_parts()
        balls = [INDEX[name] for name in BALLS]
        out = np.empty((frames, 6, NUM_VARIABLES - 3))
        axes = np.empty((frames, len(balls), 3, 3))
        axes[:, 0] = np.eye(3)
        axes[:, 1:] = self._rotations[:, [PARENTS[joint] for joint in balls[1:]]].transpose(0, 1, 3, 2)
        moments = _cross(axes, self.joints[:, balls][:, :, None])
        first = 3 * len(balls)
        out[:, :3, :first] = axes.reshape(frames, first, 3).transpose(0, 2, 1)
        out[:, 3:, :first] = moments.reshape(frames, first, 3).transpose(0, 2, 1)
        above = self._rotations[:, [PARENTS[joint] for joint in parts.joints]]
        turns = (above @ hinge_axes[..., None])[..., 0] * parts.share[:, None]
        both = np.concatenate([turns, _cross(turns, self.joints[:, parts.joints])], axis=-1)
        starts = np.flatnonzero(np.diff(parts.hinge, prepend=-1))
        out[:, :, first:] = np.add.reduceat(both, starts, axis=1).transpose(0, 2, 1)
        return out

    def place(self, points: Points) -> Array:
        """(T, P, 3) points in the world, m; the whole body's stretch lengthens their offsets."""
        turned = self._rotations[:, points.joints] @ (points.offsets * self._stretch)[..., None]
        return self.joints[:, points.joints] + turned[..., 0]

    def rows(self, points: Points, places: Array, directions: Array, shared: bool) -> Array:
        """Derivatives of where points at `places` (T, P, 3) lie along `directions` (T, P, k, 3).

        Returns:
            (T, P, k, V) by the variables of their frame, or if `shared` (T, P, k, V + 4 + 9) with those of a camera,
            left zero, and by the shape behind them.
        """
        frames, count, kinds = directions.shape[:3]
        out = np.zeros((frames, count, kinds, NUM_VARIABLES + (NUM_SHARED if shared else 0)))
        out[..., :3] = directions
        wrench = np.concatenate([_cross(places[:, :, None], directions), -directions], axis=-1)
        turned = wrench.reshape(frames, -1, 6) @ self._motions
        turned = turned.reshape(frames, count, kinds, -1)
        np.multiply(turned, moved_by()[points.joints][:, None], out=out[..., 3:NUM_VARIABLES])
        if shared:
            bones = self.joints - self.joints[:, np.maximum(PARENTS, 0)]
            grown = np.matmul(_chains()[points.joints].reshape(-1, NUM_JOINTS), bones)
            grown = grown.reshape(frames, count, len(SHAPE_GROUPS), 3)
            grown[:, :, 0] = places - self.joints[:, :1]
            out[..., NUM_VARIABLES + NUM_CAMERA :] = directions @ grown.transpose(0, 1, 3, 2)
        return out


def _cross(a: Array, b: Array) -> Array:
    """Cross product (..., 3), much faster than numpy's."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)


@cache
def _levels() -> tuple[list[int], ...]:
    """Joints by how many others lie between them and the pelvis."""
    depth = ancestors().sum(axis=1) - 1
    return tuple(np.flatnonzero(depth == level).tolist() for level in range(1, depth.max() + 1))


@cache
def _chains() -> Array:
    """(24, S, 24) 1 where the last bone is of the group and moves the first joint; row 0 of S stays zero."""
    chains = np.zeros((NUM_JOINTS, len(SHAPE_GROUPS), NUM_JOINTS))
    for group in range(1, len(SHAPE_GROUPS)):
        chains[:, group] = ancestors() & (group_of_bone() == group)
    return chains


@cache
def moved_by() -> Array:
    """(24, V-3) 1 where a rotational variable moves what is fixed to a joint, else 0.

    A hinge that several joints share is taken to move what lies beyond the last of them; points are fixed to no other.
    """
    turned = [INDEX[name] for name in BALLS for _ in range(3)] + [INDEX[hinge.joints[-1]] for hinge in HINGES]
    return ancestors()[:, turned].astype(float)
