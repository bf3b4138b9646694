"""One person through a video: detect, then follow from picture to picture, and choose the part that is used."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from asap_core.errors import InputFileError
from asap_core.progress import track
from asap_core.reconstruction.detector import Detector, Region
from asap_core.reconstruction.landmarks import LANDMARK_NAMES, LandmarkTrack
from asap_core.reconstruction.pose_network import Pose, PoseNetwork
from asap_core.reconstruction.prefetch import prefetched
from asap_core.reconstruction.video_file import Frame, Image, VideoInfo, probe, read_frames
from asap_core.reconstruction.weights import FOLDER

Model = Literal["full", "heavy"]
LONGEST_GAP = 1.0
"""s without the person that are bridged; a longer absence splits the video."""
SHORTEST = 0.5
"""s of the person that make a motion."""
_LEAST_SCORE = 0.5
LEAST_RATE = 5.0
"""Pictures/s; with fewer nobody can be followed from one to the next."""
_LEAST_SHARE = 0.5
"""Of the used pictures, those that must show the person."""
_LOOK_AROUND = 1.0
"""s between two counts of the persons in the picture."""
_FREE_STEP, _SPEED = 0.3, 3.0
"""A person moves this far at once, and this far per second, in sides of its square (about 2.4 m for a grown person)."""
_CUT_LEVEL, _CUT_RATIO = 0.12, 4.0
"""A scene ends where thumbnails differ by this mean share of the range, and by so many times the usual."""
_TORSO = [LANDMARK_NAMES.index(f"{side}_{joint}") for side in ("left", "right") for joint in ("shoulder", "hip")]


def track_person(
    path: Path | str,
    model: Model = "full",
    weights: Path = FOLDER,
    start: float | None = None,
    end: float | None = None,
) -> LandmarkTrack:
    """Landmarks of one person in a video, between `start` and `end` (s from its first picture) if they are given.

    Of several persons the one that is largest when first seen is followed. A cut, or a second without the person,
    splits the video; the part that shows the person longest is used, and `notes` of the result says so.

    Raises:
        InputFileError: no video, no person, or too little of one; a network's weights are missing.
        MissingPartError: the extra `video` is not installed.
    """
    info = probe(Path(path))
    _check_range(info, start, end)
    follower = Follower(Detector(weights), PoseNetwork(model, weights))
    seen = _Seen()
    notes: list[str] = []
    last = end if end is not None else info.duration or 0.0
    total = max(1, round((last - (start or 0.0)) * info.rate))
    with track("landmarks", total) as bar:
        for frame in prefetched(read_frames(info, start, end, notes)):
            seen.times.append(frame.time)
            seen.poses.append(follower.see(frame))
            if follower.cut:
                seen.cuts.append(len(seen.times) - 1)
            bar.advance()
    return _chosen(info, seen, follower, notes)


@dataclass
class _Seen:
    """What was seen in each picture."""

    times: list[float] = field(default_factory=list)
    poses: list[Pose | None] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    """Pictures that begin another scene."""


class Follower:
    """Follows one person from picture to picture."""

    def __init__(self, detector: Detector, network: PoseNetwork) -> None:
        self._detector = detector
        self._network = network
        self._region: Region | None = None
        self._last: Region | None = None
        self._last_time = -math.inf
        self._looked = -math.inf
        self._others: list[Region] = []
        """Where those were last seen who are not followed."""
        self._scenes = SceneChanges()
        self.persons = 0
        """The most persons that one picture showed."""
        self.cut = False
        """Whether the last picture begins another scene, or shows the person where nobody could have got to."""

    def see(self, frame: Frame) -> Pose | None:
        """The person's pose in the next picture, or None if it is not there."""
        self.cut = self._scenes.begins(frame.thumbnail)
        if self.cut or frame.time - self._last_time > LONGEST_GAP:
            self._region = self._last = None
            self._others = []
        pose = None
        if self._region is not None:
            pose = self._accepted(frame.image, self._region)
        if pose is None or frame.time - self._looked >= _LOOK_AROUND:
            regions = self._detector.find(frame.image)
            self.persons = max(self.persons, len(regions))
            self._looked = frame.time
            if pose is None:
                pose = self._found(frame, regions)
            self._others = self._strangers(regions, pose)
        self._region = None
        if pose is not None:
            self._region = self._last = pose.next_region
            self._last_time = frame.time
        return pose

    def _accepted(self, image: Image, region: Region) -> Pose | None:
        pose = self._network.look(image, region)
        return pose if pose.score >= _LEAST_SCORE else None

    def _found(self, frame: Frame, regions: list[Region]) -> Pose | None:
        """The pose of the first of the detected persons that can be the one followed."""
        last = self._last
        if last is None:
            regions = sorted(regions, key=lambda one: -one.size)
        else:
            regions = sorted(regions, key=lambda one: _distance(one, last))
        reach = (_FREE_STEP + _SPEED * (frame.time - self._last_time)) * last.size if last else math.inf
        for region in regions:
            near = last is None or _distance(region, last) <= reach
            if (not near and self.persons > 1) or self._is_stranger(region):
                continue
            pose = self._accepted(frame.image, region)
            if pose is not None:
                self.cut = self.cut or not near
                return pose
        return None

    def _is_stranger(self, region: Region) -> bool:
        """Whether a detected person is nearer to where another was than to where the one followed was."""
        last = self._last
        return last is not None and any(_distance(region, one) < _distance(region, last) for one in self._others)

    def _strangers(self, regions: list[Region], pose: Pose | None) -> list[Region]:
        """Those of the detected persons who are not the one followed, which is at `pose` or out of sight."""
        if pose is None:
            return [region for region in regions if self._is_stranger(region)] or self._others
        own = pose.next_region
        return [region for region in regions if _distance(region, own) > _FREE_STEP * own.size]


