"""Banded normal equations of a sequence whose residuals couple at most three consecutive frames.

The variables of a frame couple to those of the next frame freely and to those of the one after only each to itself, so
that the band is two frames wide, and a factorisation costs T n (2 n)² for T frames of n variables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpbsv

from asap_core.rotations import Array

Index = NDArray[np.intp]
_DAMPING = 1e-4


class BandedSystem:
    """Gauss-Newton system of T frames with n variables each: sums J^T J and J^T r, then solves for the step.

    The lower band of J^T J is held as LAPACK wants it: the entry of rows (t, i) and (t + d, j) lies in `_band[t, i]` at
    d n + j - i.
    """

    def __init__(self, frames: int, variables: int) -> None:
        self._n = variables
        self._band = np.zeros((frames, variables, 2 * variables + 1))
        self.gradient = np.zeros((frames, variables))
        """(T, n) J^T r, half the gradient of the cost."""

    def add_within(self, rows: Index, columns: Index, values: Array) -> None:
        """Add `values` (T, k) at rows >= columns (k,) of each frame's own block; no place twice."""
        self._band[:, columns, rows - columns] += values

    def add_between(self, rows: Index, columns: Index, values: Array) -> None:
        """Add `values` (T-1, k) at rows (k,) of each later and columns (k,) of each earlier frame; no place twice."""
        self._band[:-1, columns, self._n + rows - columns] += values

    def add_own(self, weight: Array, residual: Array) -> None:
        """Residuals `residual` (T, n), each a variable itself up to a constant, with squared weights (T, n) or (n,)."""
        self._band[:, :, 0] += weight
        self.gradient += weight * residual

    def add_change(self, weight: Array, residual: Array) -> None:
        """Residuals (T-1, n), each what its variable changes up to a constant, with squared weights (T-1, n)."""
        self._band[:-1, :, 0] += weight
        self._band[1:, :, 0] += weight
        self._band[:-1, :, self._n] -= weight
        self.gradient[1:] += weight * residual
        self.gradient[:-1] -= weight * residual

    def add_acceleration(self, weight: Array, values: Array) -> None:
        """Second differences of `values` (T, n), whose increments are the variables, with squared weights (n,)."""
        if len(values) < 3:
            return
        bend = weight * (values[2:] - 2 * values[1:-1] + values[:-2])
        for part, factor in ((slice(2, None), 1), (slice(1, -1), -2), (slice(None, -2), 1)):
            self._band[part, :, 0] += factor**2 * weight
            self.gradient[part] += factor * bend
        self._band[1:-1, :, self._n] -= 2 * weight
        self._band[:-2, :, self._n] -= 2 * weight
        self._band[:-2, :, 2 * self._n] += weight

    def freeze(self, mask: NDArray[np.bool_]) -> None:
        """Keep the variables of `mask` (T, n) where they are."""
        self._band[..., 0] += 1e6 * mask
        self.gradient = np.where(mask, 0.0, self.gradient)

    def solve(self) -> Array:
        """The step (T, n) that minimises the linearised cost, slightly damped. Uses the system up."""
        return self._solved(-self.gradient[..., None])[..., 0]

    def solve_bordered(self, coupling: Array, corner: Array, gradient: Array) -> tuple[Array, Array]:
        """Steps (T, n) and (g,) where all frames share g more variables. Uses the system up.

        Args:
            coupling: (T, n, g) J^T J of the frames' variables with the shared ones.
            corner: (g, g) J^T J of the shared ones.
            gradient: (g,) their J^T r.
        """
        solved = self._solved(np.concatenate([-self.gradient[..., None], coupling], axis=2))
        alone, response = solved[..., 0], solved[..., 1:]
        reduced = corner - np.einsum("tng,tnh->gh", coupling, response)
        shared = np.linalg.solve(reduced, -gradient - np.einsum("tng,tn->g", coupling, alone))
        return alone - response @ shared, shared

    def _solved(self, right: Array) -> Array:
        """Solutions (T, n, k) of k right-hand sides."""
        frames, n, width = self._band.shape
        self._band[..., 0] += _DAMPING
        band = self._band.reshape(frames * n, width).T
        _, solution, info = dpbsv(band, right.reshape(frames * n, -1), lower=1, overwrite_ab=1)
        if info != 0:
            raise np.linalg.LinAlgError(f"leading minor {info} of the normal equations is not positive")
        return np.asarray(solution).reshape(right.shape)
