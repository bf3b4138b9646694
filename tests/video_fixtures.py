"""Small video files made by the tests, and the parts that tests of videos need."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
WEIGHTS = ROOT / ".asap" / "weights"
SAMPLE = ROOT / "data" / "human" / "person_squat.mp4"
Picture = NDArray[np.uint8]


def require_video() -> None:
    """Skip the test, or its module, where the extra is not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("av", "cv2", "ai_edge_litert")):
        pytest.skip("video extra absent (make video)", allow_module_level=True)


def require_networks() -> Path:
    """The folder of weights; the test is skipped where it is absent."""
    require_video()
    if not (WEIGHTS / "pose_landmark_full.tflite").is_file():
        pytest.skip("video extra absent: no weights (make video)")
    return WEIGHTS


def write_video(
    path: Path,
    pictures: Iterable[Picture],
    rate: int = 30,
    *,
    times: Sequence[float] | None = None,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    matrix: list[int] | None = None,
    aspect: Fraction | None = None,
    metadata: dict[str, str] | None = None,
    options: dict[str, str] | None = None,
    container_options: dict[str, str] | None = None,
) -> Path:
    """Write RGB pictures (h, w, 3) with even sides; `times` in s, or at `rate`."""
    import av

    with av.open(str(path), "w", options=container_options or {}) as out:
        out.metadata.update(metadata or {})
        stream: Any = None
        for number, picture in enumerate(pictures):
            if stream is None:
                stream = out.add_stream(codec, rate=rate, options={"g": "10", **(options or {})})
                stream.height, stream.width = picture.shape[:2]
                stream.pix_fmt = pix_fmt
                stream.codec_context.time_base = Fraction(1, 1000 if times else rate)
                if aspect is not None:
                    stream.codec_context.sample_aspect_ratio = aspect
                if matrix is not None:
                    stream.set_display_matrix(matrix)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format=pix_fmt, threads=1)
            frame.pts = round(times[number] * 1000) if times else number
            frame.time_base = stream.codec_context.time_base
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return path


def write_sound(path: Path) -> Path:
    """A tenth of a second of silence, and nothing else."""
    import av

    with av.open(str(path), "w") as out:
        stream = out.add_stream("aac", rate=48_000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 4800), dtype=np.float32), format="fltp", layout="mono")
        frame.sample_rate, frame.pts = 48_000, 0
        out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return path


def plain(count: int, height: int = 48, width: int = 64) -> list[Picture]:
    """Pictures whose grey tells their number."""
    return [np.full((height, width, 3), 20 + 2 * number, dtype=np.uint8) for number in range(count)]


def noise(count: int, height: int = 96, width: int = 128) -> list[Picture]:
    """Pictures that compress badly, so that a file has bytes to cut off."""
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (height, width, 3), dtype=np.uint8) for _ in range(count)]


def person(count: int, first: int = 0) -> list[Picture]:
    """Pictures of the project's sample video, 640 × 640."""
    from asap_core.reconstruction.video_file import probe, read_frames

    info = probe(SAMPLE)
    pictures = (frame.image for frame in read_frames(info, first / info.rate or None, None, []))
    return [picture for picture, _ in zip(pictures, range(count), strict=False)]
