"""Angular velocity of a body on a regular grid, from a gyro or from mocap orientations, low-passed alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, sosfiltfilt

from asap_core.errors import StageError
from asap_core.rotations import Array, quat_conj, quat_mul, quat_to_rotvec

GRID_HZ = 250.0
LEAST_S = 3.0
"""Takes must be longer."""
_CUTOFF_HZ = 12.0
_GAP_PERIODS = 3.5
"""A mean rate over up to two dropped frames is still the rate in the middle, at the frequencies that are used."""
_GAP_MASK_S = 0.075


@dataclass(frozen=True)
class BodyRates:
    """Low-passed body rates on a regular grid."""

    time: Array
    values: Array
    """(N, 3) rad/s."""
    bad: NDArray[np.bool_]
    """(N,) in or near a gap."""

    @classmethod
    def of_orientations(cls, time: Array, quat: Array) -> BodyRates:
        """From orientations (M, 4) wxyz at times (M,): mean rates between frames, in the body's frame."""
        steps = np.diff(time)
        increments = quat_to_rotvec(quat_mul(quat_conj(quat[:-1]), quat[1:]))
        good = (steps < _GAP_PERIODS * np.median(steps)) & (steps > 0)
        middle = (time[:-1] + time[1:]) / 2
        return cls._filtered(middle[good], increments[good] / steps[good, None], middle[~good], "mocap")

    @classmethod
    def of_rates(cls, time: Array, values: Array) -> BodyRates:
        """From a gyro's samples (N, 3) rad/s at times (N,)."""
        steps = np.diff(time)
        wide = steps > 4 * np.median(steps)
        return cls._filtered(time, values, (time[:-1] + time[1:])[wide] / 2, "imu")

    @classmethod
    def _filtered(cls, time: Array, values: Array, holes: Array, name: str) -> BodyRates:
        if len(time) < 2 or time[-1] - time[0] < LEAST_S:
            raise StageError(f"{name}: less than {LEAST_S:.0f} s of samples, too little to find the clocks' offset")
        grid = np.arange(time[0], time[-1], 1 / GRID_HZ)
        columns = np.stack([np.interp(grid, time, column) for column in values.T], axis=1)
        bad = np.zeros(len(grid), dtype=bool)
        first = np.searchsorted(grid, holes - _GAP_MASK_S)
        end = np.searchsorted(grid, holes + _GAP_MASK_S)
        steps = np.diff(time)
        wide = np.flatnonzero(steps > 4 * np.median(steps))
        first = np.append(first, np.searchsorted(grid, time[wide] - _GAP_MASK_S))
        end = np.append(end, np.searchsorted(grid, time[wide + 1] + _GAP_MASK_S))
        for a, b in zip(first, end, strict=True):
            bad[a:b] = True
        sections = butter(4, _CUTOFF_HZ, fs=GRID_HZ, output="sos")
        return cls(grid, sosfiltfilt(sections, columns, axis=0), bad)
