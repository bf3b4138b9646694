"""One person is followed: which one, through what, and what is said when the video changes its mind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from asap_core.errors import InputFileError
from asap_core.reconstruction.detector import Region
from asap_core.reconstruction.pose_network import Pose
from asap_core.reconstruction.tracker import Follower, SceneChanges, track_person
from asap_core.reconstruction.video_file import Frame
from tests.video_fixtures import SAMPLE, Picture, noise, person, plain, require_networks, require_video, write_video

require_video()

_STILL = np.full((18, 32, 3), 90, dtype=np.uint8)


class Stage:
    """Stands in for both networks: persons at places and sizes, of which any may be hidden."""

    def __init__(self, *persons: Region) -> None:
        self.persons = list(persons)
        self.looks = 0

    def find(self, image: Picture) -> list[Region]:
        self.looks += 1
        return list(self.persons)

    def look(self, image: Picture, region: Region) -> Pose:
        near = [one for one in self.persons if np.hypot(one.x - region.x, one.y - region.y) < region.size / 2]
        seen = near[0] if near else region
        return Pose(
            score=0.9 if near else 0.1,
            pixels=np.tile([seen.x, seen.y], (33, 1)),
            metric=np.zeros((33, 3)),
            confidence=np.ones(33),
            next_region=seen,
        )


def follow(stage: Stage) -> Follower:
    return Follower(stage, stage)  # type: ignore[arg-type]


def frame(number: int, thumbnail: Picture = _STILL) -> Frame:
    return Frame(number / 30, np.zeros((4, 4, 3), np.uint8), thumbnail)


def at(pose: Pose | None) -> float | None:
    return None if pose is None else float(pose.pixels[0, 0])


def test_the_largest_of_two_persons_is_followed() -> None:
    stage = Stage(Region(100, 100, 80, 0), Region(300, 100, 120, 0))
    follower = follow(stage)
    assert [at(follower.see(frame(number))) for number in range(5)] == [300] * 5
    assert follower.persons == 2
    assert stage.looks == 1


def test_the_detector_rests_while_a_person_is_followed() -> None:
    stage = Stage(Region(100, 100, 80, 0))
    follower = follow(stage)
    for number in range(61):
        assert follower.see(frame(number)) is not None
    assert stage.looks == 3  # at 0, 1 and 2 s, to count the persons


def test_after_a_short_absence_the_same_person_is_found_and_no_other() -> None:
    mine, other = Region(300, 100, 120, 0), Region(900, 100, 100, 0)
    stage = Stage(mine, other)
    follower = follow(stage)
    follower.see(frame(0))
    stage.persons = [other]
    assert [at(follower.see(frame(number))) for number in range(1, 10)] == [None] * 9
    stage.persons = [other, Region(330, 100, 120, 0)]
    assert at(follower.see(frame(10))) == 330
    assert not follower.cut


def test_another_who_walks_by_is_not_taken_for_the_one_who_is_out_of_sight() -> None:
    """Within the reach of the one who is gone, and on towards the place where that one was."""
    stage = Stage(Region(300, 100, 120, 0), Region(520, 100, 100, 0))
    follower = follow(stage)
    assert at(follower.see(frame(0))) == 300
    for number in range(1, 26):
        stage.persons = [Region(520 - 5 * number, 100, 100, 0)]
        assert follower.see(frame(number)) is None
    stage.persons.append(Region(330, 100, 120, 0))
    assert at(follower.see(frame(26))) == 330
    assert not follower.cut


def test_a_person_who_is_suddenly_elsewhere_is_a_cut() -> None:
    stage = Stage(Region(100, 100, 80, 0))
    follower = follow(stage)
    follower.see(frame(0))
    assert not follower.cut
    stage.persons = [Region(600, 100, 80, 0)]
    assert at(follower.see(frame(1))) == 600
    assert follower.cut


def test_scenes_change_where_pictures_differ_more_than_they_use_to() -> None:
    rng = np.random.default_rng(0)
    one = rng.integers(0, 256, (18, 32, 3), dtype=np.uint8)
    other = rng.integers(0, 256, (18, 32, 3), dtype=np.uint8)
    scenes = SceneChanges()
    pan = [np.roll(one, shift, axis=1) // 8 * 8 for shift in range(8)]
    assert not any(scenes.begins(picture) for picture in [pan[0]] * 10)
    assert scenes.begins(other)
    assert not any(scenes.begins(other) for _ in range(5))


def test_the_whole_sample_is_seen(tmp_path: Path) -> None:
    """The picture of the standing person spans what the truth says: about the crown's and the soles' rows."""
    track = track_person(SAMPLE, weights=require_networks())
    assert (track.width, track.height, track.start, track.notes) == (640, 640, 0.0, ())
    assert track.found.all()
    np.testing.assert_allclose(np.diff(track.times), np.diff(track.times)[0], rtol=1e-3)
    assert track.confidence.mean() > 0.8


def test_small_pictures_place_landmarks_in_the_full_picture(tmp_path: Path) -> None:
    """The same pictures at twice the size, read at a scale, give twice the pixels and the same metres."""
    import cv2

    weights = require_networks()
    pictures = person(20)
    large = [cv2.resize(picture, (2560, 2560), interpolation=cv2.INTER_CUBIC) for picture in pictures]
    fast = {"preset": "ultrafast", "crf": "18"}
    small = track_person(write_video(tmp_path / "a.mp4", pictures, options={"crf": "10"}), weights=weights)
    big = track_person(write_video(tmp_path / "b.mp4", large, options=fast), weights=weights)
    assert (big.width, big.height) == (2560, 2560)
    torso = [11, 12, 23, 24]
    difference = big.pixels[:, torso] / 4 - small.pixels[:, torso]
    assert np.abs(difference).mean() < 2.0
    assert np.abs(big.metric - small.metric).mean() < 0.03


def test_two_persons_the_larger_is_followed_and_it_is_said(tmp_path: Path) -> None:
    import cv2

    weights = require_networks()
    pictures = []
    for picture in person(20):
        small = cv2.resize(picture, (544, 544), interpolation=cv2.INTER_AREA)
        pictures.append(np.hstack([np.vstack([np.full((96, 544, 3), 128, np.uint8), small]), picture]))
    track = track_person(write_video(tmp_path / "a.mp4", pictures), weights=weights)
    assert np.nanmean(track.pixels[..., 0]) == pytest.approx(544 + 320, abs=60)
    assert len(track.notes) == 1
    assert track.notes[0].startswith(
        "2 persons are in the picture; the one followed was the largest when first seen: at x"
    )


def test_a_cut_splits_the_video_and_the_longer_part_is_used(tmp_path: Path) -> None:
    weights = require_networks()
    pictures = person(40)
    other = [255 - np.ascontiguousarray(picture[:, ::-1]) // 3 for picture in pictures[:18]]
    path = write_video(tmp_path / "a.mp4", [*other, *pictures])
    track = track_person(path, weights=weights)
    assert track.start == pytest.approx(18 / 30, abs=1e-6)
    assert len(track.times) == 40
    assert "cut at 0.60 s" in track.notes
    assert track.notes[-1].endswith("the longest, 0.60–1.90 s, is used; --from and --to choose another")
    first = track_person(path, weights=weights, end=0.58)
    assert first.start == 0.0
    assert first.times[-1] == pytest.approx(17 / 30, abs=1e-6)


def test_a_video_without_a_person_is_refused(tmp_path: Path) -> None:
    weights = require_networks()
    path = write_video(tmp_path / "a.mp4", noise(20))
    with pytest.raises(InputFileError, match=r"no person was found in 20 pictures from 0.00 to 0.63 s"):
        track_person(path, weights=weights)


def test_a_short_look_at_a_person_is_refused(tmp_path: Path) -> None:
    weights = require_networks()
    path = write_video(tmp_path / "a.mp4", person(8))
    with pytest.raises(InputFileError, match=r"too short: .* seen for 0.23 s, expected 0.5 s or more, in 8 pictures"):
        track_person(path, weights=weights)


def test_a_person_who_leaves_is_used_as_far_as_it_is_seen(tmp_path: Path) -> None:
    weights = require_networks()
    video = write_video(tmp_path / "a.mp4", [*person(20), *plain(40, 640, 640)])
    track = track_person(video, weights=weights)
    assert len(track.times) == 20
    assert "the person is seen in 0.00–0.63 s of 0.00–1.97 s only" in track.notes


def test_a_few_pictures_a_second_are_refused(tmp_path: Path) -> None:
    weights = require_networks()
    video = write_video(tmp_path / "a.mp4", person(4), rate=2)
    with pytest.raises(InputFileError, match=r"a\.mp4: 2 pictures/s; expected 5 or more"):
        track_person(video, weights=weights)


def test_times_that_the_video_does_not_have_are_refused(tmp_path: Path) -> None:
    weights = require_networks()
    path = write_video(tmp_path / "a.mp4", noise(6))
    with pytest.raises(InputFileError, match=r"from 3 s: the video is 0.2\d s long"):
        track_person(path, weights=weights, start=3.0)
    with pytest.raises(InputFileError, match="expected the end after the start"):
        track_person(path, weights=weights, start=0.1, end=0.1)
