"""Batched forward kinematics of a robot: poses, velocities and Jacobians of all links at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.profile import RobotProfile
from asap_core.rotations import projected_gravity

Array = NDArray[np.floating]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class LinkPoses:
    """World poses of the L links in N states: pos (N, L, 3) m, quat (N, L, 4) wxyz."""

    pos: Array
    quat: Array

    @cached_property
    def rot(self) -> Array:
        """(N, L, 3, 3) rotation matrices; made when they are asked for."""
        matrices = _to_matrices(np.ascontiguousarray(np.moveaxis(self.quat, -1, 0)))
        return np.ascontiguousarray(np.moveaxis(matrices, (0, 1), (-2, -1)))


@dataclass(frozen=True)
class LinkStates(LinkPoses):
    """Poses, and world velocities at the link origins: lin_vel (N, L, 3) m/s, ang_vel (N, L, 3) rad/s."""

    lin_vel: Array
    ang_vel: Array


@dataclass(frozen=True)
class _Tree:
    """The links in tree order: root, then the J jointed links by depth, then the virtual links.

    Attributes:
        order: (L,) places in `link_names` of the links in tree order. place: (L,) the inverse.
        joints: (J,) places in `joint_names` of the joints in tree order.
        parent: (L,) tree places of the parents, 0 for the root.
        levels: tree places of the jointed links of one depth, level by level.
        path: (L, L) 1 where the column link lies on the way from the root (itself excluded) to the row link.
    """

    order: Index
    place: Index
    joints: Index
    parent: Index
    levels: tuple[slice, ...]
    path: Array


@dataclass(frozen=True)
class _Constants:
    """Geometry in tree order in one dtype, component first.

    Attributes:
        offset: (3, L, 1) origin in the parent's frame, m.
        zero_quat: (4, J, 1) orientation in the parent's frame at zero angle; turn_quat: its product with the axis.
        axis: (3, J, 1) joint axes in the link's frame.
        path: `_Tree.path`.
    """

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
        self._tree = _build_tree(profile)
        self._constants = {np.dtype(t): self._build_constants(np.dtype(t)) for t in (np.float32, np.float64)}

    def _build_constants(self, dtype: np.dtype) -> _Constants:
        profile, tree = self.profile, self._tree
        offset = np.array([x.pos for x in profile.links] + [x.offset for x in profile.virtual_links], dtype=float)
        jointed = [profile.links[i] for i in tree.order[1 : 1 + profile.num_joints]]
        zero = np.array([link.quat for link in jointed], dtype=float)
        zero /= np.linalg.norm(zero, axis=1, keepdims=True)
        axis = np.array([link.axis for link in jointed], dtype=float)
        w, v = zero[:, :1], zero[:, 1:]
        turn = np.hstack([-(v * axis).sum(axis=1, keepdims=True), w * axis + np.cross(v, axis)])
        arrays = (offset[tree.order], zero, turn, axis)
        o, q, t, a = (np.ascontiguousarray(x.T[:, :, None], dtype=dtype) for x in arrays)
        return _Constants(offset=o, zero_quat=q, turn_quat=t, axis=a, path=tree.path.astype(dtype))

    def forward(self, root_pos: Array, root_quat: Array, joint_pos: Array) -> LinkPoses:
        """World poses of all links from root_pos (N, 3), root_quat (N, 4) wxyz unit, joint_pos (N, J)."""
        quat, _, _, pos = self._solve(root_pos, root_quat, joint_pos)
        return LinkPoses(self._vectors(pos), self._vectors(quat))

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
        k, tree = self._constants[pos.dtype], self._tree
        jointed = slice(1, 1 + len(tree.joints))
        spin = np.zeros_like(pos)
        np.multiply(_turn(rot[:, :, jointed], k.axis), joint_vel.T[tree.joints], out=spin[:, jointed])
        ang = _sum_along_path(k.path, spin, root_ang_vel)
        lin = _sum_along_path(k.path, _cross(ang.take(tree.parent, axis=1), step), root_lin_vel)
        return LinkStates(self._vectors(pos), self._vectors(quat), self._vectors(lin), self._vectors(ang))

    def _solve(self, root_pos: Array, root_quat: Array, joint_pos: Array) -> tuple[Array, Array, Array, Array]:
        """Component-first orientations (4, L, N), matrices (3, 3, L, N), steps and positions (3, L, N)."""
        k = self._constants[joint_pos.dtype]
        quat = self._orientations(root_quat, joint_pos, k)
        rot = _to_matrices(quat)
        step = _turn(rot.take(self._tree.parent, axis=2), k.offset)
        return quat, rot, step, _sum_along_path(k.path, step, root_pos)

    def _orientations(self, root_quat: Array, joint_pos: Array, k: _Constants) -> Array:
        tree = self._tree
        half = 0.5 * joint_pos.T[tree.joints]
        local = k.zero_quat * np.cos(half)
        local += k.turn_quat * np.sin(half)
        quat = np.empty((4, self.profile.num_links, joint_pos.shape[0]), dtype=joint_pos.dtype)
        quat[:, 0] = root_quat.T
        for level in tree.levels:
            parents = quat.take(tree.parent[level], axis=1)
            _multiply(parents, local[:, level.start - 1 : level.stop - 1], out=quat[:, level])
        virtual = slice(1 + len(tree.joints), None)
        quat[:, virtual] = quat.take(tree.parent[virtual], axis=1)
        return quat

    def _vectors(self, a: Array) -> Array:
        """(C, L, N) in tree order to a contiguous (N, L, C) in the order of `link_names`."""
        return np.ascontiguousarray(a.take(self._tree.place, axis=1).transpose(2, 1, 0))

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
        tree = self._tree
        jointed = tree.order[1 : 1 + len(tree.joints)]
        axis = np.matmul(poses.rot[:, jointed], self._constants[point.dtype].axis[:, :, 0].T[..., None])[..., 0]
        lever = point[:, :, None] - poses.pos[:, None, jointed]
        moves = tree.path[tree.place[link_index], 1 : 1 + len(tree.joints)].astype(point.dtype)
        out[..., 6 + tree.joints] = np.moveaxis(np.cross(axis[:, None], lever) * moves[None, :, :, None], -1, 2)
        return out

    def joint_axes(self, poses: LinkPoses) -> tuple[Array, Array]:
        """World axes (N, J, 3) of the joints and the origins (N, J, 3) they pass through, in the order of joints."""
        tree = self._tree
        jointed = np.empty(len(tree.joints), dtype=np.intp)
        jointed[tree.joints] = tree.order[1 : 1 + len(tree.joints)]
        axis = self._constants[poses.pos.dtype].axis[:, np.argsort(tree.joints), 0].T
        return np.matmul(poses.rot[:, jointed], axis[..., None])[..., 0], poses.pos[:, jointed]

    @cached_property
    def moved(self) -> Array:
        """(L, J) 1 where the joint moves the link."""
        tree = self._tree
        out = np.zeros((self.profile.num_links, self.profile.num_joints))
        out[:, tree.joints] = tree.path[tree.place, 1 : 1 + len(tree.joints)]
        return out

    def sole_points(self, poses: LinkPoses) -> Array:
        """World ground contact points (N, F, S, 3) of the feet in the order of `profile.foot_links`."""
        feet, per_foot = self.profile.sole_points.shape[:2]
        link_index = np.repeat(self.profile.foot_index, per_foot)
        flat = self.points(poses, link_index, self.profile.sole_points.reshape(-1, 3))
        return flat.reshape(-1, feet, per_foot, 3)

    def sole_heights(self, poses: LinkPoses) -> Array:
        """z (N, F, S) of `sole_points`, m."""
        feet = self.profile.foot_index
        down = projected_gravity(poses.quat[:, feet])
        return poses.pos[:, feet, 2][..., None] - np.einsum(
            "nfi,fsi->nfs", down, self.profile.sole_points.astype(down.dtype)
        )


def _build_tree(profile: RobotProfile) -> _Tree:
    names = profile.link_names
    parents = [link.parent or names[0] for link in profile.links] + [point.parent for point in profile.virtual_links]
    parent = profile.link_indices(parents)
    path = np.zeros((len(names), len(names)))
    for link in range(1, len(names)):
        path[link] = path[parent[link]]
        path[link, link] = 1.0
    depth = path.sum(axis=1).astype(int)
    bodies = len(profile.links)
    order = np.concatenate([np.argsort(depth[:bodies], kind="stable"), np.arange(bodies, len(names))])
    place = np.argsort(order)
    starts = np.flatnonzero(np.diff(depth[order[:bodies]])) + 1
    levels = tuple(slice(int(a), int(b)) for a, b in zip(starts, [*starts[1:], bodies], strict=True))
    joints = np.array([profile.joint_index(profile.links[i].joint or "") for i in order[1:bodies]], dtype=np.intp)
    return _Tree(order, place, joints, place[parent[order]], levels, path[np.ix_(order, order)])


def _multiply(a: Array, b: Array, out: Array) -> None:
    """Hamilton product of component-first quaternions (4, ...) into `out`."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    out[0] = aw * bw - ax * bx - ay * by - az * bz
    out[1] = aw * bx + ax * bw + ay * bz - az * by
    out[2] = aw * by - ax * bz + ay * bw + az * bx
    out[3] = aw * bz + ax * by - ay * bx + az * bw


def _to_matrices(q: Array) -> Array:
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
