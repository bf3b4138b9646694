"""The network's metres frame by frame, without any lift: what the bench measures improvement against."""

from __future__ import annotations

import numpy as np

from asap_core.reconstruction.camera import Camera
from asap_core.reconstruction.landmarks import LandmarkTrack
from asap_core.rotations import Array

_RAW_LEAST = 0.3
"""Confidence below which a landmark does not place the person."""


def raw_landmarks(track: LandmarkTrack, camera: Camera) -> Array:
    """Landmarks (T, 33, 3) in the world: the network's metric ones, moved in each frame to fit its pixels best.

    NaN where the person was not found.
    """
    target = (track.pixels - camera.centre) / camera.focal
    places = np.full_like(track.metric, np.nan)
    for frame in np.flatnonzero(track.found):
        used = track.confidence[frame] > _RAW_LEAST
        x, y, z = track.metric[frame, used].T
        u, v = target[frame, used].T
        zero, one = np.zeros_like(u), np.ones_like(u)
        rows = np.concatenate([np.stack([one, zero, -u], axis=1), np.stack([zero, one, -v], axis=1)])
        root = np.linalg.lstsq(rows, np.concatenate([u * z - x, v * z - y]), rcond=None)[0]
        places[frame] = track.metric[frame] + root
    return places @ camera.rotation() + (0.0, 0.0, camera.height)
