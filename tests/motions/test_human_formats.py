from __future__ import annotations

import pickle
import shutil
import warnings
from pathlib import Path
from typing import Any

import human_fixtures as made
import joblib
import numpy as np
import pytest
import torch

from asap_core.errors import InputFileError
from asap_core.motions.formats.clip import HumanClip
from asap_core.motions.formats.table import FORMATS, read_any, sniff
from asap_core.motions.frame_gaps import split_at_gaps
from asap_core.motions.ground_frame import to_human_motion
from asap_core.motions.skeleton import JOINT_NAMES

IDS = ("asap_smpl", "amass_smplh", "amass_smplx", "gvhmr", "wham", "tram", "bvh", "human_parquet")
FIRST_WHAM_FRAME = 5
ARM = ("Thorax", "Shoulder", "Elbow", "Wrist")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return made.human_fixtures(tmp_path_factory.mktemp("human"))


def _rows(clip: HumanClip) -> np.ndarray:
    if clip.frame_index is None:
        return np.arange(made.FRAMES)
    return clip.frame_index.astype(int) - (FIRST_WHAM_FRAME if clip.format == "wham" else 0)


def test_every_human_format_has_a_fixture(files: dict[str, Path]) -> None:
    assert set(files) == set(IDS) == {key for key, value in FORMATS.items() if value.kind == "human"}


@pytest.mark.parametrize("name", IDS)
def test_file_is_named_as_its_own_format_and_no_other(name: str, files: dict[str, Path]) -> None:
    candidates = sniff(files[name])
    assert [candidate.format.id for candidate in candidates] == [name]
    assert candidates[0].confidence >= 0.9


@pytest.mark.parametrize("name", IDS)
def test_joints_are_where_the_sample_has_them(name: str, files: dict[str, Path]) -> None:
    sample = made.sample()
    expected = made.expected_joints(sample)
    for clip in FORMATS[name].read(files[name]):
        assert isinstance(clip, HumanClip)
        assert clip.format == name
        for piece in split_at_gaps(clip):
            motion = to_human_motion(piece, fps=None if piece.fps else 30.0)
            assert motion.fps == 30.0
            np.testing.assert_allclose(motion.joint_positions(), expected[_rows(piece)], atol=2e-6)


@pytest.mark.parametrize("name", IDS)
def test_rotations_are_the_samples(name: str, files: dict[str, Path]) -> None:
    """BVH's collar twist depends on the zero pose: its bone directions are right, the arm's roll is 9° off at most."""
    sample = made.sample()
    wanted = sample.global_rotations()
    for clip in FORMATS[name].read(files[name]):
        for piece in split_at_gaps(clip):
            found = to_human_motion(piece, fps=30.0).global_rotations()
            cosine = (np.einsum("tjab,tjab->tj", found, wanted[_rows(piece)]) - 1) / 2
            angle = np.degrees(np.arccos(np.clip(cosine, -1, 1)))[:, :22]
            arms = [
                j for j, joint in enumerate(JOINT_NAMES[:22]) if joint[2:] in ("Thorax", "Shoulder", "Elbow", "Wrist")
            ]
            others = [j for j in range(22) if j not in arms]
            assert angle[:, others].max() < 0.1
            assert angle[:, arms].max() < (9.0 if name == "bvh" else 0.1)


@pytest.mark.parametrize("name", ["gvhmr", "wham", "tram"])
def test_video_estimators_store_no_rate_and_one_is_asked_for(name: str, files: dict[str, Path]) -> None:
    clip = read_any(files[name])[0]
    assert clip.fps is None
    piece = split_at_gaps(clip)[0]  # type: ignore[arg-type]
    with pytest.raises(InputFileError, match=r"fps: the file has none; give the rate of its video with --fps"):
        to_human_motion(piece)


