"""Landmarks at a constant frame rate, from the true times of a video; those of several videos over the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from asap_core.errors import StageError
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
    between = track.found[before] & track.found[before + 1] & (intervals[before] <= _BRIDGE * usual)
    nearer = np.round(share)
    same = np.abs(share - nearer) * intervals[before] <= _AT_ONCE * usual
    found = between | (same & track.found[before + nearer.astype(int)])
    share = np.where(between, share, nearer)

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


def over_common_time(tracks: Sequence[LandmarkTrack]) -> list[LandmarkTrack]:
    """The part of each track, all at one even rate, that lies in the time they share, if the files begin together.

    Raises:
        StageError: they share no two frames.
    """
    step = float(tracks[0].times[1])
    start = max(track.start for track in tracks)
    first = [round((start - track.start) / step) for track in tracks]
    frames = min(len(track.times) - begin for track, begin in zip(tracks, first, strict=True))
    if frames < 2:
        spans = ", ".join(f"{track.start:.2f}–{track.start + track.times[-1]:.2f}" for track in tracks)
        raise StageError(f"the videos show the person at different times ({spans} s); expected a common part")
    cut = []
    for track, begin in zip(tracks, first, strict=True):
        part = slice(begin, begin + frames)
        cut.append(
            replace(
                track,
                times=track.times[:frames],
                pixels=track.pixels[part],
                metric=track.metric[part],
                confidence=track.confidence[part],
                found=track.found[part],
                start=track.start + float(track.times[begin]),
            )
        )
    return cut
