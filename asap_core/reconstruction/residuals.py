"""The residuals that the lift minimises, linearised around a motion, a camera and a body's shape.

Each is divided by what it is expected to be, so that a cost of 1 is one standard deviation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.banded import BandedSystem
from asap_core.reconstruction.body import (
    HINGE_SLICE,
    HINGES,
    NEUTRAL_ANGLES,
    NEUTRAL_BALLS,
    NUM_CAMERA,
    NUM_SHARED,
    NUM_VARIABLES,
    BodyState,
    Pose,
)
from asap_core.reconstruction.camera import Camera
from asap_core.reconstruction.markers import columns, landmark_points, sole_points
from asap_core.rotations import Array, quat_conj, quat_mul, quat_to_rotvec

_PIXEL_SLACK, _DEPTH_SLACK, _POINT_SLACK, _CONTACT_SLACK = 2.0, 2.0, 2.0, 2.0
"""Standard deviations beyond which a residual pulls no harder."""
_HOLD, _STAND, _SUNK = 0.004, 0.01, 0.01
"""m: slide of a standing sole in a frame of 1/30 s, its distance from the ground, any sole's depth under it."""
_LIMIT = 0.05
"""rad beyond a hinge's range."""
_ACCELERATION = np.array(
    [1.25] * 3 + [7.5] * 3 + [12.5] * 12 + [4.0] * 3 + [7.5] * 3 + [5.0] * 4 + [15.0] * 2 + [12.5] * 2 + [10.0] * 4
)
"""(V,) m/s² and rad/s²"""
_BALL_SPREAD = np.array([[np.inf] * 3, [0.8, 0.4, 0.35], [0.8, 0.4, 0.35], [1.2, 1.2, 1.2], [1.2, 1.2, 1.2]])
"""(5, 3) rad from the neutral pose."""
_HINGE_SPREAD = np.array([0.4, 0.25, 0.35, 0.4, 0.3, 0.5] + [0.15] * 4 + [1.5] * 4 + [0.3, 0.15] * 2)
"""(18,) rad from the neutral pose."""
_INDEPENDENT = 1.0
"""So many frames say as much of the scene as one: the network errs alike in all. The person's size is exempt, for a
ground at a known distance tells it."""
_ROWS, _COLUMNS = np.tril_indices(NUM_VARIABLES)
_ALL_ROWS, _ALL_COLUMNS = (index.ravel() for index in np.indices((NUM_VARIABLES, NUM_VARIABLES)))


@dataclass(frozen=True)
class Evidence:
    """What T frames show, for P landmarks and the 4 sole points. Weights are 1/variance; 0: not seen."""

    fps: float
    pixels: Array
    """(T, P, 2)"""
    pixel_weights: Array
    """(T, P) 1/px²"""
    depths: Array
    """(T, P) further away along the line of sight than the middle of the hips, m."""
    depth_weights: Array
    """(T, P) 1/m²"""
    points: Array
    """(T, P, 3) world, m."""
    point_weights: Array
    """(T, P) 1/m²"""
    contacts: Array
    """(T, 4) from 0 to 1: the sole stands."""
    ease: float = 1.0
    """Factor of what a standing sole's distance from the ground is expected to be."""

    def part(self, frames: slice) -> Evidence:
        """Some of the frames; a stride lowers the rate."""
        arrays: dict[str, Any] = {k: value[frames] for k, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, fps=self.fps / (frames.step or 1), **arrays)


@dataclass(frozen=True)
class Scene:
    """What all frames share."""

    camera: Camera
    shape: Array
    """(9,) logarithms, in the order of `SHAPE_GROUPS`."""

    def moved(self, step: Array) -> Scene:
        """Changed by a step (13,) of the shared variables."""
        return Scene(self.camera.moved(step[:NUM_CAMERA]), self.shape + step[NUM_CAMERA:])

    def values(self) -> Array:
        """(13,) the shared variables; the focal length and the camera's height by their logarithms."""
        camera = self.camera
        lens = [np.log(camera.focal), camera.pitch, camera.roll, np.log(camera.height)]
        return np.concatenate([lens, self.shape])


@dataclass(frozen=True)
class Prior:
    """What is believed of a scene before the video is seen."""

    values: Array
    """(13,)"""
    spread: Array
    """(13,) standard deviations; tiny where the value is known."""


