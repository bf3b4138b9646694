"""A video file as upright RGB pictures with their true times, a few in memory at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError, MissingPartError
from asap_core.files import is_folder
from asap_core.reconstruction.network import MISSING

VIDEO_SUFFIXES = (".mp4", ".mov", ".mkv", ".webm", ".avi", ".m4v")
"""Of clips that a project names without suffix."""
LONGEST_SIDE = 1920
"""px; larger pictures are made smaller as they are decoded."""
MOST_FRAMES_PER_S = 60.0
"""Of a faster video, such as slow motion, only so many frames are used."""
_THUMBNAIL = (32, 18)
_FULL_FRAME_DIAGONAL = 43.27
"""mm of the 36 × 24 mm frame that equivalent focal lengths refer to."""
_ENDS_EARLY = 0.25
"""s by which a file may end before the time that its header promises."""

_MOST_DAMAGE = 1000
"""Packets that cannot be decoded, after which reading ends."""

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class VideoInfo:
    """What a file's header and first picture say."""

    path: Path
    width: int
    """px of the picture as it is shown: turned as the file says, pixels square."""
    height: int
    rotation: int
    """degrees that stored pictures are turned counterclockwise to be shown: 0, 90, 180 or 270."""
    rate: float
    """Frames/s, the mean that the header gives; 30 if it gives none."""
    duration: float | None
    """s, if the header gives it."""
    first: float
    """s of the first picture on the file's own clock."""
    focal: float | None
    """px of the shown picture, if the metadata give a 35 mm equivalent."""

    @property
    def scale(self) -> float:
        """px of the picture as shown for each px of `Frame.image`."""
        return max(1.0, max(self.width, self.height) / LONGEST_SIDE)


@dataclass(frozen=True)
class Frame:
    """One picture."""

    time: float
    """s from the file's first picture."""
    image: Image
    """(h, w, 3) RGB, upright, the longest side at most `LONGEST_SIDE`."""
    thumbnail: Image
    """(18, 32, 3), to tell scenes apart."""


def probe(path: Path) -> VideoInfo:
    """Open a file and decode its first picture.

    Raises:
        InputFileError: missing, empty, no video, sound only, or without one picture that can be decoded.
        MissingPartError: the extra `video` is not installed.
    """
    with _opened(path) as (container, stream):
        frame = next(_decoded(container, stream, []), None)
        if frame is None:
            raise InputFileError(path, "damaged: not one picture can be decoded")
        aspect = stream.sample_aspect_ratio
        width, height = max(1, round(frame.width * float(aspect or 1))), frame.height
        rotation = round(frame.rotation / 90) * 90 % 360
        if rotation in (90, 270):
            width, height = height, width
        rate = stream.average_rate or stream.guessed_rate
        ticks = stream.duration
        duration = ticks * stream.time_base if ticks else container.duration / 1e6 if container.duration else None
        return VideoInfo(
            path=path,
            width=width,
            height=height,
            rotation=rotation,
            rate=float(rate) if rate else 30.0,
            duration=None if duration is None else float(duration),
            first=frame.time if frame.pts is not None else 0.0,
            focal=_focal({**container.metadata, **stream.metadata}, math.hypot(width, height)),
        )


