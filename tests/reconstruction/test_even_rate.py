"""Irregular times become a constant rate without inventing what was not seen."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.errors import StageError
from asap_core.reconstruction.even_rate import at_even_rate, over_common_time
from asap_core.reconstruction.landmarks import LandmarkTrack
from asap_core.rotations import Array


def track_at(times: Array, found: Array | None = None, start: float = 0.0) -> LandmarkTrack:
    """Landmarks that move at 30 px/s and 2 m/s."""
    found = np.ones(len(times), dtype=bool) if found is None else found
    seen = np.where(found, times, np.nan)
    return LandmarkTrack(
        times=times,
        pixels=np.broadcast_to(30 * seen[:, None, None], (len(times), 33, 2)).copy(),
        metric=np.broadcast_to(2 * seen[:, None, None], (len(times), 33, 3)).copy(),
        confidence=np.broadcast_to(found[:, None] * 0.9, (len(times), 33)).copy(),
        found=found,
        width=640,
        height=480,
        start=start,
    )


def test_times_rounded_to_milliseconds_are_a_steady_rate() -> None:
    times = np.round(np.arange(31) / 30, 3)
    track = track_at(times)
    even = at_even_rate(track)
    np.testing.assert_allclose(even.times, np.arange(31) / 30, atol=1e-3)
    assert even.pixels is track.pixels


def test_irregular_pictures_are_placed_at_their_true_times() -> None:
    rng = np.random.default_rng(1)
    times = np.cumsum(np.concatenate([[0.0], rng.uniform(0.02, 0.05, 60)]))
    even = at_even_rate(track_at(times))
    assert np.ptp(np.diff(even.times)) < 1e-12
    assert even.times[-1] <= times[-1] < even.times[-1] + even.times[1]
    np.testing.assert_allclose(even.pixels[:, 0, 0], 30 * even.times, atol=1e-9)
    np.testing.assert_allclose(even.metric[:, 5, 2], 2 * even.times, atol=1e-9)
    assert even.found.all()


def test_a_pause_without_pictures_is_marked_as_not_seen() -> None:
    """Ten pictures of 30 in a second are missing: their samples hold no landmarks."""
    times = np.concatenate([np.arange(10), np.arange(20, 31)]) / 30
    even = at_even_rate(track_at(times))
    assert len(even.times) == 31
    assert np.flatnonzero(~even.found).tolist() == list(range(10, 20))
    assert np.isnan(even.pixels[10:20]).all()
    assert (even.confidence[10:20] == 0).all()
    np.testing.assert_allclose(even.pixels[20:, 0, 0], 30 * even.times[20:], atol=1e-9)


def test_a_picture_without_the_person_stays_without() -> None:
    times = np.concatenate([np.arange(10) / 30, 10 / 30 + np.arange(1, 11) / 20])
    found = np.ones(20, dtype=bool)
    found[4] = False
    even = at_even_rate(track_at(times, found))
    assert np.flatnonzero(~even.found).tolist() == [3]  # at 0.15 s, between 0.133 s and 0.167 s
    assert np.isfinite(even.pixels[even.found]).all()


def test_several_videos_are_cut_to_the_time_they_share() -> None:
    early, late = track_at(np.arange(60) / 30), track_at(np.arange(60) / 30, start=0.5)
    one, other = over_common_time([early, late])
    assert len(one.times) == len(other.times) == 45
    assert (one.start, other.start) == (0.5, 0.5)
    np.testing.assert_allclose(one.pixels[0, 0, 0], 15.0)
    np.testing.assert_allclose(other.pixels[0, 0, 0], 0.0)
    with pytest.raises(StageError, match="different times"):
        over_common_time([early, track_at(np.arange(60) / 30, start=3.0)])