@pytest.mark.parametrize("keep", [(10,), (16,), (1, 16), (made.FRAMES, 10)])
def test_c12_betas_of_every_layout_are_read(keep: tuple[int, ...], tmp_path: Path) -> None:
    betas = np.broadcast_to(np.linspace(-1, 2, keep[-1]), keep)
    made.write_asap_smpl(tmp_path / "clip.npz", made.sample(), betas=betas)
    clip = read_any(tmp_path / "clip.npz")[0]
    np.testing.assert_allclose(clip.betas, np.linspace(-1, 2, keep[-1]))  # type: ignore[union-attr]
    assert clip.notes == ()


def test_c12_betas_that_change_are_averaged_and_said(tmp_path: Path) -> None:
    betas = np.zeros((made.FRAMES, 10))
    betas[:, 2] = np.linspace(0, 1, made.FRAMES)
    made.write_asap_smpl(tmp_path / "clip.npz", made.sample(), betas=betas)
    clip = read_any(tmp_path / "clip.npz")[0]
    assert clip.betas[2] == pytest.approx(0.5)  # type: ignore[union-attr, index]
    assert "differing by up to 1; averaged" in clip.notes[0]


def test_c12_shape_without_motion_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "female_stagei.npz"
    np.savez(path, betas=np.zeros(16), gender="female", surface_model_type="smplx", num_betas=16)
    assert [candidate.format.id for candidate in sniff(path)] == ["amass_smplx"]
    with pytest.raises(InputFileError, match=r"female_stagei\.npz: shape only: found betas and no poses .*stageii"):
        read_any(path)


@pytest.mark.parametrize(("name", "rate"), [("amass_smplh", "mocap_framerate"), ("amass_smplx", "mocap_frame_rate")])
def test_c12_both_amass_layouts_give_the_same_motion(name: str, rate: str, files: dict[str, Path]) -> None:
    with np.load(files[name]) as archive:
        assert rate in archive.files
    clip = read_any(files[name])[0]
    np.testing.assert_allclose(clip.joint_rotations[:, :22], made.sample().joint_rotations[:, :22])  # type: ignore[union-attr]
    assert (clip.fps, clip.gender) == (30.0, {"amass_smplh": "female", "amass_smplx": "male"}[name])  # type: ignore[union-attr]


def test_c11_gvhmr_in_the_camera_alone_is_refused(tmp_path: Path) -> None:
    content = made.gvhmr_content(made.sample())
    torch.save({"smpl_params_incam": content["smpl_params_incam"]}, tmp_path / "a.pt")
    torch.save(content["smpl_params_incam"], tmp_path / "b.pt")
    for name in ("a.pt", "b.pt"):
        assert sniff(tmp_path / name)[0].format.id == "gvhmr"
        with pytest.raises(InputFileError, match=rf"{name}: .*camera's frame|its frame.*use smpl_params_global"):
            read_any(tmp_path / name)


def test_wham_without_a_world_is_refused(tmp_path: Path) -> None:
    people = made.wham_content(made.sample())
    for person in people.values():
        del person["pose_world"], person["trans_world"]
    joblib.dump(people, tmp_path / "wham_output.pkl")
    assert sniff(tmp_path / "wham_output.pkl")[0].format.id == "wham"
    with pytest.raises(InputFileError, match=r"person 0: pose_world: missing; .*camera's frame: use pose_world"):
        read_any(tmp_path / "wham_output.pkl")


def test_wham_names_each_person_and_keeps_the_frame_numbers(files: dict[str, Path]) -> None:
    first, second = FORMATS["wham"].read(files["wham"])
    assert (first.name, second.name) == ("wham_output_0", "wham_output_3")
    assert isinstance(second, HumanClip)
    np.testing.assert_array_equal(second.frame_index, np.r_[5:15, 20:65])


