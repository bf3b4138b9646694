"""The mocap's clock against the IMU's: offset, drift, mount rotation and gyro bias from the angular velocity of both.

Coarse by correlation of the speeds of turning, which no mount or frame changes; then the mount by Wahba's problem; then
all together by robust least squares, from every offset that the speeds leave open. Uncertainties are those of that fit,
with the residuals' autocorrelation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from asap_core.errors import StageError
from asap_core.rollouts.ingest.body_rates import GRID_HZ, LEAST_S, BodyRates
from asap_core.rotations import Array, quat_mul, quat_to_matrix, rotvec_to_quat

LEAST_R2 = 0.9
OPEN_PEAK = 0.9
"""Peaks of the correlation of speeds above this share of the highest are tried. Speeds may repeat where the turning
does not, so they alone refuse nothing."""
MOST_AMBIGUITY = 0.5
"""The best offset must leave less than this share of what the next one leaves of the gyro."""
_MOST_PEAKS = 4
_SAME_OFFSET_S = 0.02
"""Fits that end closer than this are one."""
MOST_OFFSET_SIGMA_S = 2e-3
LEAST_EXCITATION = 0.2
"""rad/s rms."""
LEAST_DRIFT_TAKE_S = 60.0
"""On shorter takes the drift is not fitted; it would cost more than it brings."""
DRIFT_PRIOR = 30e-6
SHAKE = "shake the robot or turn it about all axes for 5 s at the start of a take"

_EVERY = 2
_EDGE_S = 0.5
_CORRELATED_S = 0.3
"""Residuals further apart than this are taken as independent."""
_CONVERGED_S = 1e-7
_TINY = 1e-12
"""Keeps directions that the motion does not show out of divisions by zero."""


@dataclass(frozen=True)
class ClockMap:
    """mocap time = IMU time + offset_s + drift · (IMU time − reference_s)."""

    offset_s: float
    drift: float
    reference_s: float
    """IMU time at which the offset holds, the middle of the take."""

    def to_mocap(self, imu_time: Array) -> Array:
        """IMU stamps (N,) on the mocap's clock."""
        return imu_time + self.offset_s + self.drift * (imu_time - self.reference_s)

    def to_imu(self, mocap_time: Array) -> Array:
        """Mocap stamps (N,) on the IMU's clock."""
        return self.reference_s + (mocap_time - self.offset_s - self.reference_s) / (1 + self.drift)


@dataclass(frozen=True)
class Sync:
    """One clock, and what it rests on."""

    clock: ClockMap
    offset_sigma_s: float
    """Standard error of the offset at the reference time."""
    drift_sigma: float
    """Standard error of the drift: the prior's 30e-6 where it was not fitted."""
    drift_fitted: bool
    mount_quat: Array
    """(4,) wxyz, from the mocap body's frame to the IMU's."""
    gyro_bias: Array
    """(3,) rad/s."""
    vector_r2: float
    """Share of the gyro's variance that the mocap's rates explain."""
    ambiguity: float
    """What this offset leaves of the gyro's variance, as a share of what the next best leaves; 0 without one."""
    excitation: float
    """rad/s rms of the gyro about its mean."""
    refused: tuple[str, ...]
    """Gates not passed, in words; empty where the result may be used."""

    def sigma_at(self, imu_time: float) -> float:
        """Standard error in s of the clock at an IMU time."""
        away = imu_time - self.clock.reference_s
        return float(np.hypot(self.offset_sigma_s, self.drift_sigma * away))