class Linearised:
    """The Gauss-Newton system of all residuals at a state and a scene; the frames' variables alone unless `shared`."""

    def __init__(self, state: BodyState, scene: Scene, evidence: Evidence, prior: Prior, shared: bool) -> None:
        self._shared = shared
        self.system = BandedSystem(len(state), NUM_VARIABLES)
        self.coupling = np.zeros((len(state), NUM_VARIABLES, NUM_SHARED if shared else 0))
        count = self.coupling.shape[2]
        weight = prior.spread[:count] ** -2
        weight[np.arange(count) != NUM_CAMERA] *= max(1.0, len(state) / _INDEPENDENT)
        self.corner = np.diag(weight)
        self.gradient = weight * (scene.values() - prior.values)[:count]
        pose = Pose(scene.shape, state)
        self._add_places(pose, scene, evidence)
        self._add_posture(state)
        self._add_smoothness(state, evidence.fps)

    def _add_places(self, pose: Pose, scene: Scene, evidence: Evidence) -> None:
        """Landmarks in the image, their relative depth, triangulated ones, and soles."""
        places = pose.place(landmark_points())
        parts = []
        if evidence.pixel_weights.any():
            parts.append(_pixel_rows(pose, scene.camera, places, evidence, self._shared))
        if evidence.depth_weights.any():
            parts.append(_depth_rows(pose, scene.camera, places, evidence, self._shared))
        if evidence.point_weights.any():
            parts.append(_point_rows(pose, places, evidence, self._shared))
        soles = pose.place(sole_points())
        directions = np.broadcast_to(np.eye(3), (*soles.shape, 3))
        sole_rows = pose.rows(sole_points(), soles, directions, self._shared)
        parts.append(_stand_rows(soles[..., 2], sole_rows[:, :, 2], evidence))
        self._add_rows(*(np.concatenate(part, axis=1) for part in zip(*parts, strict=True)))
        if len(soles) > 1 and evidence.contacts.any():
            self._add_hold(soles[..., :2], sole_rows[:, :, :2], evidence)

    def _add_rows(self, rows: Array, residual: Array) -> None:
        """Rows (T, m, V + shared) and residuals (T, m), both divided by their standard deviations."""
        flat = rows.transpose(0, 2, 1)
        normal = flat @ rows
        pull = (flat @ residual[..., None])[..., 0]
        self.system.add_within(_ROWS, _COLUMNS, normal[:, _ROWS, _COLUMNS])
        self.system.gradient += pull[:, :NUM_VARIABLES]
        self.coupling += normal[:, :NUM_VARIABLES, NUM_VARIABLES:]
        self.corner = self.corner + normal[:, NUM_VARIABLES:, NUM_VARIABLES:].sum(axis=0)
        self.gradient = self.gradient + pull[:, NUM_VARIABLES:].sum(axis=0)

    def _add_hold(self, places: Array, rows: Array, evidence: Evidence) -> None:
        """Soles that stand in two frames are at the same place in both."""
        spread = _HOLD * 30.0 / evidence.fps
        slide = (places[1:] - places[:-1]) / spread
        firm = evidence.contacts[1:] * evidence.contacts[:-1]
        root = np.sqrt(firm * _robust(np.linalg.norm(slide, axis=-1), _CONTACT_SLACK))[..., None]
        frames, own = len(slide), slice(None, NUM_VARIABLES)
        later, earlier = (
            (part * (root / spread)[..., None]).reshape(frames, -1, rows.shape[-1]) for part in (rows[1:], rows[:-1])
        )
        residual = (slide * root).reshape(frames, -1)
        shared = later[..., NUM_VARIABLES:] - earlier[..., NUM_VARIABLES:]
        normal = np.zeros((frames + 1, len(_ROWS)))
        for part, jacobian in ((slice(1, None), later[..., own]), (slice(None, -1), -earlier[..., own])):
            turned = jacobian.transpose(0, 2, 1)
            normal[part] += (turned @ jacobian)[:, _ROWS, _COLUMNS]
            self.system.gradient[part] += (turned @ residual[..., None])[..., 0]
            self.coupling[part] += turned @ shared
        self.system.add_within(_ROWS, _COLUMNS, normal)
        between = -later[..., own].transpose(0, 2, 1) @ earlier[..., own]
        self.system.add_between(_ALL_ROWS, _ALL_COLUMNS, between.reshape(frames, -1))
        turned = shared.transpose(0, 2, 1)
        self.corner = self.corner + (turned @ shared).sum(axis=0)
        self.gradient = self.gradient + (turned @ residual[..., None])[..., 0].sum(axis=0)

    def _add_posture(self, state: BodyState) -> None:
        """Near the neutral pose, and hinges within their ranges."""
        away = np.zeros((len(state), NUM_VARIABLES))
        turned = quat_to_rotvec(quat_mul(state.balls, quat_conj(NEUTRAL_BALLS)))
        away[:, 3 : HINGE_SLICE.start] = turned.reshape(len(state), -1)
        away[:, HINGE_SLICE] = state.angles - NEUTRAL_ANGLES
        spread = np.concatenate([[np.inf] * 3, _BALL_SPREAD.ravel(), _HINGE_SPREAD])
        self.system.add_own(spread**-2, away)
        lower, upper = (np.array([getattr(hinge, side) for hinge in HINGES]) for side in ("lower", "upper"))
        beyond = np.zeros_like(away)
        beyond[:, HINGE_SLICE] = state.angles - np.clip(state.angles, lower, upper)
        self.system.add_own((beyond != 0) / _LIMIT**2, beyond)

    def _add_smoothness(self, state: BodyState, fps: float) -> None:
        turn = quat_to_rotvec(quat_mul(state.balls[1:], quat_conj(state.balls[:-1])))
        turned = np.concatenate([np.zeros((1, *turn.shape[1:])), np.cumsum(turn, axis=0)]).reshape(len(state), -1)
        values = np.concatenate([state.root, turned, state.angles], axis=1)
        self.system.add_acceleration((fps**2 / _ACCELERATION) ** 2, values)


