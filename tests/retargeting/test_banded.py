from __future__ import annotations

import numpy as np

from asap_core.retargeting.banded import BandedSystem

T, N, M = 6, 4, 7
DAMPING = 1e-4


def _dense(rows: list[tuple[dict[int, np.ndarray], np.ndarray]]) -> np.ndarray:
    """Least-squares step of residual rows given by their blocks {frame: Jacobian (m, n)}."""
    jacobian = np.zeros((sum(len(r) for _, r in rows), T * N))
    residual = np.concatenate([r for _, r in rows])
    at = 0
    for blocks, r in rows:
        for frame, block in blocks.items():
            jacobian[at : at + len(r), frame * N : (frame + 1) * N] = block
        at += len(r)
    normal = jacobian.T @ jacobian + DAMPING * np.eye(T * N)
    return np.linalg.solve(normal, -jacobian.T @ residual).reshape(T, N)


def test_every_kind_of_residual_equals_the_dense_solution() -> None:
    rng = np.random.default_rng(0)
    system = BandedSystem(T, N)
    frame_j, frame_r = rng.normal(size=(T, M, N)), rng.normal(size=(T, M))
    before, after, pair_r = rng.normal(size=(T - 1, M, N)), rng.normal(size=(T - 1, M, N)), rng.normal(size=(T - 1, M))
    weight, values, own = rng.uniform(0.1, 2, N), rng.normal(size=(T, N)), rng.normal(size=(T, N))
    system.add_frame(frame_j, frame_r)
    system.add_pair(before, after, pair_r)
    system.add_acceleration(weight, values)
    system.add_diagonal(weight, own)
    rows = [({t: frame_j[t]}, frame_r[t]) for t in range(T)]
    rows += [({t: before[t], t + 1: after[t]}, pair_r[t]) for t in range(T - 1)]
    eye = np.diag(weight)
    second = values[2:] - 2 * values[1:-1] + values[:-2]
    rows += [({t: eye, t + 1: -2 * eye, t + 2: eye}, weight * second[t]) for t in range(T - 2)]
    rows += [({t: eye}, weight * own[t]) for t in range(T)]
    cost = sum(float(r @ r) for _, r in rows)
    np.testing.assert_allclose(system.cost, cost)
    np.testing.assert_allclose(system.solve(), _dense(rows), rtol=1e-8, atol=1e-10)


def test_frozen_variables_stay() -> None:
    rng = np.random.default_rng(1)
    system = BandedSystem(T, N)
    system.add_frame(rng.normal(size=(T, M, N)), rng.normal(size=(T, M)))
    mask = rng.random((T, N)) < 0.3
    system.freeze(mask)
    step = system.solve()
    assert np.abs(step[mask]).max() < 1e-4
    assert np.abs(step[~mask]).min() > 1e-4


def test_two_frames_need_no_acceleration() -> None:
    system = BandedSystem(2, N)
    system.add_acceleration(np.ones(N), np.zeros((2, N)))
    system.add_diagonal(np.ones(N), np.ones((2, N)))
    np.testing.assert_allclose(system.solve(), -1.0, rtol=1e-3)
