from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asap_core.errors import InputFileError
from asap_core.motions.formats.amass import read_amass, write_amass

FRAMES = 5


def _fields(width: int = 72, **change: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    fields = {"poses": rng.normal(size=(FRAMES, width)), "trans": rng.normal(size=(FRAMES, 3)), "mocap_framerate": 30}
    return {key: value for key, value in (fields | change).items() if value is not None}


def _write(path: Path, **fields: Any) -> Path:
    np.savez(path, **fields)
    return path


def test_writer_and_reader_agree_and_bytes_repeat(tmp_path: Path) -> None:
    fields = _fields()
    for name in ("a.npz", "b.npz"):
        write_amass(tmp_path / name, fields["poses"], fields["trans"], 25.0)
    motion = read_amass(tmp_path / "a.npz")
    np.testing.assert_allclose(motion.joint_rotations.reshape(FRAMES, 72), fields["poses"], rtol=1e-6)
    np.testing.assert_allclose(motion.root_translation, fields["trans"], rtol=1e-6)
    assert (motion.name, motion.fps) == ("a", 25.0)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("width", [66, 156, 165])
def test_larger_models_give_their_body_and_no_fingers(tmp_path: Path, width: int) -> None:
    fields = _fields(width)
    motion = read_amass(_write(tmp_path / "a.npz", **fields))
    np.testing.assert_array_equal(motion.joint_rotations[:, :22].reshape(FRAMES, 66), fields["poses"][:, :66])
    assert not motion.joint_rotations[:, 22:].any()


def test_smplx_layout_is_read(tmp_path: Path) -> None:
    body, root = np.ones((FRAMES, 63)) * 0.1, np.ones((FRAMES, 3)) * 0.2
    rate = {"mocap_frame_rate": np.array([120.0])}
    path = _write(tmp_path / "a.npz", root_orient=root, pose_body=body, trans=np.zeros((FRAMES, 3)), **rate)
    motion = read_amass(path)
    assert motion.fps == 120.0
    np.testing.assert_array_equal(motion.joint_rotations[:, 0], root)
    np.testing.assert_array_equal(motion.joint_rotations[:, 1:22].reshape(FRAMES, 63), body)


class _Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return (Path.touch, (self.path,))


def test_pickled_fields_are_never_opened(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    gender = np.array([_Bomb(sprung)], dtype=object)
    assert read_amass(_write(tmp_path / "a.npz", **_fields(gender=gender))).num_frames == FRAMES
    with pytest.raises(InputFileError, match="trans: cannot be read"):
        read_amass(_write(tmp_path / "b.npz", **_fields(trans=gender)))
    (tmp_path / "c.npz").write_bytes(pickle.dumps(_Bomb(sprung)))
    with pytest.raises(InputFileError, match="not a whole npz file"):
        read_amass(tmp_path / "c.npz")
    assert not sprung.exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"poses": np.zeros((FRAMES, 71))}, r"poses: found shape \(5, 71\), expected \(T, one of 66, 72, 156, 165\)"),
        ({"poses": None}, r"poses \(or root_orient and pose_body\): missing; found trans, mocap_framerate"),
        ({"trans": None}, "trans: missing; found poses, mocap_framerate"),
        ({"trans": np.zeros((FRAMES - 1, 3))}, "trans: found 4 frames, expected 5"),
        ({"poses": np.full((FRAMES, 72), np.nan)}, "poses: found 360 NaN or infinite values"),
        ({"trans": np.full((FRAMES, 3), np.inf)}, "trans: found 15 NaN or infinite values"),
        ({"mocap_framerate": None}, "frame rate: missing; .* expected mocap_framerate or mocap_frame_rate"),
        ({"mocap_framerate": -30}, "mocap_framerate: found -30.0, expected frames per second from 1 to 1000"),
        ({"mocap_framerate": 1e9}, "mocap_framerate: found 1000000000.0, expected frames per second from 1 to 1000"),
        (
            {"poses": np.full((FRAMES, 72), 1e200)},
            "joint_rotations: found 1e.200 in frame 0, expected at most 1000 rad",
        ),
        ({"mocap_framerate": "fast"}, "mocap_framerate: found type <U4, expected numbers"),
        ({"poses": np.zeros((1, 72)), "trans": np.zeros((1, 3))}, "frames: found 1, expected at least 2"),
    ],
)
def test_wrong_fields_are_named(tmp_path: Path, change: dict, words: str) -> None:
    path = _write(tmp_path / "clip.npz", **_fields(**change))
    with pytest.raises(InputFileError, match=rf"clip\.npz: {words}"):
        read_amass(path)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9])
def test_truncated_file_is_refused(tmp_path: Path, part: float) -> None:
    path = _write(tmp_path / "clip.npz", **_fields())
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(InputFileError, match=r"clip\.npz: not a whole npz file"):
        read_amass(path)


def test_damaged_bytes_inside_are_refused(tmp_path: Path) -> None:
    path = _write(tmp_path / "clip.npz", **_fields())
    content = bytearray(path.read_bytes())
    content[1000:1010] = b"\0" * 10
    path.write_bytes(content)
    with pytest.raises(InputFileError, match=r"clip\.npz: poses: cannot be read"):
        read_amass(path)


@pytest.mark.parametrize(
    "member",
    [
        b"\x93NUMPY\x01\x00\x10\x00{'descr': ((((((\n",
        b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 72)}\n",
        b"no array at all",
    ],
)
def test_damaged_member_is_refused(tmp_path: Path, member: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "clip.npz", "w") as archive:
        archive.writestr("poses.npy", member)
    with pytest.raises(InputFileError, match=r"clip\.npz: poses: "):
        read_amass(tmp_path / "clip.npz")


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"gone\.npz: missing"):
        read_amass(tmp_path / "gone.npz")


def test_published_clips_stand_on_the_ground(shared_dir: Path) -> None:
    for path in sorted((shared_dir / "data/asap/smpl").glob("*level1*.npz")):
        motion = read_amass(path)
        assert motion.fps == 30.0
        assert 0.75 < np.percentile(motion.root_translation[:, 2], 50) < 1.0
