"""Videos as phones and editors leave them: times, turned pictures, depth, damage."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from asap_core.errors import InputFileError
from asap_core.reconstruction.prefetch import prefetched
from asap_core.reconstruction.video_file import LONGEST_SIDE, Frame, VideoInfo, probe, read_frames
from tests.video_fixtures import noise, plain, require_video, write_sound, write_video

require_video()


def read(path: Path, start: float | None = None, end: float | None = None) -> tuple[VideoInfo, list[Frame], list[str]]:
    """Everything there is."""
    notes: list[str] = []
    info = probe(path)
    return info, list(read_frames(info, start, end, notes)), notes


def test_steady_video_is_read_whole(tmp_path: Path) -> None:
    info, frames, notes = read(write_video(tmp_path / "a.mp4", plain(20)))
    assert (info.width, info.height, info.rotation, info.rate, info.focal) == (64, 48, 0, 30.0, None)
    assert info.duration == pytest.approx(20 / 30, abs=1e-3)
    np.testing.assert_allclose([frame.time for frame in frames], np.arange(20) / 30, atol=1e-9)
    np.testing.assert_allclose([frame.image.mean() for frame in frames], 20 + 2 * np.arange(20), atol=2)
    assert notes == []


def test_variable_frame_rate_keeps_its_true_times(tmp_path: Path) -> None:
    times = [0.0, 0.033, 0.1, 0.133, 0.3, 0.333, 0.367]
    _, frames, _ = read(write_video(tmp_path / "a.mkv", plain(7), times=times))
    np.testing.assert_allclose([frame.time for frame in frames], times, atol=1e-9)


@pytest.mark.parametrize(
    ("matrix", "rotation", "corner"),
    [
        ((0, 1, -1, 0), 270, "top right"),
        ((-1, 0, 0, -1), 180, "bottom right"),
        ((0, -1, 1, 0), 90, "bottom left"),
    ],
)
def test_pictures_are_turned_as_the_file_says(
    tmp_path: Path, matrix: tuple[int, int, int, int], rotation: int, corner: str
) -> None:
    """ISO 14496-12, 8.3.2: (x, y) is shown at (a·x + c·y, b·x + d·y); the mark is stored in the top left corner."""
    picture = np.zeros((48, 96, 3), dtype=np.uint8)
    picture[:16, :16] = 255
    a, b, c, d = (65_536 * value for value in matrix)
    whole = [a, b, 0, c, d, 0, 0, 0, 1 << 30]
    info, frames, _ = read(write_video(tmp_path / "a.mp4", [picture] * 3, matrix=whole))
    turned = rotation != 180
    assert (info.width, info.height, info.rotation) == ((48, 96, rotation) if turned else (96, 48, rotation))
    image = frames[0].image.mean(axis=2)
    assert image.shape == (info.height, info.width)
    corners = {
        "top left": image[:12, :12],
        "top right": image[:12, -12:],
        "bottom left": image[-12:, :12],
        "bottom right": image[-12:, -12:],
    }
    assert {name for name, part in corners.items() if part.mean() > 200} == {corner}


def test_ten_bits_and_portrait(tmp_path: Path) -> None:
    pictures = [np.full((128, 72, 3), (200, 90, 40), dtype=np.uint8)] * 4
    path = write_video(tmp_path / "a.mkv", pictures, codec="ffv1", pix_fmt="yuv420p10le")
    info, frames, _ = read(path)
    assert (info.width, info.height) == (72, 128)
    np.testing.assert_allclose(frames[2].image.reshape(-1, 3), [[200, 90, 40]] * (72 * 128), atol=4)


def test_pixels_that_are_not_square(tmp_path: Path) -> None:
    info, frames, _ = read(write_video(tmp_path / "a.mkv", plain(3), aspect=Fraction(3, 2)))
    assert (info.width, info.height) == (96, 48)
    assert frames[0].image.shape == (48, 96, 3)


def test_large_pictures_are_made_smaller_as_they_are_read(tmp_path: Path) -> None:
    info, frames, _ = read(write_video(tmp_path / "a.mp4", plain(2, 2160, 3840), options={"preset": "ultrafast"}))
    assert (info.width, info.height, info.scale) == (3840, 2160, 2.0)
    assert frames[0].image.shape == (1080, LONGEST_SIDE, 3)


def test_few_pictures_are_in_memory_at_a_time() -> None:
    class Item:
        pass

    alive: weakref.WeakSet[Item] = weakref.WeakSet()
    most = 0

    def source() -> Iterator[Item]:
        for _ in range(50):
            item = Item()
            alive.add(item)
            yield item
            del item

    for _ in prefetched(source(), depth=2):
        gc.collect()
        most = max(most, len(alive))
    assert 2 <= most <= 5


def test_error_of_the_source_comes_where_its_item_would() -> None:
    def source() -> Iterator[int]:
        yield 1
        yield 2
        raise InputFileError("a.mp4", "broken")

    ahead = prefetched(source())
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(InputFileError, match="broken"):
        next(ahead)


def test_slow_motion_is_thinned_out_to_sixty_pictures_a_second(tmp_path: Path) -> None:
    info, frames, notes = read(write_video(tmp_path / "a.mp4", plain(60), rate=240))
    assert info.rate == 240
    np.testing.assert_allclose(np.diff([frame.time for frame in frames]), 1 / 60, atol=1e-6)
    assert notes == ["15 of 60 pictures are used, at most 60 per second"]


def test_part_of_a_video(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", plain(60))
    _, frames, notes = read(path, 0.5, 1.0)
    np.testing.assert_allclose([frame.time for frame in frames], np.arange(15, 31) / 30, atol=1e-9)
    np.testing.assert_allclose(frames[0].image.mean(), 50, atol=2)
    assert notes == []


def test_focal_length_comes_from_a_35_mm_equivalent(tmp_path: Path) -> None:
    """26 mm of 43.27 mm diagonal, on a picture whose diagonal is 80 px."""
    info, _, _ = read(
        write_video(
            tmp_path / "a.mov",
            plain(3),
            metadata={"com.apple.quicktime.camera.focal_length.35mm_equivalent": "26"},
            container_options={"movflags": "use_metadata_tags"},
        )
    )
    assert info.focal == pytest.approx(26 / 43.27 * 80, rel=1e-3)


def test_file_cut_off_in_the_middle_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", noise(60), container_options={"movflags": "faststart"})
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * 0.6)])
    _, frames, notes = read(path)
    assert 25 <= len(frames) <= 40
    assert any(
        note.startswith("the file breaks off at 1.") and note.endswith("what can be read is used") for note in notes
    )


def test_damage_in_the_middle_leaves_pictures_out_and_says_so(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mkv", noise(60))
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 20_000] = bytes(20_000)
    path.write_bytes(content)
    _, frames, notes = read(path)
    times = np.array([frame.time for frame in frames])
    assert np.all(np.diff(times) > 0)
    assert 30 <= len(frames) < 60
    assert "damaged pictures were left out" in " ".join(notes)


def test_sound_only_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="holds no video: found audio only"):
        probe(write_sound(tmp_path / "a.m4a"))


def test_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.touch()
    with pytest.raises(InputFileError, match="empty: 0 bytes, expected a video"):
        probe(path)


@pytest.mark.parametrize("content", [b"hello\n" * 1000, bytes(range(256)) * 100])
def test_what_is_no_video_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(content)
    with pytest.raises(InputFileError, match="no video that can be read"):
        probe(path)


def test_file_without_its_index_is_refused(tmp_path: Path) -> None:
    """An mp4 whose index lies at its end, cut off: what a phone leaves that ran out of power."""
    path = write_video(tmp_path / "a.mp4", noise(30))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputFileError, match="no video that can be read"):
        probe(path)


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="missing"):
        probe(tmp_path / "none.mp4")
    with pytest.raises(InputFileError, match="a folder, expected a video file"):
        probe(tmp_path)
