from __future__ import annotations

import numpy as np

from asap_core.banded import BandedSystem

T, N = 6, 4
DAMPING = 1e-4
ROWS, COLUMNS = np.tril_indices(N)
ALL_ROWS, ALL_COLUMNS = (index.ravel() for index in np.indices((N, N)))


def _dense_step(normal: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    return np.linalg.solve(normal + DAMPING * np.eye(T * N), -gradient.ravel()).reshape(T, N)


def _spread(blocks: dict[int, np.ndarray]) -> np.ndarray:
    """Jacobian (m, T N) of residuals from its blocks by frame."""
    out = np.zeros((len(next(iter(blocks.values()))), T * N))
    for frame, block in blocks.items():
        out[:, frame * N : (frame + 1) * N] = block
    return out


def test_every_kind_of_residual_equals_the_dense_solution() -> None:
    rng = np.random.default_rng(0)
    system, normal, gradient = BandedSystem(T, N), np.zeros((T * N, T * N)), np.zeros(T * N)

    def dense(jacobian: np.ndarray, residual: np.ndarray) -> None:
        nonlocal normal, gradient
        normal, gradient = normal + jacobian.T @ jacobian, gradient + jacobian.T @ residual

    within, residual = rng.normal(size=(T, 5, N)), rng.normal(size=(T, 5))
    blocks = within.transpose(0, 2, 1) @ within
    system.add_within(ROWS, COLUMNS, blocks[:, ROWS, COLUMNS])
    system.gradient += (within.transpose(0, 2, 1) @ residual[..., None])[..., 0]
    for t in range(T):
        dense(_spread({t: within[t]}), residual[t])
    before, after = rng.normal(size=(2, T - 1, 3, N))
    for part, block in ((slice(None, -1), before), (slice(1, None), after)):
        whole = np.zeros((T, N, N))
        whole[part] = block.transpose(0, 2, 1) @ block
        system.add_within(ROWS, COLUMNS, whole[:, ROWS, COLUMNS])
    system.add_between(ALL_ROWS, ALL_COLUMNS, (after.transpose(0, 2, 1) @ before)[:, ALL_ROWS, ALL_COLUMNS])
    for t in range(T - 1):
        dense(_spread({t: before[t], t + 1: after[t]}), np.zeros(3))
    weight, values = rng.uniform(0.1, 2, (T, N)), rng.normal(size=(T, N))
    system.add_own(weight**2, values)
    dense(np.diag(weight.ravel()), (weight * values).ravel())
    system.add_change(weight[1:] ** 2, values[1:])
    system.add_acceleration(weight[0] ** 2, values)
    eye = np.eye(N)
    for t in range(T - 1):
        dense(weight[t + 1][:, None] * _spread({t: -eye, t + 1: eye}), weight[t + 1] * values[t + 1])
    for t in range(T - 2):
        second = values[t + 2] - 2 * values[t + 1] + values[t]
        dense(weight[0][:, None] * _spread({t: eye, t + 1: -2 * eye, t + 2: eye}), weight[0] * second)
    np.testing.assert_allclose(system.gradient.ravel(), gradient)
    np.testing.assert_allclose(system.solve(), _dense_step(normal, gradient), rtol=1e-8, atol=1e-10)


def test_frozen_variables_stay() -> None:
    rng = np.random.default_rng(1)
    system = BandedSystem(T, N)
    system.add_own(np.ones(N), rng.normal(size=(T, N)))
    system.add_acceleration(np.ones(N), rng.normal(size=(T, N)))
    mask = rng.random((T, N)) < 0.3
    system.freeze(mask)
    step = system.solve()
    assert np.abs(step[mask]).max() < 1e-4
    assert np.abs(step[~mask]).min() > 1e-4


def test_two_frames_need_no_acceleration() -> None:
    system = BandedSystem(2, N)
    system.add_acceleration(np.ones(N), np.zeros((2, N)))
    system.add_own(np.ones(N), np.ones((2, N)))
    np.testing.assert_allclose(system.solve(), -1.0, rtol=1e-3)


def test_one_frame_is_enough() -> None:
    system = BandedSystem(1, N)
    system.add_acceleration(np.ones(N), np.zeros((1, N)))
    system.add_change(np.ones((0, N)), np.ones((0, N)))
    system.add_own(np.ones(N), np.ones((1, N)))
    np.testing.assert_allclose(system.solve(), -1.0, rtol=1e-3)


def test_variables_that_all_frames_share_equal_the_dense_solution() -> None:
    rng = np.random.default_rng(2)
    jacobian, residual = rng.normal(size=(T, 9, N)), rng.normal(size=(T, 9))
    shared = rng.normal(size=(T, 9, 3))
    system = BandedSystem(T, N)
    blocks = jacobian.transpose(0, 2, 1) @ jacobian
    system.add_within(ROWS, COLUMNS, blocks[:, ROWS, COLUMNS])
    system.gradient += np.einsum("tmn,tm->tn", jacobian, residual)
    coupling = jacobian.transpose(0, 2, 1) @ shared
    corner, gradient = np.einsum("tmg,tmh->gh", shared, shared), np.einsum("tmg,tm->g", shared, residual)
    step, shared_step = system.solve_bordered(coupling, corner, gradient)
    dense = np.concatenate(
        [np.concatenate([_spread({t: jacobian[t]}) for t in range(T)]), shared.reshape(-1, 3)], axis=1
    )
    damping = np.diag([DAMPING] * (T * N) + [0.0] * 3)
    expected = np.linalg.solve(dense.T @ dense + damping, -dense.T @ residual.ravel())
    np.testing.assert_allclose(step.ravel(), expected[:-3], rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(shared_step, expected[-3:], rtol=1e-7)
