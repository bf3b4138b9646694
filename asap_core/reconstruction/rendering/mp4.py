"""Frames into an H.264 mp4."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from asap_core.files import atomic_file
from asap_core.reconstruction.rendering.raster import Image

_OPTIONS = {"preset": "medium", "threads": "1"}


def write_mp4(frames: Iterable[Image], fps: float, path: Path, crf: int = 20) -> None:
    """Write RGB frames (H, W, 3) of even sides at a constant rate; `crf` 0 to 51, higher is smaller and worse."""
    import av

    with atomic_file(path) as partial, av.open(str(partial), "w", format="mp4") as container:
        stream = None
        for image in frames:
            if stream is None:
                rate = Fraction(fps).limit_denominator(1001)
                stream = container.add_stream("libx264", rate=rate, options=_OPTIONS | {"crf": str(crf)})
                stream.height, stream.width = image.shape[:2]
                stream.pix_fmt = "yuv420p"
            container.mux(
                stream.encode(
                    av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format=stream.pix_fmt, threads=1)
                )
            )
        if stream is not None:
            container.mux(stream.encode())