def _robust(size: Array, slack: float) -> Array:
    """Factor of the squared weight that makes a cost grow no further than linearly, then hardly (Geman-McClure)."""
    return np.asarray(1.0 / (1.0 + (size / slack) ** 2) ** 2)


def _huber(size: Array, slack: float) -> Array:
    """Factor of the squared weight that makes a cost linear beyond `slack` (pseudo-Huber)."""
    return np.asarray(1.0 / np.sqrt(1.0 + (size / slack) ** 2))


def _pixel_rows(pose: Pose, camera: Camera, places: Array, evidence: Evidence, shared: bool) -> tuple[Array, Array]:
    seen = camera.seen(places)
    residual = camera.project(seen) - evidence.pixels
    size = np.linalg.norm(residual, axis=-1) * np.sqrt(evidence.pixel_weights)
    root = np.sqrt(evidence.pixel_weights * _huber(size, _PIXEL_SLACK))[..., None]
    rows = pose.rows(landmark_points(), places, camera.pixel_rows(seen) * root[..., None], shared)
    if shared:
        rows[..., NUM_VARIABLES : NUM_VARIABLES + NUM_CAMERA] = camera.derivatives(seen) * root[..., None]
    frames = len(places)
    return rows.reshape(frames, -1, rows.shape[-1]), (residual * root).reshape(frames, -1)


def _depth_rows(pose: Pose, camera: Camera, places: Array, evidence: Evidence, shared: bool) -> tuple[Array, Array]:
    """The line of sight to the hips is taken as it is; only what lies along it counts."""
    hips = columns("left_hip", "right_hip")
    sight = places[:, hips].mean(axis=1) - np.array([0.0, 0.0, camera.height])
    sight /= np.linalg.norm(sight, axis=-1, keepdims=True)
    along = (places @ sight[..., None])[..., 0]
    residual = along - along[:, hips].mean(axis=1, keepdims=True) - evidence.depths
    size = np.abs(residual) * np.sqrt(evidence.depth_weights)
    root = np.sqrt(evidence.depth_weights * _huber(size, _DEPTH_SLACK))
    directions = np.broadcast_to(sight[:, None, None], (*places.shape[:2], 1, 3))
    rows = pose.rows(landmark_points(), places, directions, shared)[:, :, 0]
    rows -= rows[:, hips].mean(axis=1, keepdims=True)
    return rows * root[..., None], residual * root


def _point_rows(pose: Pose, places: Array, evidence: Evidence, shared: bool) -> tuple[Array, Array]:
    residual = places - evidence.points
    size = np.linalg.norm(residual, axis=-1) * np.sqrt(evidence.point_weights)
    root = np.sqrt(evidence.point_weights * _huber(size, _POINT_SLACK))[..., None]
    rows = pose.rows(landmark_points(), places, np.eye(3) * root[..., None], shared)
    frames = len(places)
    return rows.reshape(frames, -1, rows.shape[-1]), (residual * root).reshape(frames, -1)


def _stand_rows(height: Array, rows: Array, evidence: Evidence) -> tuple[Array, Array]:
    """Standing soles are on the ground; none is under it."""
    stand = _STAND * evidence.ease
    root = np.sqrt(evidence.contacts * _robust(height / stand, _CONTACT_SLACK)) / stand
    root = np.maximum(root, (height < 0) / (_SUNK * evidence.ease))
    return rows * root[..., None], height * root


def solve_step(
    state: BodyState, scene: Scene, evidence: Evidence, prior: Prior, free: NDArray[np.bool_], fixed: int
) -> tuple[Array, Array]:
    """The step of the frames (T, V), of which the first `fixed` stay, and of the shared variables (13,), if `free`."""
    at = Linearised(state, scene, evidence, prior, bool(free.any()))
    if fixed:
        at.system.freeze(np.repeat(np.arange(len(state)) < fixed, NUM_VARIABLES).reshape(len(state), -1))
    shared = np.zeros(NUM_SHARED)
    if not free.any():
        return at.system.solve(), shared
    step, shared[free] = at.system.solve_bordered(
        at.coupling[:, :, free], at.corner[np.ix_(free, free)], at.gradient[free]
    )
    return step, shared