def read_frames(info: VideoInfo, start: float | None, end: float | None, notes: list[str]) -> Iterator[Frame]:
    """The pictures from `start` to `end`, s from the file's first; all if not given. Times strictly increase.

    What is damaged is left out; `notes` says so in the end.
    """
    least = 1 / MOST_FRAMES_PER_S * (1 - 1 / 8)
    damaged: list[float] = []
    last, passed_over, used = -math.inf, 0, 0
    time = -1 / info.rate
    with _opened(info.path) as (container, stream):
        if start:
            with suppress(OSError, ValueError):
                container.seek(int((start + info.first) / stream.time_base), stream=stream)
        for frame in _decoded(container, stream, damaged):
            time = time + 1 / info.rate if frame.pts is None else frame.time - info.first
            if end is not None and time > end:
                break
            if time < (start or 0.0) - 1e-6 or time <= last:
                continue
            if time - last < least:
                passed_over += 1
                continue
            last, used = time, used + 1
            yield _upright(frame, time, info)
        else:
            if info.duration is not None and end is None and time + 1 / info.rate < info.duration - _ENDS_EARLY:
                notes.append(f"the file breaks off at {time:.2f} s of {info.duration:.2f} s; what can be read is used")
    wanted = [at - info.first for at in damaged if start is None or at - info.first >= start]
    if wanted:
        notes.append(f"{len(wanted)} damaged pictures were left out, the first after {wanted[0]:.2f} s")
    if passed_over:
        notes.append(f"{used} of {used + passed_over} pictures are used, at most {MOST_FRAMES_PER_S:g} per second")


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    try:
        import av
    except ImportError:
        raise MissingPartError(f"av {MISSING}") from None
    if is_folder(path):
        raise InputFileError(path, "a folder, expected a video file")
    if path.stat().st_size == 0:
        raise InputFileError(path, "empty: 0 bytes, expected a video")
    try:
        container = av.open(f"file:{path}", options={"protocol_whitelist": "file"})
    except (av.FFmpegError, OSError, ValueError) as error:
        raise InputFileError(path, f"no video that can be read: {getattr(error, 'strerror', None) or error}") from None
    with container:
        streams = [one for one in container.streams.video if not one.disposition & one.disposition.attached_pic]
        if not streams:
            kinds = ", ".join(sorted({one.type for one in container.streams})) or "no stream"
            raise InputFileError(path, f"holds no video: found {kinds} only")
        streams[0].thread_type = "AUTO"
        yield container, streams[0]


def _decoded(container: Any, stream: Any, damaged: list[float]) -> Iterator[Any]:
    """Pictures in the order they are shown; damaged ones are left out, and `damaged` gets the time before each."""
    import av

    last = 0.0
    packets = container.demux(stream)
    while True:
        try:
            packet = next(packets, None)
            frames = [] if packet is None else packet.decode()
        except av.EOFError:
            return
        except av.FFmpegError:
            damaged.append(last)
            if len(damaged) > _MOST_DAMAGE:
                return
            continue
        if packet is None:
            return
        for frame in frames:
            last = frame.time if frame.pts is not None else last
            if frame.is_corrupt:
                damaged.append(last)
            else:
                yield frame


def _upright(frame: Any, time: float, info: VideoInfo) -> Frame:
    import cv2

    width, height = round(info.width / info.scale), round(info.height / info.scale)
    if info.rotation in (90, 270):
        width, height = height, width
    # Scaled before it becomes RGB, which is three times as fast as both at once. On one thread: where libswscale's
    # threads meet, one may write past the end of its last row into the other's first pixels.
    small = frame.reformat(width=width, height=height, format="yuv420p", interpolation="BILINEAR", threads=1)
    image = small.reformat(format="rgb24", threads=1).to_ndarray()
    if info.rotation:
        turns = {90: cv2.ROTATE_90_COUNTERCLOCKWISE, 180: cv2.ROTATE_180, 270: cv2.ROTATE_90_CLOCKWISE}
        image = cv2.rotate(image, turns[info.rotation])
    sparse = image[:: max(1, image.shape[0] // 144), :: max(1, image.shape[1] // 256)]
    return Frame(time, image, cv2.resize(sparse, _THUMBNAIL, interpolation=cv2.INTER_AREA))


def _focal(metadata: dict[str, str], diagonal: float) -> float | None:
    """px, from a 35 mm equivalent as phones write it; it compares diagonals (CIPA DC-001)."""
    for key, value in metadata.items():
        if key.lower().endswith(("focal_length.35mm_equivalent", "focallengthin35mmformat", "focallengthin35mmfilm")):
            with suppress(ValueError):
                equivalent = float(value.split()[0])
                if 5 <= equivalent <= 1000:
                    return equivalent / _FULL_FRAME_DIAGONAL * diagonal
    return None
