"""A person's motion from several calibrated cameras, and how far one camera alone is from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import StageError
from asap_core.motions.human import HumanMotion
from asap_core.motions.tables import Source
from asap_core.reconstruction.body import BodyState, Pose, shaped
from asap_core.reconstruction.calibration import CalibratedCamera
from asap_core.reconstruction.camera import Known
from asap_core.reconstruction.contacts import standing, still
from asap_core.reconstruction.first_guess import first_state
from asap_core.reconstruction.joint_confidence import joint_confidence
from asap_core.reconstruction.landmarks import LANDMARK_NAMES, LandmarkTrack
from asap_core.reconstruction.lift import Lift, lift
from asap_core.reconstruction.markers import SOLE_LANDMARKS, columns, landmark_points, sole_points, used_landmarks
from asap_core.reconstruction.residuals import Evidence, Scene
from asap_core.reconstruction.scene_prior import Estimate, body_estimate, first_scene, free_variables, scene_prior
from asap_core.reconstruction.sequence import coarse_stride, iterate, one_thread, refine, with_contacts
from asap_core.reconstruction.sides import exchanged, with_sides
from asap_core.reconstruction.triangulation import Triangulated, triangulate
from asap_core.rotations import Array

_POINT = 0.02
"""m by which a triangulated landmark is off."""
_FIRST_STEPS, _COARSE_STEPS, _FINE_STEPS = 8, 8, 5
_ABOVE = 1.0
"""m over the ground at which the person is fitted before the ground is known, so that it plays no part."""
_UPRIGHT = 0.9
"""Least cosine between the person's mean axis and the world's."""


@dataclass(frozen=True)
class Views:
    """What C cameras see of a person over T common frames."""

    cameras: tuple[CalibratedCamera, ...]
    fps: float
    points: Triangulated
    """T · 33 landmarks."""
    landmarks: Array
    """(T, 33, 3) of them in a world with z up, m; NaN where not seen."""
    confidence: Array
    """(T, 33)"""


def see(tracks: Sequence[LandmarkTrack], cameras: Sequence[CalibratedCamera]) -> Views:
    """Triangulate synchronous tracks, one for each camera and in their order.

    Raises:
        StageError: other numbers of tracks and cameras, an image size that is not the calibration's, no common frames,
            or a person who stands along none of the world's axes.
    """
    if len(tracks) != len(cameras):
        raise StageError(f"videos: found {len(tracks)}, expected one for each of {len(cameras)} cameras")
    for track, camera in zip(tracks, cameras, strict=True):
        _check_size(track, camera)
    tracks = [with_sides(track, exchanged(track)) for track in tracks]
    frames = min(len(track.times) for track in tracks)
    rates = [(len(track.times) - 1) / (track.times[-1] - track.times[0]) for track in tracks]
    if max(rates) > 1.01 * min(rates):
        raise StageError(f"videos: frame rates from {min(rates):.2f} to {max(rates):.2f} Hz, expected equal ones")
    pixels = np.stack([track.pixels[:frames].reshape(-1, 2) for track in tracks])
    confidence = np.stack([(track.confidence * track.found[:, None])[:frames].ravel() for track in tracks])
    points = triangulate(cameras, pixels, confidence)
    places = points.places.reshape(frames, -1, 3)
    sure = points.confidence.reshape(frames, -1)
    if (sure > 0).any(axis=1).sum() < 2:
        raise StageError("videos: two cameras see the person together in fewer than 2 frames")
    turn = _upright(places)
    return Views(tuple(cameras), float(np.mean(rates)), points, places @ turn.T, sure)


def _check_size(track: LandmarkTrack, camera: CalibratedCamera) -> None:
    """A few pixels of padding are allowed."""
    if camera.size is None:
        return
    if any(abs(a - b) > 0.02 * b for a, b in zip((track.width, track.height), camera.size, strict=True)):
        found, expected = f"{track.width} x {track.height}", f"{camera.size[0]} x {camera.size[1]}"
        raise StageError(f"{camera.name}: the video is {found} px, its calibration {expected}")


def _upright(places: Array) -> Array:
    """Rotation (3, 3) that turns the axis of the world along which the person stands upwards."""
    index = [LANDMARK_NAMES.index(name) for name in ("left_ankle", "right_ankle", "left_shoulder", "right_shoulder")]
    ankles, shoulders = places[:, index[:2]].mean(axis=1), places[:, index[2:]].mean(axis=1)
    axis = shoulders - ankles
    axis = axis[np.isfinite(axis).all(axis=1)]
    if not len(axis):
        raise StageError("videos: two cameras never see ankles and shoulders together")
    mean = (axis / np.linalg.norm(axis, axis=1, keepdims=True)).mean(axis=0)
    best = int(np.abs(mean).argmax())
    if abs(mean[best]) < _UPRIGHT:
        found = f"({', '.join(f'{v:.2f}' for v in mean)})"
        raise StageError(f"calibration: the person stands along {found}, expected along an axis of its world")
    up = np.zeros(3)
    up[best] = np.sign(mean[best])
    forward = np.roll(np.abs(up), 1)
    return np.stack([forward, np.cross(up, forward), up])


def lift_views(
    tracks: Sequence[LandmarkTrack],
    cameras: Sequence[CalibratedCamera],
    known: Known = Known(),  # noqa: B008 (frozen)
    name: str = "video",
    source: Source | None = None,
) -> Lift:
    """The motion of the person whom the cameras see, as `lift` has it; of `known` only the person's height counts."""
    views = see(tracks, cameras)
    with one_thread().limit(limits=1):
        return _fit(views, tracks[0], known, name, source or Source(name, "", "asap multiview 1"))