class SceneChanges:
    """Tells a cut from motion by the difference of thumbnails."""

    def __init__(self) -> None:
        self._before: Image | None = None
        self._usual: deque[float] = deque(maxlen=8)

    def begins(self, thumbnail: Image) -> bool:
        """Whether this picture begins another scene than the one before it."""
        import cv2

        before, self._before = self._before, thumbnail
        if before is None:
            return False
        change = float(cv2.absdiff(thumbnail, before).mean()) / 255
        usual = float(np.median(self._usual)) if self._usual else 0.0
        self._usual.append(change)
        return change > max(_CUT_LEVEL, _CUT_RATIO * usual)


def _distance(one: Region, other: Region) -> float:
    return math.hypot(one.x - other.x, one.y - other.y)


def _check_range(info: VideoInfo, start: float | None, end: float | None) -> None:
    if start is not None and end is not None and end <= start:
        raise InputFileError(info.path, f"from {start:g} s to {end:g} s: expected the end after the start")
    for name, value in (("from", start), ("to", end)):
        if value is not None and (value < 0 or not math.isfinite(value)):
            raise InputFileError(info.path, f"{name} {value:g} s: expected a time from 0")
    if start is not None and info.duration is not None and start >= info.duration:
        raise InputFileError(info.path, f"from {start:g} s: the video is {info.duration:.2f} s long")


