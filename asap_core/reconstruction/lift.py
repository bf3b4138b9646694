"""From landmarks in one camera's image to a person's motion in metres: a whole body fitted to the whole sequence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from asap_core.errors import StageError
from asap_core.motions.human import HumanMotion
from asap_core.motions.tables import Source
from asap_core.reconstruction.body import BodyState, Pose, shaped
from asap_core.reconstruction.camera import Camera, Known
from asap_core.reconstruction.contacts import standing, still
from asap_core.reconstruction.first_guess import distances, facing, first_state, hip_sights, metric_scale, towards
from asap_core.reconstruction.joint_confidence import joint_confidence
from asap_core.reconstruction.landmarks import LandmarkTrack
from asap_core.reconstruction.markers import (
    SOLE_LANDMARKS,
    columns,
    depth_errors,
    landmark_points,
    sole_points,
    used_landmarks,
)
from asap_core.reconstruction.residuals import Evidence, Prior, Scene
from asap_core.reconstruction.scene_prior import Estimate, estimates, first_scene, free_variables, scene_prior
from asap_core.reconstruction.sequence import coarse_stride, iterate, one_thread, refine, with_contacts
from asap_core.reconstruction.sides import exchanged, with_sides
from asap_core.rotations import Array, quat_to_matrix

_LANDMARK = 0.012
"""m by which a landmark is off in the image plane."""
_DEPTH = 1.3
"""Factor of the network's spread along the line of sight; its errors are alike in many frames."""
_FACING = 0.2
"""s over which the body's heading is smoothed."""
_GUESS = 0.10
"""m by which the first guess's landmarks are off."""
_SEEN = 0.2
"""Confidence below which a foot is not said to stand."""
_GUESS_STEPS, _EASY_STEPS, _COARSE_STEPS, _FINE_STEPS = 8, 8, 10, 5
_EASE = 5.0
"""Factor of a standing sole's distance from the ground while the ground is not known yet."""
_LOWEST = 0.2
"""m; no camera is taken to be lower, unless it is known to be."""
_SCENE = 60.0
"""s from the start, in which the scene is estimated."""


@dataclass(frozen=True)
class Lift:
    """A person's motion as one camera shows it."""

    motion: HumanMotion
    """World: the ground is z = 0, the camera above the origin, looking along x. Carries the confidence."""
    confidence: Array
    """(T, 24) from 0 to 1."""
    bridged: NDArray[np.bool_]
    """(T,) the person was not seen; the motion joins the two ends smoothly."""
    contacts: NDArray[np.bool_]
    """(T, 4) left heel, left ball, right heel, right ball stand on the ground."""
    estimates: dict[str, Estimate]
    """focal, pitch, roll, camera_height, person_height."""
    camera: Camera | None
    """None where several were calibrated."""
    landmarks: Array
    """(T, P, 3) the used landmarks (`markers.used_landmarks`) on the fitted body, world, m."""


@dataclass(frozen=True)
class _Sights:
    """The used landmarks of a track: without gaps, and with what each is worth."""

    pixels: Array
    metric: Array
    confidence: Array
    depth_confidence: Array
    fps: float


def lift(track: LandmarkTrack, known: Known, name: str = "video", source: Source | None = None) -> Lift:
    """The motion of the tracked person, at the track's frame rate.

    Raises:
        StageError: the person is seen in fewer than two frames.
    """
    seen = int(track.found.sum())
    if seen < 2:
        raise StageError(f"{name}: the person is seen in {seen} frames, expected at least 2")
    with one_thread().limit(limits=1):
        return _lift(track, known, name, source or Source(name, "", "asap lift 1"))


