"""A video to look at before one trusts: the motion drawn over the pictures, and two views of it beside them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np

from asap_core.files import atomic_file
from asap_core.progress import track as progress
from asap_core.reconstruction.drawing import draw_bones, side_views, titles
from asap_core.reconstruction.prefetch import prefetched
from asap_core.reconstruction.reconstruct import Reconstruction
from asap_core.reconstruction.video_file import Image, probe, read_frames
from asap_core.rotations import Array

_MOST_HEIGHT = 720
"""px."""
_TICKS = 90_000
"""Of the clock, per second; any rate and irregular times fit."""
_DOT = (255, 230, 0)
_QUALITY = {"crf": "23", "preset": "veryfast"}


def write_overlay(video: Path, made: Reconstruction, destination: Path) -> None:
    """Write an H.264 mp4 at the video's own times: yellow dots are what the network saw, coloured lines
    the motion (beside the picture only, if several cameras were used)."""
    import av

    info = probe(video)
    track, lifted = made.track, made.lift
    positions = lifted.motion.joint_positions()
    camera = lifted.camera
    projected = None if camera is None else camera.project(camera.seen(positions))
    end = track.start + float(track.times[-1])
    frames = read_frames(info, track.start, end + 1e-6, [])
    with (
        atomic_file(destination) as partial,
        av.open(str(partial), "w", format="mp4") as out,
        progress("overlay", len(track.times)) as bar,
    ):
        stream = None
        for frame in prefetched(frames):
            at = int(np.argmin(np.abs(track.times - (frame.time - track.start))))
            bridged = bool(lifted.bridged[at])
            dots = track.pixels[at][track.confidence[at] > 0.5]
            picture = _picture(frame.image, info.scale, dots)
            if projected is not None:
                draw_bones(
                    picture, projected[at] * picture.shape[0] / info.height, bridged, max(2, picture.shape[0] // 240)
                )
            views = side_views(positions[at], bridged, picture.shape[0] // 2, titles(camera is not None))
            picture = np.hstack([picture, views])
            if stream is None:
                stream = out.add_stream("libx264", rate=round(lifted.motion.fps), options=_QUALITY)
                stream.height, stream.width = picture.shape[:2]
                stream.pix_fmt = "yuv420p"
                stream.codec_context.time_base = Fraction(1, _TICKS)
            shown = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="yuv420p", threads=1)
            shown.pts, shown.time_base = round((frame.time - track.start) * _TICKS), Fraction(1, _TICKS)
            out.mux(stream.encode(shown))
            bar.advance()
        if stream is not None:
            out.mux(stream.encode())


def _picture(image: Image, scale: float, dots: Array) -> Image:
    """The picture at most 720 px high, its sides multiples of four, with dots (N, 2), px of the full image."""
    import cv2

    shrink = min(1.0, _MOST_HEIGHT / image.shape[0])
    height, width = (max(4, round(side * shrink / 4) * 4) for side in image.shape[:2])
    drawn = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    to_picture = np.array([width / image.shape[1], height / image.shape[0]]) / scale
    for x, y in dots * to_picture:
        cv2.circle(drawn, (round(x), round(y)), max(2, height // 300), _DOT, -1, cv2.LINE_AA)
    return drawn