def synchronise(
    imu_time: Array,
    ang_vel: Array,
    mocap_time: Array,
    mocap_quat: Array,
    search_s: float = 2.0,
    known_drift: float | None = None,
) -> Sync:
    """Estimate the mocap's clock.

    Args:
        imu_time, ang_vel: (N,) s and (N, 3) rad/s in the IMU's frame.
        mocap_time, mocap_quat: (M,) s and (M, 4) wxyz, body to world.
        search_s: how far apart the clocks may be; where the two takes overlap by less than half as stamped, all
            offsets are searched.
        known_drift: from a longer take of the session; used where this one is too short to give its own.

    Raises:
        StageError: fewer than 3 s of samples of either.
    """
    mocap = BodyRates.of_orientations(mocap_time, mocap_quat)
    gyro = BodyRates.of_rates(imu_time, ang_vel)
    coarse = _coarse_offsets(gyro, mocap, search_s)
    fits = [_fit(gyro, mocap, offset, known_drift) for offset in coarse]
    best = max((f for f in fits if f is not None), key=lambda f: f.r2, default=None)
    if best is None:
        raise StageError(f"mocap and imu: less than {LEAST_S:.0f} s in common at an offset of {coarse[0]:.3f} s")
    drifts, ambiguity = best.drifts, _ambiguity(best, fits)
    excitation = float(np.sqrt(((gyro.values - gyro.values.mean(axis=0)) ** 2).sum(axis=1).mean()))
    offset_sigma = float(np.sqrt(best.cov[0, 0]))
    return Sync(
        clock=ClockMap(float(best.x[0]), float(best.x[1]), best.reference_s),
        offset_sigma_s=offset_sigma,
        drift_sigma=float(np.sqrt(best.cov[1, 1])) if drifts else (DRIFT_PRIOR if known_drift is None else 0.0),
        drift_fitted=drifts,
        mount_quat=best.mount,
        gyro_bias=best.x[5:8].copy(),
        vector_r2=best.r2,
        ambiguity=ambiguity,
        excitation=excitation,
        refused=_gates(best.r2, ambiguity, offset_sigma, excitation),
    )


def _gates(r2: float, ambiguity: float, sigma: float, excitation: float) -> tuple[str, ...]:
    checks = (
        (excitation > LEAST_EXCITATION, f"turns at {excitation:.2f} rad/s rms, expected > {LEAST_EXCITATION}; {SHAKE}"),
        (
            r2 >= LEAST_R2,
            f"mocap explains {r2:.2f} of the gyro, expected >= {LEAST_R2}: another body or order?",
        ),
        (
            ambiguity < MOST_AMBIGUITY,
            f"the offset misfits {ambiguity:.2f} times as much as another, expected < {MOST_AMBIGUITY}: the motion "
            f"repeats itself; {SHAKE}",
        ),
        (
            sigma < MOST_OFFSET_SIGMA_S,
            f"offset known to {sigma * 1e3:.1f} ms, expected < {MOST_OFFSET_SIGMA_S * 1e3:.0f} ms; {SHAKE}",
        ),
    )
    return tuple(text for passed, text in checks if not passed)


def _fit(gyro: BodyRates, mocap: BodyRates, offset: float, known_drift: float | None) -> _Fit | None:
    """The fit from a coarse offset on; None where too little is in common there."""
    try:
        problem = _Problem(gyro, mocap, offset)
    except StageError:
        return None
    return problem.solve(offset, known_drift or 0.0, known_drift is None and problem.span_s >= LEAST_DRIFT_TAKE_S)


def _ambiguity(best: _Fit, fits: list[_Fit | None]) -> float:
    others = [f.r2 for f in fits if f is not None and abs(f.x[0] - best.x[0]) > _SAME_OFFSET_S]
    return (1 - best.r2) / max(1 - max(others), _TINY) if others else 0.0


