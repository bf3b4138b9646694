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

from asap_core.motions.skeleton import INDEX, NUM_JOINTS, PARENTS, body_offsets, place_joints
from asap_core.rotations import Array, quat_mul, quat_to_matrix, quat_to_rotvec, rotate, rotvec_to_quat, slerp

BALLS = ("Pelvis", "L_Hip", "R_Hip", "L_Shoulder", "R_Shoulder")
BASE_HEIGHT = 1.70
"""Stature of the base body, sole to crown, m."""

_X, _Y, _Z = np.eye(3)

BASE_OFFSETS = body_offsets()
"""(24, 3) of the base body, m."""


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
HINGE_SLICE = slice(3 + 3 * len(BALLS), NUM_VARIABLES)

SHAPE_GROUPS = ("body", "trunk", "shoulders", "hips", "thighs", "shanks", "feet", "upper_arms", "forearms")
"""What each number of a shape lengthens; the first one everything."""
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

    def local_rotations(self) -> tuple[Array, list[Array]]:
        """Rotation (T, 24, 4) wxyz of each joint in its parent's frame; each hinge's axes (T, joints, 3) there."""
        local = np.zeros((len(self), NUM_JOINTS, 4))
        local[..., 0] = 1.0
        for i, name in enumerate(BALLS):
            local[:, INDEX[name]] = self.balls[:, i]
        axes = []
        for angle, hinge in zip(self.angles.T, HINGES, strict=True):
            half = 0.5 * angle / len(hinge.joints)
            turn = np.concatenate([np.cos(half)[:, None], np.sin(half)[:, None] * hinge.axis], axis=1)
            before = local[:, [INDEX[name] for name in hinge.joints]]
            axes.append(rotate(before, np.broadcast_to(hinge.axis, before[..., 1:].shape)))
            local[:, [INDEX[name] for name in hinge.joints]] = quat_mul(before, turn[:, None])
        return local, axes


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
FACING_X = quat_mul(rotvec_to_quat(np.array([0.0, 0.0, np.pi / 2])), rotvec_to_quat(np.array([np.pi / 2, 0.0, 0.0])))
"""wxyz of a pelvis that stands upright in the world and faces x."""


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
        self._rotations = quat_to_matrix(local)
        for joint in range(1, NUM_JOINTS):
            self._rotations[:, joint] = self._rotations[:, PARENTS[joint]] @ self._rotations[:, joint]
        self._stretch = float(np.exp(shape[0]))
        self.joints = place_joints(self._rotations, state.root, shaped(shape))
        """(T, 24, 3) world, m."""
        self._axes, self._moments = self._turns(axes)

    def _turns(self, hinge_axes: list[Array]) -> tuple[Array, Array]:
        """Axis (T, V-3, 3) of each rotational variable in the world, and the axis crossed with its origin."""
        frames = len(self.joints)
        axes = np.empty((frames, NUM_VARIABLES - 3, 3))
        moments = np.empty_like(axes)
        for i, name in enumerate(BALLS):
            joint, part = INDEX[name], slice(3 * i, 3 * i + 3)
            axes[:, part] = self._rotations[:, PARENTS[joint]].transpose(0, 2, 1) if joint else np.eye(3)
            moments[:, part] = np.cross(axes[:, part], self.joints[:, joint, None])
        for i, (hinge, local) in enumerate(zip(HINGES, hinge_axes, strict=True), 3 * len(BALLS)):
            joints = [INDEX[name] for name in hinge.joints]
            parents = self._rotations[:, [PARENTS[joint] for joint in joints]]
            turns = (parents @ local[..., None])[..., 0] / len(joints)
            axes[:, i] = turns.sum(axis=1)
            moments[:, i] = np.cross(turns, self.joints[:, joints]).sum(axis=1)
        return axes, moments

    def place(self, points: Points) -> Array:
        """(T, P, 3) points in the world, m; the whole body's stretch lengthens their offsets."""
        turned = np.einsum("tpij,pj->tpi", self._rotations[:, points.joints], points.offsets * self._stretch)
        return self.joints[:, points.joints] + turned

    def derivatives(self, points: Points, places: Array) -> Array:
        """(T, P, 3, V + S) of points at `places` by the variables of their frame and by the shape."""
        frames, count = places.shape[:2]
        out = np.zeros((frames, count, 3, NUM_VARIABLES + len(SHAPE_GROUPS)))
        out[:, :, :, :3] = np.eye(3)
        x, y, z = places.transpose(2, 0, 1)[..., None]
        ax, ay, az = self._axes.transpose(2, 0, 1)[:, :, None]
        mx, my, mz = self._moments.transpose(2, 0, 1)[:, :, None]
        moved = moved_by()[points.joints]
        turns = slice(3, NUM_VARIABLES)
        out[:, :, 0, turns] = (ay * z - az * y - mx) * moved
        out[:, :, 1, turns] = (az * x - ax * z - my) * moved
        out[:, :, 2, turns] = (ax * y - ay * x - mz) * moved
        out[:, :, :, NUM_VARIABLES] = places - self.joints[:, :1]
        bones = self.joints - self.joints[:, np.maximum(PARENTS, 0)]
        for group in range(1, len(SHAPE_GROUPS)):
            chain = (ancestors()[points.joints] & (group_of_bone() == group)).astype(float)
            out[:, :, :, NUM_VARIABLES + group] = np.matmul(chain, bones)
        return out


@cache
def moved_by() -> Array:
    """(24, V-3) 1 where a rotational variable moves what is fixed to a joint, else 0.

    A hinge that several joints share is taken to move what lies beyond the last of them; points are fixed to no other.
    """
    turned = [INDEX[name] for name in BALLS for _ in range(3)] + [INDEX[hinge.joints[-1]] for hinge in HINGES]
    return ancestors()[:, turned].astype(float)
