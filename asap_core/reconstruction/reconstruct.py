"""The embedded estimator from file to motion: landmarks, an even frame rate, the lift, and what is told of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.files import sha256_file
from asap_core.motions.tables import Source
from asap_core.reconstruction.camera import Known
from asap_core.reconstruction.even_rate import at_even_rate
from asap_core.reconstruction.landmarks import LandmarkTrack
from asap_core.reconstruction.lift import Lift, lift
from asap_core.reconstruction.tracker import Model, track_person
from asap_core.reconstruction.weights import FOLDER


@dataclass(frozen=True)
class Reconstruction:
    """A motion and what it was made from."""

    track: LandmarkTrack
    """At the motion's frame rate."""
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


def reconstruct(
    video: Path,
    known: Known,
    *,
    name: str,
    named: str,
    model: Model = "full",
    weights: Path = FOLDER,
    start: float | None = None,
    end: float | None = None,
) -> Reconstruction:
    """The motion of the person in a video.

    Args:
        video: the file.
        known: of the camera and the person; the rest is estimated.
        name: of the motion.
        named: the file as its user calls it.
        model: the landmark network.
        weights: folder of the networks' weights.
        start: s from the first picture, where the motion begins.
        end: s, where it ends.

    Raises:
        InputFileError: no video, no person or too little of one; weights are missing.
        MissingPartError: the extra `video` is not installed.
        StageError: the lift finds no solution.
    """
    track = at_even_rate(track_person(video, model, weights, start, end))
    source = Source(named, sha256_file(video), f"asap reconstruct, BlazePose {model}")
    return Reconstruction(track, lift(track, known, name, source))


def _spans(frames: np.ndarray) -> list[list[int]]:
    """First and last of each run of consecutive numbers."""
    runs = np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1)
    return [[int(run[0]), int(run[-1])] for run in runs if len(run)]