def _coarse_offsets(gyro: BodyRates, mocap: BodyRates, search_s: float) -> list[float]:
    """Offsets at which the speeds of turning go together, the best first."""
    a, b = np.linalg.norm(mocap.values, axis=1), np.linalg.norm(gyro.values, axis=1)
    a = np.where(mocap.bad, np.median(a), a)
    a, b = a - a.mean(), b - b.mean()
    count = 2 * ((len(a) + len(b) + 1) // 2)
    correlation = np.fft.irfft(np.fft.rfft(a, count) * np.conj(np.fft.rfft(b, count)), count)
    lags = np.arange(count)
    lags[lags > count // 2] -= count
    offsets = lags / GRID_HZ + mocap.time[0] - gyro.time[0]
    overlap = min(mocap.time[-1], gyro.time[-1]) - max(mocap.time[0], gyro.time[0])
    shorter = min(np.ptp(mocap.time), np.ptp(gyro.time))
    near = np.abs(offsets) <= search_s if overlap > shorter / 2 else np.ones(count, dtype=bool)
    order = np.flatnonzero(near)
    order = order[np.argsort(offsets[order])]
    height = correlation[order]
    inner = (height[1:-1] >= height[:-2]) & (height[1:-1] >= height[2:])
    peaks = np.append(height.argmax(), np.flatnonzero(inner) + 1)
    peaks = peaks[height[peaks] >= OPEN_PEAK * height.max()]
    peaks = np.unique(peaks)[np.argsort(-height[np.unique(peaks)])][:_MOST_PEAKS]
    return [float(offset) for offset in offsets[order[peaks]]]


@dataclass(frozen=True)
class _Fit:
    x: Array
    """Offset s, drift, three unused places of the mount's increment, gyro bias rad/s."""
    mount: Array
    cov: Array
    r2: float
    drifts: bool
    reference_s: float


class _Problem:
    """gyro(t) = M · mocap(t + offset + drift (t − reference)) + bias, in the rows where both are known."""

    def __init__(self, gyro: BodyRates, mocap: BodyRates, coarse: float) -> None:
        edge = int(_EDGE_S * GRID_HZ)
        rows = np.arange(edge, len(gyro.time) - edge, _EVERY)
        at = gyro.time[rows] + coarse
        low, high = mocap.time[0] + _EDGE_S, mocap.time[-1] - _EDGE_S
        bad = np.interp(at, mocap.time, mocap.bad.astype(float)) > 0
        rows = rows[(at > low) & (at < high) & ~bad & ~gyro.bad[rows]]
        if len(rows) < LEAST_S * GRID_HZ / _EVERY:
            raise StageError(f"mocap and imu: less than {LEAST_S:.0f} s in common at an offset of {coarse:.3f} s")
        self._time, self._gyro = gyro.time[rows], gyro.values[rows]
        self._number = rows // _EVERY
        self._mocap = CubicSpline(mocap.time, mocap.values)
        self._slope = CubicSpline(gyro.time, gyro.values)(self._time, 1)
        self.reference_s = float((self._time[0] + self._time[-1]) / 2)
        self.span_s = float(self._time[-1] - self._time[0])

    def solve(self, offset: float, drift: float, drifts: bool) -> _Fit:
        """Gauss–Newton with soft-L1 weights; then the drift's prior, by the covariance of the unconstrained fit."""
        x = np.array([offset, drift, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        mount = self._wahba(x)
        free = np.array([0, *([1] if drifts else []), 2, 3, 4, 5, 6, 7])
        scale = 0.1
        for _ in range(15):
            residual, jacobian = self._linear(x, mount)
            scale = max(1.4826 * float(np.median(np.abs(residual))), 1e-6)
            weight = 1 / np.sqrt(1 + (residual / scale) ** 2)
            step = self._step(residual, jacobian[:, :, free], weight)
            x[free] += step
            mount = quat_mul(rotvec_to_quat(x[2:5]), mount)
            mount = mount / np.linalg.norm(mount)
            x[2:5] = 0.0
            if abs(step[0]) < _CONVERGED_S:
                break
        residual, jacobian = self._linear(x, mount)
        weight = 1 / np.sqrt(1 + (residual / scale) ** 2)
        cov: Array = np.zeros((8, 8))
        cov[np.ix_(free, free)] = self._covariance(residual, jacobian[:, :, free], weight)
        r2 = 1 - float((residual**2).sum() / ((self._gyro - self._gyro.mean(axis=0)) ** 2).sum())
        if drifts:
            x, mount, cov = _with_drift_prior(x, mount, cov)
        return _Fit(x, mount, cov, r2, drifts, self.reference_s)

    def _wahba(self, x: Array) -> Array:
        """The rotation (4,) wxyz that turns the mocap's rates into the gyro's best."""
        rates = self._mocap(self._time + x[0] + x[1] * (self._time - self.reference_s))
        cross = (self._gyro - self._gyro.mean(axis=0)).T @ (rates - rates.mean(axis=0))
        u, _, vt = np.linalg.svd(cross)
        sign = np.diag([1.0, 1.0, np.linalg.det(u @ vt)])
        return _matrix_to_quat(u @ sign @ vt)

    def _linear(self, x: Array, mount: Array) -> tuple[Array, Array]:
        """Residuals (N, 3) and their derivatives (N, 3, 8).

        The derivatives are those of the gyro, which equals the turned mocap but for noise that is far smaller: the
        mocap's own would be noise that goes with the residuals' and makes the offset look better known than it is.
        """
        at = self._time + x[0] + x[1] * (self._time - self.reference_s)
        rates = self._mocap(at) @ quat_to_matrix(mount).T
        jacobian = np.zeros((len(at), 3, 8))
        jacobian[:, :, 0] = self._slope
        jacobian[:, :, 1] = self._slope * (self._time - self.reference_s)[:, None]
        jacobian[:, :, 2:5] = -_skew(self._gyro - x[5:8])
        jacobian[:, :, 5:8] = np.eye(3)
        return rates + x[5:8] - self._gyro, jacobian

    @staticmethod
    def _step(residual: Array, jacobian: Array, weight: Array) -> Array:
        flat, w = jacobian.reshape(-1, jacobian.shape[2]), weight.ravel()
        size = np.linalg.norm(flat, axis=0) + _TINY
        flat = flat / size
        step = np.linalg.lstsq((flat * w[:, None]).T @ flat, -flat.T @ (w * residual.ravel()), rcond=None)[0]
        out: Array = step / size
        return out

    def _covariance(self, residual: Array, jacobian: Array, weight: Array) -> Array:
        """Sandwich with Bartlett weights over `_CORRELATED_S`: the residuals are low-passed, so not independent."""
        size = np.linalg.norm(jacobian.reshape(-1, jacobian.shape[2]), axis=0) + _TINY
        scaled = jacobian / size
        scores = np.zeros((self._number[-1] - self._number[0] + 1, jacobian.shape[2]))
        scores[self._number - self._number[0]] = np.einsum("nc,nci->ni", weight * residual, scaled)
        middle = scores.T @ scores
        reach = int(_CORRELATED_S * GRID_HZ / _EVERY)
        for lag in range(1, reach):
            product = scores[lag:].T @ scores[:-lag]
            middle += (1 - lag / reach) * (product + product.T)
        slope_weight = (1 + (residual / max(1e-9, 1.4826 * float(np.median(np.abs(residual))))) ** 2) ** -1.5
        inverse = np.linalg.pinv(np.einsum("nc,nci,ncj->ij", slope_weight, scaled, scaled))
        out: Array = inverse @ middle @ inverse / np.outer(size, size)
        return out


def _with_drift_prior(x: Array, mount: Array, cov: Array) -> tuple[Array, Array, Array]:
    """The fit joined with a drift of 0 ± `DRIFT_PRIOR`, as two Gaussians are."""
    gain = cov[:, 1] / (cov[1, 1] + DRIFT_PRIOR**2)
    change = -gain * x[1]
    x = x + change
    mount = quat_mul(rotvec_to_quat(change[2:5]), mount)
    x[2:5] = 0.0
    return x, mount, cov - np.outer(gain, cov[1])


def _skew(v: Array) -> Array:
    """(N, 3, 3) cross-product matrices."""
    out = np.zeros((len(v), 3, 3))
    out[:, 0, 1], out[:, 0, 2], out[:, 1, 2] = -v[:, 2], v[:, 1], -v[:, 0]
    return out - out.transpose(0, 2, 1)


def _matrix_to_quat(m: Array) -> Array:
    """(4,) wxyz of a rotation matrix."""
    from scipy.spatial.transform import Rotation

    out: Array = Rotation.from_matrix(m).as_quat(scalar_first=True)
    return out
