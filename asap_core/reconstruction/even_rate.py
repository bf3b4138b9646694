"""Landmarks at a constant frame rate, from the true times of a video."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from asap_core.reconstruction.landmarks import LandmarkTrack
from asap_core.rotations import Array

_ROUNDING = 0.1
"""Share by which intervals differ where a container rounds its times to whole milliseconds."""
_BRIDGE = 3.2
"""Usual intervals over which two pictures are joined; in a longer pause the person is not seen."""
_AT_ONCE = 0.05
"""Usual intervals by which a picture and a sample may differ and still be the same."""


def at_even_rate(track: LandmarkTrack) -> LandmarkTrack:
    """The same landmarks at the video's usual frame rate; a steady video keeps its pictures as they are.

    Between two pictures landmarks move linearly. A sample that lies in a long pause, or beside a picture without the
    person, is without the person too.
    """
    intervals = np.diff(track.times)
    usual = float(np.median(intervals))
    if np.all(np.abs(intervals - usual) <= _ROUNDING * usual):
        frames = len(track.times)
        step = float(track.times[-1]) / (frames - 1)
        return replace(track, times=np.arange(frames) * step)
    at = np.arange(int(track.times[-1] / usual + 1e-6) + 1) * usual
    before = np.clip(np.searchsorted(track.times, at + _AT_ONCE * usual, side="right") - 1, 0, len(intervals) - 1)
    share = (at - track.times[before]) / intervals[before]
    share = np.where(np.abs(share * intervals[before]) <= _AT_ONCE * usual, 0.0, share)
    share = np.where(np.abs(track.times[before + 1] - at) <= _AT_ONCE * usual, 1.0, share)
    between = track.found[before] & track.found[before + 1] & (intervals[before] <= _BRIDGE * usual)
    found = np.where(share == 0, track.found[before], np.where(share == 1, track.found[before + 1], between))

    def taken(values: Array, absent: float) -> Array:
        weight = share.reshape(-1, *[1] * (values.ndim - 1))
        low, high = values[before], values[before + 1]
        mixed = np.where(weight == 0, low, np.where(weight == 1, high, (1 - weight) * low + weight * high))
        return np.where(found.reshape(weight.shape), mixed, absent)

    return replace(
        track,
        times=at,
        pixels=taken(track.pixels, np.nan),
        metric=taken(track.metric, np.nan),
        confidence=taken(track.confidence, 0.0),
        found=found,
    )