def _fit(views: Views, first: LandmarkTrack, known: Known, name: str, source: Source) -> Lift:
    prior = scene_prior(first.width, first.height, 1.0, replace(known, focal=None, pitch=0.0, camera_height=1.0))
    scene = first_scene(prior, first.width, first.height)
    free = free_variables(prior)
    free[: len(free) - len(scene.shape)] = False
    evidence = _evidence(views)
    stride = coarse_stride(views.fps, len(views.landmarks))
    few = evidence.part(slice(None, None, stride))
    state, _ = iterate(first_state(few.points), scene, few, prior, np.zeros_like(free), _FIRST_STEPS)
    state, scene = iterate(state, scene, few, prior, free, _COARSE_STEPS)
    state = state.refined(stride, len(evidence.points))
    evidence, state = _grounded(evidence, state, scene)
    contacts = evidence.contacts > 0
    state = refine(state, scene, evidence, prior, _FINE_STEPS)
    bridged = np.asarray((views.confidence <= 0).all(axis=1))
    confidence = joint_confidence(views.confidence)
    motion = HumanMotion(
        name, views.fps, state.joint_rotations(), state.root, shaped(scene.shape), source, confidence=confidence
    )
    size: dict[str, Estimate] = {"person_height": body_estimate(scene, known, "estimated")}
    return Lift(motion, confidence, bridged, contacts, size, None, Pose(scene.shape, state).place(landmark_points()))


def _evidence(views: Views) -> Evidence:
    used = list(used_landmarks())
    points, weights = views.landmarks[:, used], views.confidence[:, used]
    weights = np.where(np.isfinite(points).all(axis=-1), weights, 0.0)
    frames, at = len(points), np.arange(len(points))
    joined = np.zeros_like(points)
    for column in range(len(used)):
        seen = np.flatnonzero(weights[:, column] > 0)
        if len(seen):
            for axis in range(3):
                joined[:, column, axis] = np.interp(at, seen, points[seen, column, axis])
    joined[..., 2] += _ABOVE - joined[..., 2].min()
    nothing = np.zeros((frames, len(used)))
    pixels = np.zeros((frames, len(used), 2))
    contacts = np.zeros((frames, len(SOLE_LANDMARKS)))
    return Evidence(views.fps, pixels, nothing, nothing, nothing, joined, weights / _POINT**2, contacts)


def _grounded(evidence: Evidence, state: BodyState, scene: Scene) -> tuple[Evidence, BodyState]:
    """World, person and contacts with the ground, where the still soles stand, at z = 0."""
    soles = Pose(scene.shape, state).place(sole_points())
    resting = still(evidence.points[:, columns(*SOLE_LANDMARKS)], evidence.fps)
    level = float(np.median(soles[resting, 2])) if resting.any() else float(np.percentile(soles[..., 2], 5))
    shift = np.array([0.0, 0.0, level])
    contacts = standing(soles - shift, resting, evidence.fps)
    lowered = replace(evidence, points=evidence.points - shift)
    return with_contacts(lowered, contacts, 1.0), BodyState(state.root - shift, state.balls, state.angles)


@dataclass(frozen=True)
class Comparison:
    """One camera's lift against the triangulation of all."""

    landmark_error: dict[str, float]
    """Mean distance of each landmark, mm, with the hips laid on each other and one heading for the whole clip."""
    error: float
    """Mean over them, mm."""
    drift: float
    """Mean distance of the hips from where they should be, from the first frame on, mm."""
    reprojection: float
    """Mean reprojection error of the triangulation, px."""


def compare_with_triangulation(
    tracks: Sequence[LandmarkTrack],
    cameras: Sequence[CalibratedCamera],
    chosen: int,
    known: Known = Known(),  # noqa: B008 (frozen)
) -> Comparison:
    """Camera `chosen` alone, with what is known of it, against the triangulation of all, at the lift's landmarks."""
    views = see(tracks, cameras)
    used = list(used_landmarks())
    result = lift(tracks[chosen], known)
    found, true = result.landmarks[: len(views.landmarks)], views.landmarks[: len(result.landmarks), used]
    hips = columns("left_hip", "right_hip")
    whole: NDArray[np.bool_] = np.asarray(np.isfinite(true).all(axis=-1))
    seen = whole & whole[:, hips].all(axis=1, keepdims=True)
    own, other = (a - a[:, hips].mean(axis=1, keepdims=True) for a in (found, true))
    turn = _heading(own[seen], other[seen])
    error = 1e3 * np.linalg.norm(own @ turn.T - other, axis=-1)
    mean = {LANDMARK_NAMES[k]: float(error[seen[:, i], i].mean()) for i, k in enumerate(used) if seen[:, i].any()}
    path = (found[:, hips].mean(axis=1) @ turn.T - true[:, hips].mean(axis=1))[seen.any(axis=1)]
    drift = 1e3 * float(np.linalg.norm(path - path[0], axis=-1).mean())
    return Comparison(mean, float(np.mean(list(mean.values()))), drift, float(np.nanmean(views.points.error)))


def _heading(own: Array, other: Array) -> Array:
    """Rotation (3, 3) about z that lays points (N, 3) best on others."""
    sine = (own[:, 0] * other[:, 1] - own[:, 1] * other[:, 0]).sum()
    angle = np.arctan2(sine, (own[:, :2] * other[:, :2]).sum())
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
