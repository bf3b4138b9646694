"""Batched forward kinematics of a robot: poses, velocities and Jacobians of all links at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.profile import RobotProfile

Array = NDArray[np.floating]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class LinkPoses:
    """World poses of the L links in N states: pos (N, L, 3) m, rot (N, L, 3, 3), quat (N, L, 4) wxyz."""

    pos: Array
    rot: Array
    quat: Array


@dataclass(frozen=True)
class LinkStates(LinkPoses):
    """Poses, and world velocities at the link origins: lin_vel (N, L, 3) m/s, ang_vel (N, L, 3) rad/s."""

    lin_vel: Array
    ang_vel: Array


@dataclass(frozen=True)
class _Level:
    """Links of one tree depth: own places, and places of their parents."""

    links: Index
    parents: Index


@dataclass(frozen=True)
class _Constants:
    """The tree as arrays in one dtype; see `_constants`."""

    offset: Array
    zero_quat: Array
    turn_quat: Array
    axis: Array
    path: Array


class Kinematics:
    """Forward kinematics of a profile. Inputs of one dtype (float32 or float64) give outputs of that dtype.

    Arrays inside are component first, (3 or 4, L, N), so that every operation runs over contiguous batches. Only the
    orientations need the loop over tree levels: positions and velocities are sums along the path from the root, one
    matrix product with the ancestor matrix each.
    """

    def __init__(self, profile: RobotProfile) -> None:
        self.profile = profile
        names = profile.link_names
        parents = [None if link.parent is None else names.index(link.parent) for link in profile.links]
        parents += [names.index(link.parent) for link in profile.virtual_links]
        self._parent = np.array([0 if p is None else p for p in parents], dtype=np.intp)
        self._hinges = np.array([i for i, link in enumerate(profile.links) if link.joint is not None], dtype=np.intp)
        self._path = self._ancestors()
        self._levels = self._group_levels()
        self._constants = cache(self._build_constants)

    def _ancestors(self) -> Array:
        """(L, L): 1 where the column link lies on the way from the root (itself excluded) to the row link."""
        path = np.zeros((len(self._parent), len(self._parent)))
        for link in range(1, len(self._parent)):
            path[link] = path[self._parent[link]]
            path[link, link] = 1.0
        return path

    def _group_levels(self) -> tuple[_Level, ...]:
        depth = self._path.sum(axis=1).astype(int)
        groups = (np.flatnonzero(depth == d) for d in range(1, depth.max() + 1))
        return tuple(_Level(links, self._parent[links]) for links in groups)

    def _build_constants(self, dtype: np.dtype) -> _Constants:
        """Offsets (3, L, 1), local quaternion at zero angle and its product with the axis (4, L, 1), axes (3, J, 1)."""
        profile = self.profile
        offset = np.array([x.pos for x in profile.links] + [x.offset for x in profile.virtual_links], dtype=float)
        zero = np.zeros((profile.num_links, 4))
        zero[:, 0] = 1.0
        zero[: len(profile.links)] = [link.quat for link in profile.links]
        zero /= np.linalg.norm(zero, axis=1, keepdims=True)
        axis = np.array([link.axis for link in profile.links if link.axis is not None], dtype=float)
        turn = np.zeros_like(zero)
        w, v = zero[self._hinges, :1], zero[self._hinges, 1:]
        turn[self._hinges] = np.hstack([-(v * axis).sum(axis=1, keepdims=True), w * axis + np.cross(v, axis)])
        o, q, t, a = (np.ascontiguousarray(x.T[:, :, None], dtype=dtype) for x in (offset, zero, turn, axis))
        return _Constants(offset=o, zero_quat=q, turn_quat=t, axis=a, path=self._path.astype(dtype))

    def forward(self, root_pos: Array, root_quat: Array, joint_pos: Array) -> LinkPoses:
        """World poses of all links from root_pos (N, 3), root_quat (N, 4) wxyz unit, joint_pos (N, J)."""
        quat, rot, _, pos = self._solve(root_pos, root_quat, joint_pos)
        return LinkPoses(_batch_first(pos), _matrix_batch_first(rot), _batch_first(quat))

    def forward_with_velocities(
        self,
        root_pos: Array,
        root_quat: Array,
        joint_pos: Array,
        root_lin_vel: Array,
        root_ang_vel: Array,
        joint_vel: Array,
    ) -> LinkStates:
        """World poses and velocities; root_lin_vel and root_ang_vel (N, 3) are world too, joint_vel (N, J) rad/s."""
        quat, rot, step, pos = self._solve(root_pos, root_quat, joint_pos)
        k = self._constants(pos.dtype)
        spin = np.zeros_like(pos)
        hinge_rot = rot[:, :, self._hinges]
        spin[:, self._hinges] = _turn(hinge_rot, k.axis) * joint_vel.T
        ang = _sum_along_path(k.path, spin, root_ang_vel)
        lin = _sum_along_path(k.path, _cross(ang[:, self._parent], step), root_lin_vel)
        return LinkStates(
            _batch_first(pos), _matrix_batch_first(rot), _batch_first(quat), _batch_first(lin), _batch_first(ang)
        )

    def _solve(self, root_pos: Array, root_quat: Array, joint_pos: Array) -> tuple[Array, Array, Array, Array]:
        """Component-first orientations (4, L, N), matrices (3, 3, L, N), steps and positions (3, L, N)."""
        k = self._constants(joint_pos.dtype)
        quat = self._orientations(root_quat, joint_pos, k)
        rot = _matrices(quat)
        step = _turn(rot[:, :, self._parent], k.offset)
        return quat, rot, step, _sum_along_path(k.path, step, root_pos)

    def _orientations(self, root_quat: Array, joint_pos: Array, k: _Constants) -> Array:
        half = 0.5 * joint_pos.T
        local = np.empty((4, self.profile.num_links, joint_pos.shape[0]), dtype=joint_pos.dtype)
        local[:] = k.zero_quat
        local[:, self._hinges] = k.zero_quat[:, self._hinges] * np.cos(half) + k.turn_quat[:, self._hinges] * np.sin(
            half
        )
        quat = np.empty_like(local)
        quat[:, 0] = root_quat.T
        for level in self._levels:
            quat[:, level.links] = _multiply(quat[:, level.parents], local[:, level.links])
        return quat

    def points(self, poses: LinkPoses, link_index: Index, offset: Array) -> Array:
        """World positions (N, n, 3) of points fixed to links link_index (n,) at offset (n, 3) or (N, n, 3), m."""
        turned = np.matmul(poses.rot[:, link_index], offset[..., None].astype(poses.rot.dtype))[..., 0]
        return poses.pos[:, link_index] + turned

    def jacobian(self, poses: LinkPoses, link_index: Index, offset: Array) -> Array:
        """Derivative (N, n, 3, 6 + J) of `points` by (root position, root rotation, joint angles).

        A root rotation increment is a world-frame (left) rotation vector: R <- exp(v) R.
        """
        point = self.points(poses, link_index, offset)
        out = np.zeros((*point.shape, 6 + self.profile.num_joints), dtype=point.dtype)
        out[..., :3] = np.eye(3, dtype=point.dtype)
        x, y, z = np.moveaxis(point - poses.pos[:, :1], -1, 0)
        out[..., 0, 4], out[..., 0, 5] = z, -y
        out[..., 1, 3], out[..., 1, 5] = -z, x
        out[..., 2, 3], out[..., 2, 4] = y, -x
        axis = np.matmul(poses.rot[:, self._hinges], self._constants(point.dtype).axis[:, :, 0].T[..., None])[..., 0]
        arm = point[:, :, None] - poses.pos[:, None, self._hinges]
        moves = self._path[np.ix_(link_index, self._hinges)].astype(point.dtype)
        out[..., 6:] = np.moveaxis(np.cross(axis[:, None], arm) * moves[None, :, :, None], -1, 2)
        return out

    def sole_points(self, poses: LinkPoses) -> Array:
        """World ground contact points (N, F, S, 3) of the feet in the order of `profile.foot_links`."""
        feet, per_foot = self.profile.sole_points.shape[:2]
        link_index = np.repeat(self.profile.foot_index, per_foot)
        flat = self.points(poses, link_index, self.profile.sole_points.reshape(-1, 3))
        return flat.reshape(-1, feet, per_foot, 3)


def _multiply(a: Array, b: Array) -> Array:
    """Hamilton product of component-first quaternions (4, ...)."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ]
    )