def test_wham_as_a_plain_pickle_reads_the_same(files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "w.pkl").write_bytes(pickle.dumps(made.wham_content(made.sample())))
    plain, joined = FORMATS["wham"].read(tmp_path / "w.pkl")[0], FORMATS["wham"].read(files["wham"])[0]
    np.testing.assert_array_equal(plain.root_translation, joined.root_translation)  # type: ignore[union-attr]


def test_tram_without_its_camera_is_refused_naming_the_file(files: dict[str, Path], tmp_path: Path) -> None:
    shutil.copy(files["tram"], tmp_path / "hps_track_0.npy")
    with pytest.raises(InputFileError, match=r"camera\.npy: missing beside it"):
        read_any(tmp_path / "hps_track_0.npy")


def test_tram_finds_its_camera_one_folder_up(files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "hps").mkdir()
    shutil.copy(files["tram"], tmp_path / "hps/hps_track_0.npy")
    shutil.copy(files["tram"].parent / "camera.npy", tmp_path / "camera.npy")
    moved, first = read_any(tmp_path / "hps/hps_track_0.npy")[0], read_any(files["tram"])[0]
    np.testing.assert_array_equal(moved.root_translation, first.root_translation)  # type: ignore[union-attr]


def test_tram_camera_that_is_too_short_is_refused(files: dict[str, Path], tmp_path: Path) -> None:
    shutil.copy(files["tram"], tmp_path / "hps_track_0.npy")
    camera = np.load(files["tram"].parent / "camera.npy", allow_pickle=True).item()
    short: Any = {key: value[:50] if key.startswith("world") else value for key, value in camera.items()}
    np.save(tmp_path / "camera.npy", np.array(short, dtype=object), allow_pickle=True)
    with pytest.raises(InputFileError, match=r"frame: found up to 59, expected one of the camera's 50"):
        read_any(tmp_path / "hps_track_0.npy")


class _Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("name", ["wham", "tram", "gvhmr"])
def test_code_in_a_pickle_is_never_run(name: str, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    content: Any = {"smpl_params_global": _Bomb(sprung), "pose_world": 0, "pred_rotmat": 0}
    path = tmp_path / "clip"
    if name == "gvhmr":
        torch.save(content, path)
    elif name == "tram":
        np.save(path.with_suffix(".npy"), np.array(content, dtype=object), allow_pickle=True)
        path = path.with_suffix(".npy")
    else:
        path.write_bytes(pickle.dumps(content))
    with pytest.raises(InputFileError, match="refused"):
        FORMATS[name].read(path)
    assert not sprung.exists()


@pytest.mark.parametrize("name", IDS)
def test_damage_ends_in_an_error_that_names_the_file(name: str, files: dict[str, Path], tmp_path: Path) -> None:
    """Cut at 10 places, and 30 times four bytes overwritten: a reader refuses or reads, and raises nothing else."""
    rng = np.random.default_rng(0)
    whole = files[name].read_bytes()
    path = tmp_path / files[name].name
    if name == "tram":
        shutil.copy(files[name].parent / "camera.npy", tmp_path / "camera.npy")
    refused = []
    for trial in range(40):
        content = bytearray(whole)
        if trial < 10:
            content = content[: len(whole) * trial // 10]
        else:
            start = int(rng.integers(0, min(len(whole), 4000)))
            content[start : start + 4] = rng.bytes(4)
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            FORMATS[name].sniff(path)
            try:
                FORMATS[name].read(path)
            except InputFileError as error:
                refused.append(error.path.parent)
    assert len(refused) >= 10
    assert set(refused) == {tmp_path}


def test_published_clips_are_all_read(shared_dir: Path) -> None:
    paths = sorted((shared_dir / "data/asap/smpl").glob("*.npz"))
    assert len(paths) == 39
    for path in paths:
        assert [candidate.format.id for candidate in sniff(path)] == ["asap_smpl"]
        motion = to_human_motion(read_any(path)[0])  # type: ignore[arg-type]
        assert motion.fps == 30.0
        assert 0.5 < np.median(motion.root_translation[:, 2]) < 1.1
