"""J^T J and J^T r of residuals on a robot's links, without J: 6x6 weights of the links are summed up the tree.

The idea is the composite-rigid-body algorithm's (Featherstone, Rigid Body Dynamics Algorithms, ch. 6), with weights in
place of inertias. Arrays are component first, frames last. Positions, motions and moments refer to the root's position
in each frame: a residual that sees a point p move along the axis u has the row (u, p x u).
"""

from __future__ import annotations

import numpy as np

from asap_core.banded import BandedSystem
from asap_core.robots.kinematics import Kinematics, LinkPoses
from asap_core.robots.profile import Index
from asap_core.rotations import Array

# Places (row, column) of the 6x6 weights that are not zero for residuals along the world axes.
_PLACES = (
    (0, 0), (1, 1), (2, 2), (0, 4), (0, 5), (1, 3), (1, 5), (2, 3), (2, 4), (3, 3), (4, 4), (5, 5), (3, 4), (3, 5),
    (4, 5),
)  # fmt: skip


class LinkResiduals:
    """Squared residuals on links in T frames; sums them up the tree into a `BandedSystem`."""

    def __init__(self, kinematics: Kinematics, poses: LinkPoses) -> None:
        self._moved = np.concatenate([np.ones((poses.pos.shape[1], 6)), kinematics.moved], axis=1)
        self._links: list[Index] = []
        self._weights: list[Array] = []
        self._wrenches: list[Array] = []
        self.motion = _motions(kinematics, poses)
        """(6, V, T) linear motion at the root and angular motion that each variable gives what it moves."""

    def add_points(self, links: Index, point: Array, weight: Array, force: Array) -> None:
        """Points (3, n, T) from the root, m, on links (n,): squared weights and weighted residuals, (3, n, T) each."""
        (x, y, z), (wx, wy, wz), (fx, fy, fz) = point, weight, force
        zx, yx, zy, xy, yz, xz = wx * z, wx * y, wy * z, wy * x, wz * y, wz * x
        turns = (zy * z + yz * y, zx * z + xz * x, yx * y + xy * x, -xz * y, -xy * z, -yx * z)
        moments = (y * fz - z * fy, z * fx - x * fz, x * fy - y * fx)
        self._links.append(links)
        self._weights.append(np.stack((wx, wy, wz, zx, -yx, -zy, xy, yz, -xz, *turns)))
        self._wrenches.append(np.stack((fx, fy, fz, *moments)))

    def add_turns(self, links: Index, weight: Array, residual: Array) -> None:
        """Rotation vectors (3, m, T) of links (m,) from where they shall be, world axes; squared weights (m,)."""
        weights = np.zeros((len(_PLACES), *residual.shape[1:]))
        weights[9:12] = weight[:, None]
        wrenches = np.zeros((6, *residual.shape[1:]))
        wrenches[3:] = weight[:, None] * residual
        self._links.append(links)
        self._weights.append(weights)
        self._wrenches.append(wrenches)

    def add_to(self, system: BandedSystem) -> None:
        """Sum all up the tree, and into the system."""
        above = self._moved[np.concatenate(self._links)].T
        total = np.matmul(above, np.concatenate(self._weights, axis=1))
        pull = np.zeros_like(self.motion)
        for weight, (row, column) in zip(total, _PLACES, strict=True):
            pull[row] += weight * self.motion[column]
            if row != column:
                pull[column] += weight * self.motion[row]
        rows, columns = np.nonzero(self._coupled())
        within = sum(p[rows] * m[columns] for p, m in zip(pull, self.motion, strict=True))
        system.add_within(rows, columns, np.asarray(within).T)
        wrench = np.matmul(above, np.concatenate(self._wrenches, axis=1))
        system.gradient += (self.motion * wrench).sum(axis=0).T

    def _coupled(self) -> Array:
        """(V, V) where the column's variable moves all that the row's moves, columns up to the diagonal."""
        covers = self._moved.T @ self._moved == self._moved.sum(axis=0)[:, None]
        return np.tril(covers)


def _motions(kinematics: Kinematics, poses: LinkPoses) -> Array:
    axis, origin = kinematics.joint_axes(poses)
    x, y, z = (origin - poses.pos[:, :1]).transpose(2, 1, 0)
    turn = axis.transpose(2, 1, 0)
    out = np.zeros((6, 6 + turn.shape[1], turn.shape[2]))
    out[range(6), range(6)] = 1.0
    out[0, 6:] = y * turn[2] - z * turn[1]
    out[1, 6:] = z * turn[0] - x * turn[2]
    out[2, 6:] = x * turn[1] - y * turn[0]
    out[3:, 6:] = turn
    return out
