"""The embedded estimator from file to motion: landmarks, an even frame rate, the lift, and what is told of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.motions.tables import Source
from asap_core.reconstruction.calibration import read_calibration
from asap_core.reconstruction.camera import Known
from asap_core.reconstruction.even_rate import at_even_rate, over_common_time
from asap_core.reconstruction.landmarks import LandmarkTrack
from asap_core.reconstruction.lift import Lift, lift
from asap_core.reconstruction.multiview import lift_views
from asap_core.reconstruction.tracker import Model, track_person
from asap_core.reconstruction.weights import FOLDER


@dataclass(frozen=True)
class Reconstruction:
    """A motion and what it was made from."""

    track: LandmarkTrack
    """Of the first video, at the motion's frame rate."""
    lift: Lift

    def to_json(self) -> dict[str, Any]:
        """What was given and what was estimated, how sure the result is, and what the user should know."""
        track, motion = self.track, self.lift.motion
        return {
            "source": motion.source.to_header(),
            "start_s": round(track.start, 4),
            "fps": motion.fps,
            "frames": motion.num_frames,
            "width": track.width,
            "height": track.height,
            "estimates": {name: asdict(estimate) for name, estimate in self.lift.estimates.items()},
            "confidence": round(float(self.lift.confidence.mean()), 4),
            "bridged_frames": _spans(np.flatnonzero(self.lift.bridged)),
            "notes": list(track.notes),
        }


@dataclass(frozen=True)
class Choice:
    """How videos are looked at."""

    model: Model = "full"
    weights: Path = FOLDER
    start: float | None = None
    """s from the first picture, where the motion begins."""
    end: float | None = None

    def track(self, video: Path) -> LandmarkTrack:
        """The person's landmarks at an even rate."""
        return at_even_rate(track_person(video, self.model, self.weights, self.start, self.end))


def reconstruct(video: Path, known: Known, choice: Choice, name: str, named: str) -> Reconstruction:
    """The motion `name` of the person in a video, which its user calls `named`; what is not known is estimated.

    Raises:
        InputFileError: no video, no person or too little of one; weights are missing.
        MissingPartError: the extra `video` is not installed.
        StageError: the lift finds no solution.
    """
    track = choice.track(video)
    source = Source(named, sha256_file(video), f"asap reconstruct, BlazePose {choice.model}")
    return Reconstruction(track, lift(track, known, name, source))


def reconstruct_views(
    videos: Sequence[Path], calibration: Path, known: Known, choice: Choice, name: str
) -> Reconstruction:
    """The motion `name` of the person whom several cameras see, one video each, which begin together.

    Raises:
        InputFileError: as `reconstruct`, or the calibration cannot be read.
        MissingPartError: the extra `video` is not installed.
        StageError: videos and calibration do not fit each other.
    """
    cameras = read_calibration(calibration)
    if len(videos) != len(cameras):
        named = ", ".join(camera.name for camera in cameras)
        raise InputFileError(calibration, f"holds {len(cameras)} cameras ({named}); found {len(videos)} videos")
    tracks = over_common_time([choice.track(video) for video in videos])
    notes = tuple(f"{video.name}: {note}" for video, track in zip(videos, tracks, strict=True) for note in track.notes)
    digest = hashlib.sha256("".join(sha256_file(video) for video in videos).encode()).hexdigest()
    tool = f"asap reconstruct, BlazePose {choice.model}, {len(videos)} cameras"
    source = Source(", ".join(str(video) for video in videos), digest, tool)
    return Reconstruction(replace(tracks[0], notes=notes), lift_views(tracks, cameras, known, name, source))


def _spans(frames: np.ndarray) -> list[list[int]]:
    """First and last of each run of consecutive numbers."""
    runs = np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1)
    return [[int(run[0]), int(run[-1])] for run in runs if len(run)]