def _lift(track: LandmarkTrack, known: Known, name: str, source: Source) -> Lift:
    turned = exchanged(track)
    track = with_sides(track, turned)
    sights = _sights(track, turned)
    prior = scene_prior(track.width, track.height, track.focal, known)
    start = _start(sights, track.found)
    scene, coarse = _solve_scene(start, prior, first_scene(prior, track.width, track.height))
    if len(start.pixels) < len(sights.pixels):
        coarse = _solve_coarse(sights, prior, scene)
    evidence = _evidence(sights, scene)
    stride = coarse_stride(sights.fps, len(sights.pixels))
    state = coarse.refined(stride, len(sights.pixels))
    contacts = _contacts(state, scene, sights)
    state = refine(state, scene, with_contacts(evidence, contacts, 1.0), prior, _FINE_STEPS)
    confidence = joint_confidence(track.confidence) * track.found[:, None]
    motion = HumanMotion(
        name, sights.fps, state.joint_rotations(), state.root, shaped(scene.shape), source, confidence=confidence
    )
    found = estimates(scene, track.focal, known)
    landmarks = Pose(scene.shape, state).place(landmark_points())
    contacts = _contacts(state, scene, sights)
    return Lift(motion, confidence, ~track.found, contacts, found, scene.camera, landmarks)


def _sights(track: LandmarkTrack, turned: NDArray[np.bool_]) -> _Sights:
    """Gaps are joined linearly, with no confidence; where the sides had been exchanged, depths are not believed."""
    used = list(used_landmarks())
    frames = len(track.times)
    at, seen = np.arange(frames), np.flatnonzero(track.found)
    whole = [
        np.stack([np.interp(at, seen, column[seen]) for column in a[:, used].reshape(frames, -1).T], axis=1)
        for a in (track.pixels, track.metric)
    ]
    confidence = np.where(track.found[:, None], track.confidence[:, used], 0.0)
    fps = (frames - 1) / float(track.times[-1] - track.times[0])
    depth_confidence = np.where(turned[:, None], 0.0, confidence)
    pixels, metric = whole[0].reshape(frames, -1, 2), whole[1].reshape(frames, -1, 3)
    return _Sights(pixels, metric, confidence, depth_confidence, fps)


def _relative(sights: _Sights, scene: Scene) -> Array:
    """Landmarks (T, P, 3) from the middle of the hips in the camera's axes, m, of this person's size."""
    scale = metric_scale(sights.metric, sights.confidence, scene.shape)
    turn = towards(hip_sights(sights.pixels, scene.camera))
    return scale * sights.metric @ turn.transpose(0, 2, 1)


def _path(sights: _Sights, scene: Scene) -> Array:
    return distances(_relative(sights, scene), sights.pixels, sights.confidence, scene.camera, sights.fps)


def _metres_per_pixel(sights: _Sights, scene: Scene) -> Array:
    return np.asarray(_path(sights, scene)[:, 2] / scene.camera.focal)


def _evidence(sights: _Sights, scene: Scene) -> Evidence:
    """Pixels and relative depths; no contacts."""
    worth = _metres_per_pixel(sights, scene)[:, None]
    nothing = np.zeros_like(sights.confidence)
    return Evidence(
        sights.fps,
        sights.pixels,
        sights.confidence * (worth / _LANDMARK) ** 2,
        _depths(sights, scene),
        sights.depth_confidence / (_DEPTH * depth_errors()[:, 1]) ** 2,
        np.zeros_like(sights.metric),
        nothing,
        np.zeros((len(nothing), len(SOLE_LANDMARKS))),
    )


def _depths(sights: _Sights, scene: Scene) -> Array:
    """(T, P) along the line of sight from the middle of the hips, m, less what the network usually errs by."""
    scale = metric_scale(sights.metric, sights.confidence, scene.shape)
    ahead = quat_to_matrix(facing(sights.metric))[:, 2, 2]
    ahead = gaussian_filter1d(ahead, max(_FACING * sights.fps, 0.5), mode="nearest")
    stature = float(np.exp(scene.shape[0]))
    return np.asarray(scale * sights.metric[..., 2] - stature * ahead[:, None] * depth_errors()[:, 0])


