"""The gradient of every residual of the lift against finite differences of a cost that is written anew here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from asap_core.reconstruction import residuals
from asap_core.reconstruction.body import HINGE_SLICE, HINGES, NUM_SHARED, NUM_VARIABLES, BodyState, Pose
from asap_core.reconstruction.markers import columns, landmark_points, sole_points
from asap_core.reconstruction.residuals import Evidence, Linearised, Prior, Scene
from tests.reconstruction.acted import CAMERA, NO_SHAPE, walk_on_the_spot

FRAMES = 4
WALK = walk_on_the_spot(FRAMES + 20).part(slice(20, None))
STATE = BodyState(WALK.root + np.array([0.0, 0.0, 0.05]), WALK.balls, WALK.angles)
"""Above the ground."""
SCENE = Scene(replace(CAMERA, roll=0.03), NO_SHAPE + 0.02)
RNG = np.random.default_rng(0)
COUNT = len(landmark_points().joints)
PLACES = Pose(SCENE.shape, STATE).place(landmark_points())
NOTHING = np.zeros((FRAMES, COUNT))
EMPTY = Evidence(
    30.0,
    SCENE.camera.project(SCENE.camera.seen(PLACES)) + RNG.normal(size=(FRAMES, COUNT, 2)),
    NOTHING,
    RNG.normal(size=(FRAMES, COUNT)) * 0.1,
    NOTHING,
    PLACES + RNG.normal(size=PLACES.shape) * 0.05,
    NOTHING,
    np.zeros((FRAMES, 4)),
)
WEIGHTS = RNG.uniform(0.5, 1.0, (FRAMES, COUNT))
FAR = Prior(SCENE.values(), np.full(NUM_SHARED, 1e6))


@pytest.fixture(autouse=True)
def plain_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    """No robust weights, no posture and no smoothness, so that the cost is a sum of squares of what is tested."""
    for name in ("_PIXEL_SLACK", "_DEPTH_SLACK", "_POINT_SLACK", "_CONTACT_SLACK"):
        monkeypatch.setattr(residuals, name, 1e9)
    monkeypatch.setattr(residuals, "_BALL_SPREAD", np.full((5, 3), np.inf))
    monkeypatch.setattr(residuals, "_HINGE_SPREAD", np.full(len(HINGES), np.inf))
    monkeypatch.setattr(residuals, "_ACCELERATION", np.full(NUM_VARIABLES, 1e9))


def pixel_cost(state: BodyState, scene: Scene) -> float:
    seen = scene.camera.seen(Pose(scene.shape, state).place(landmark_points()))
    return float((WEIGHTS[..., None] * (scene.camera.project(seen) - EMPTY.pixels) ** 2).sum())


def depth_cost(state: BodyState, scene: Scene) -> float:
    """Along the line of sight to the hips at the state itself, which the residual holds still."""
    hips = columns("left_hip", "right_hip")
    sight = PLACES[:, hips].mean(axis=1) - [0.0, 0.0, SCENE.camera.height]
    sight /= np.linalg.norm(sight, axis=1, keepdims=True)
    places = Pose(scene.shape, state).place(landmark_points())
    along = np.einsum("tpi,ti->tp", places - places[:, hips].mean(axis=1, keepdims=True), sight)
    return float((WEIGHTS * (along - EMPTY.depths) ** 2).sum())


def point_cost(state: BodyState, scene: Scene) -> float:
    places = Pose(scene.shape, state).place(landmark_points())
    return float((WEIGHTS[..., None] * (places - EMPTY.points) ** 2).sum())


def sole_cost(state: BodyState, scene: Scene) -> float:
    """All soles stand: 10 mm for the height, 4 mm a frame for the slide; STATE's soles are above the ground."""
    soles = Pose(scene.shape, state).place(sole_points())
    return float((soles[..., 2] ** 2).sum() / 0.01**2 + (np.diff(soles[..., :2], axis=0) ** 2).sum() / 0.004**2)


CASES = {
    "pixels": (pixel_cost, replace(EMPTY, pixel_weights=WEIGHTS)),
    "depths": (depth_cost, replace(EMPTY, depth_weights=WEIGHTS)),
    "points": (point_cost, replace(EMPTY, point_weights=WEIGHTS)),
    "soles": (sole_cost, replace(EMPTY, contacts=np.ones((FRAMES, 4)))),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient_equals_finite_differences(name: str) -> None:
    cost, evidence = CASES[name]
    at = Linearised(STATE, SCENE, evidence, FAR, shared=True)
    beyond = _beyond_the_limits(STATE)
    step = 1e-6
    for frame in range(FRAMES):
        for variable in range(NUM_VARIABLES):
            change = np.zeros((FRAMES, NUM_VARIABLES))
            change[frame, variable] = step
            slope = (cost(STATE.moved(change), SCENE) - cost(STATE.moved(-change), SCENE)) / (4 * step)
            found = at.system.gradient[frame, variable] - beyond[frame, variable]
            assert found == pytest.approx(slope, rel=1e-4, abs=2e-4 * abs(at.system.gradient).max())
    for variable in range(NUM_SHARED):
        change = np.eye(NUM_SHARED)[variable] * step
        slope = (cost(STATE, SCENE.moved(change)) - cost(STATE, SCENE.moved(-change))) / (4 * step)
        assert at.gradient[variable] == pytest.approx(slope, rel=1e-4, abs=2e-4 * abs(at.gradient).max())


def _beyond_the_limits(state: BodyState) -> np.ndarray:
    out = np.zeros((len(state), NUM_VARIABLES))
    lower, upper = (np.array([getattr(hinge, side) for hinge in HINGES]) for side in ("lower", "upper"))
    out[:, HINGE_SLICE] = (state.angles - np.clip(state.angles, lower, upper)) / 0.05**2
    return out


def test_a_knee_bent_backwards_is_pulled_back() -> None:
    bent = STATE.angles.copy()
    bent[:, 12] = -0.1
    at = Linearised(BodyState(STATE.root, STATE.balls, bent), SCENE, EMPTY, FAR, shared=False)
    np.testing.assert_allclose(at.system.gradient[:, HINGE_SLICE.start + 12], -0.1 / 0.05**2)