def _matrices(q: Array) -> Array:
    """Rotation matrices (3, 3, ...) of component-first quaternions (4, ...)."""
    w, x, y, z = q
    x2, y2, z2 = x + x, y + y, z + z
    wx, wy, wz = w * x2, w * y2, w * z2
    xx, xy, xz = x * x2, x * y2, x * z2
    yy, yz, zz = y * y2, y * z2, z * z2
    out = np.empty((3, 3, *w.shape), dtype=q.dtype)
    out[0, 0], out[0, 1], out[0, 2] = 1 - yy - zz, xy - wz, xz + wy
    out[1, 0], out[1, 1], out[1, 2] = xy + wz, 1 - xx - zz, yz - wx
    out[2, 0], out[2, 1], out[2, 2] = xz - wy, yz + wx, 1 - xx - yy
    return out


def _turn(rot: Array, v: Array) -> Array:
    """Component-first rot (3, 3, ...) times v (3, ...)."""
    out = rot[:, 0] * v[0]
    out += rot[:, 1] * v[1]
    out += rot[:, 2] * v[2]
    return out


def _cross(u: Array, v: Array) -> Array:
    """Component-first cross product (3, ...)."""
    return np.stack([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])


def _sum_along_path(path: Array, step: Array, root: Array) -> Array:
    """Root value (N, 3) plus the sum of step (3, L, N) over each link's way from the root, (3, L, N)."""
    out: Array = np.matmul(path, step)
    out += root.T[:, None]
    return out


def _batch_first(a: Array) -> Array:
    """(C, L, N) to a contiguous (N, L, C)."""
    return np.ascontiguousarray(a.transpose(2, 1, 0))


def _matrix_batch_first(a: Array) -> Array:
    """(3, 3, L, N) to a contiguous (N, L, 3, 3)."""
    return np.ascontiguousarray(a.transpose(3, 2, 0, 1))