def _first_points(sights: _Sights, scene: Scene) -> Array:
    """Landmarks (T, P, 3) in the world, as the network's metres and the pixels have them, frame by frame."""
    seen = _relative(sights, scene) + _path(sights, scene)[:, None]
    return seen @ scene.camera.rotation() + np.array([0.0, 0.0, scene.camera.height])


def _part(sights: _Sights, frames: slice) -> _Sights:
    """Some of the frames; a stride lowers the rate."""
    part = {name: value[frames] for name, value in vars(sights).items() if isinstance(value, np.ndarray)}
    return replace(sights, fps=sights.fps / (frames.step or 1), **part)


def _few(sights: _Sights) -> _Sights:
    return _part(sights, slice(None, None, coarse_stride(sights.fps, len(sights.pixels))))


def _start(sights: _Sights, found: NDArray[np.bool_]) -> _Sights:
    """A long clip's first minute with the person; a short clip as it is."""
    frames = round(_SCENE * sights.fps)
    if len(found) <= frames:
        return sights
    begin = int(found.argmax())
    return _part(sights, slice(begin, begin + frames))


def _guess(few: _Sights, scene: Scene) -> Evidence:
    """The landmarks' places as the network guesses them."""
    nothing, points = np.zeros_like(few.confidence), _first_points(few, scene)
    weights = few.confidence / _GUESS**2
    return replace(
        _evidence(few, scene), pixel_weights=nothing, depth_weights=nothing, points=points, point_weights=weights
    )


def _solve_scene(sights: _Sights, prior: Prior, scene: Scene) -> tuple[Scene, BodyState]:
    """The scene, and the motion at the coarse rate."""
    few = _few(sights)
    guess, free = _guess(few, scene), free_variables(prior)
    state, _ = iterate(first_state(guess.points), scene, guess, prior, np.zeros_like(free), _GUESS_STEPS)
    resting = _resting(few, scene)
    if free[3]:
        state, scene = _grounded(state, scene, resting)
    easy = with_contacts(_evidence(few, scene), resting, _EASE)
    state, scene = iterate(state, scene, easy, prior, free, _EASY_STEPS)
    firm = with_contacts(_evidence(few, scene), _contacts(state, scene, few), 1.0)
    state, scene = iterate(state, scene, firm, prior, free, _COARSE_STEPS)
    return scene, state


def _solve_coarse(sights: _Sights, prior: Prior, scene: Scene) -> BodyState:
    """The motion at the coarse rate in a scene that is settled, window by window."""
    few = _few(sights)
    guess = _guess(few, scene)
    state = refine(first_state(guess.points), scene, guess, prior, _GUESS_STEPS)
    easy = with_contacts(_evidence(few, scene), _contacts(state, scene, few), _EASE)
    return refine(state, scene, easy, prior, _COARSE_STEPS)


def _grounded(state: BodyState, scene: Scene, resting: NDArray[np.bool_]) -> tuple[BodyState, Scene]:
    """Camera and person moved up or down so that the soles that are still stand on the ground."""
    soles = Pose(scene.shape, state).place(sole_points())[..., 2]
    level = float(np.median(soles[resting])) if resting.any() else float(np.percentile(soles, 5))
    height = max(scene.camera.height - level, _LOWEST)
    shift = np.array([0.0, 0.0, scene.camera.height - height])
    camera = replace(scene.camera, height=height)
    return BodyState(state.root - shift, state.balls, state.angles), replace(scene, camera=camera)


def _resting(sights: _Sights, scene: Scene) -> NDArray[np.bool_]:
    """(T, 4) soles whose landmarks are seen not to move."""
    soles = columns(*SOLE_LANDMARKS)
    slow = still(sights.pixels[:, soles], sights.fps, _metres_per_pixel(sights, scene)[:, None])
    return slow & (sights.confidence[:, soles] > _SEEN)


def _contacts(state: BodyState, scene: Scene, sights: _Sights) -> NDArray[np.bool_]:
    soles = Pose(scene.shape, state).place(sole_points())
    return standing(soles, _resting(sights, scene), sights.fps)