def _chosen(info: VideoInfo, seen: _Seen, follower: Follower, notes: list[str]) -> LandmarkTrack:
    """The track of the part that shows the person longest, with what is to be said of it."""
    if not seen.times:
        raise InputFileError(info.path, "no picture can be read between the times that were asked for")
    parts = _parts(seen)
    where = f"{len(seen.times)} pictures from {seen.times[0]:.2f} to {seen.times[-1]:.2f} s"
    where = "; ".join((where, *notes))
    if not parts:
        raise InputFileError(info.path, f"no person was found in {where}")
    first, last = max(parts, key=lambda part: sum(pose is not None for pose in seen.poses[part[0] : part[1] + 1]))
    poses = seen.poses[first : last + 1]
    length = seen.times[last] - seen.times[first]
    if length < SHORTEST or len(poses) < 3:
        raise InputFileError(
            info.path, f"too short: a person is seen for {length:.2f} s, expected {SHORTEST:g} s or more, in {where}"
        )
    rate = 1 / float(np.median(np.diff(seen.times[first : last + 1])))
    if rate < LEAST_RATE:
        raise InputFileError(info.path, f"{rate:.3g} pictures/s; expected {LEAST_RATE:g} or more")
    share = sum(pose is not None for pose in poses) / len(poses)
    if share < _LEAST_SHARE:
        raise InputFileError(
            info.path,
            f"the person is seen in {share:.0%} of the pictures from {seen.times[first]:.2f} to {seen.times[last]:.2f} "
            f"s; expected {_LEAST_SHARE:.0%} or more",
        )
    return _record(info, seen, (first, last), [*notes, *_said(info, seen, parts, (first, last), follower.persons)])


def _parts(seen: _Seen) -> list[tuple[int, int]]:
    """First and last picture with the person of each part without a cut or a long absence."""
    parts: list[tuple[int, int]] = []
    scene_of = np.searchsorted(seen.cuts, np.arange(len(seen.times)), side="right")
    for number, pose in enumerate(seen.poses):
        if pose is None:
            continue
        before = parts[-1][1] if parts else None
        if (
            before is not None
            and scene_of[before] == scene_of[number]
            and seen.times[number] - seen.times[before] <= LONGEST_GAP
        ):
            parts[-1] = (parts[-1][0], number)
        else:
            parts.append((number, number))
    return parts


def _said(
    info: VideoInfo, seen: _Seen, parts: list[tuple[int, int]], chosen: tuple[int, int], persons: int
) -> list[str]:
    times = seen.times
    notes = []
    if persons > 1:
        pose = seen.poses[chosen[0]]
        assert pose is not None
        x, y = pose.pixels[_TORSO].mean(axis=0) * info.scale
        notes.append(
            f"{persons} persons are in the picture; the one followed was the largest when first seen: at x {x:.0f}, "
            f"y {y:.0f} px at {times[chosen[0]]:.2f} s"
        )
    if seen.cuts:
        notes.append(f"cut at {', '.join(f'{times[cut]:.2f}' for cut in seen.cuts[:10])} s")
    missing = (times[chosen[0]] - times[0]) + (times[-1] - times[chosen[1]])
    if len(parts) == 1 and missing > LONGEST_GAP:
        part = f"{times[chosen[0]]:.2f}–{times[chosen[1]]:.2f} s"
        notes.append(f"the person is seen in {part} of {times[0]:.2f}–{times[-1]:.2f} s only")
    if len(parts) > 1:
        spans = ", ".join(f"{times[first]:.2f}–{times[last]:.2f}" for first, last in parts[:10])
        notes.append(
            f"the person is seen in {len(parts)} parts ({spans} s); the longest, {times[chosen[0]]:.2f}–"
            f"{times[chosen[1]]:.2f} s, is used; --from and --to choose another"
        )
    return notes


def _record(info: VideoInfo, seen: _Seen, part: tuple[int, int], notes: list[str]) -> LandmarkTrack:
    chosen = slice(part[0], part[1] + 1)
    times, poses = np.array(seen.times[chosen]), seen.poses[chosen]
    count = len(LANDMARK_NAMES)
    pixels, metric = np.full((len(poses), count, 2), np.nan), np.full((len(poses), count, 3), np.nan)
    confidence = np.zeros((len(poses), count))
    for row, pose in enumerate(poses):
        if pose is not None:
            pixels[row], metric[row] = (pose.pixels + 0.5) * info.scale - 0.5, pose.metric
            confidence[row] = pose.confidence
    return LandmarkTrack(
        times=times - times[0],
        pixels=pixels,
        metric=metric,
        confidence=confidence,
        found=np.array([pose is not None for pose in poses]),
        width=info.width,
        height=info.height,
        focal=info.focal,
        start=float(times[0]),
        notes=tuple(notes),
    )
