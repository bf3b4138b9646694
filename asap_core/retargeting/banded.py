"""Block-banded normal equations of a sequence whose residuals couple at most three consecutive frames."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solveh_banded

from asap_core.rotations import Array

_DAMPING = 1e-4


class BandedSystem:
    """Gauss-Newton system of T frames with n variables each: sums J^T J and J^T r, then solves for the step."""

    def __init__(self, frames: int, variables: int) -> None:
        self._frames, self._variables = frames, variables
        self._diagonal = np.zeros((frames, variables, variables))
        self._first = np.zeros((frames - 1, variables, variables))
        self._second = np.zeros((max(frames - 2, 0), variables, variables))
        self.gradient = np.zeros((frames, variables))
        """(T, n) J^T r, half the gradient of the cost."""
        self.cost = 0.0
        """Sum of squared residuals."""

    def add_frame(self, jacobian: Array, residual: Array) -> None:
        """Residuals (T, m) of single frames with Jacobian (T, m, n)."""
        transposed = np.swapaxes(jacobian, 1, 2)
        self._diagonal += transposed @ jacobian
        self.gradient += (transposed @ residual[..., None])[..., 0]
        self.cost += float((residual**2).sum())

    def add_pair(self, before: Array, after: Array, residual: Array) -> None:
        """Residuals (T-1, m) of consecutive frames, with Jacobians (T-1, m, n) by the earlier and the later frame."""
        before_t, after_t = np.swapaxes(before, 1, 2), np.swapaxes(after, 1, 2)
        self._diagonal[:-1] += before_t @ before
        self._diagonal[1:] += after_t @ after
        self._first += after_t @ before
        self.gradient[:-1] += (before_t @ residual[..., None])[..., 0]
        self.gradient[1:] += (after_t @ residual[..., None])[..., 0]
        self.cost += float((residual**2).sum())

    def add_diagonal(self, weight: Array, residual: Array) -> None:
        """Residuals weight * x with x = `residual` (T, n) itself a variable, and weight (n,) or (T, n)."""
        square = np.broadcast_to(weight**2, residual.shape)
        index = np.arange(self._variables)
        self._diagonal[:, index, index] += square
        self.gradient += square * residual
        self.cost += float((square * residual**2).sum())

    def add_acceleration(self, weight: Array, values: Array) -> None:
        """Residuals weight (n,) * second difference of `values` (T, n), whose increments are the variables."""
        if self._frames < 3:
            return
        square = weight**2
        second = values[2:] - 2 * values[1:-1] + values[:-2]
        index = np.arange(self._variables)
        for part, factor in ((slice(2, None), 1), (slice(1, -1), 4), (slice(None, -2), 1)):
            self._diagonal[part, index, index] += factor * square
        self._first[1:, index, index] -= 2 * square
        self._first[:-1, index, index] -= 2 * square
        self._second[:, index, index] += square
        for part, factor in ((slice(2, None), 1), (slice(1, -1), -2), (slice(None, -2), 1)):
            self.gradient[part] += factor * square * second
        self.cost += float((square * second**2).sum())

    def freeze(self, mask: Array) -> None:
        """Keep the variables of `mask` (T, n) where they are."""
        index = np.arange(self._variables)
        self._diagonal[:, index, index] += 1e6 * mask
        self.gradient = np.where(mask, 0.0, self.gradient)

    def solve(self) -> Array:
        """The step (T, n) that minimises the linearised cost, slightly damped."""
        frames, n = self._frames, self._variables
        index = np.arange(n)
        self._diagonal[:, index, index] += _DAMPING
        band = np.zeros((3 * n, frames * n))
        row, column = np.meshgrid(index, index, indexing="ij")
        columns = (np.arange(frames) * n)[:, None, None] + column
        lower = row >= column
        band[(row - column)[lower], columns[:, lower]] = self._diagonal[:, lower]
        band[n + row - column, columns[:-1]] = self._first
        band[2 * n + row - column, columns[: max(frames - 2, 0)]] = self._second
        step = solveh_banded(band, -self.gradient.ravel(), lower=True, check_finite=False, overwrite_ab=True)
        return np.asarray(step).reshape(frames, n)
