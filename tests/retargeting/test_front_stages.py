"""The stages reconstruct, screen and retarget on a project of their own."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from asap_core.config import MotionsSettings, Params, load_params
from asap_core.errors import InputFileError, StageError
from asap_core.files import read_json, sha256_tree, write_json
from asap_core.motions.formats.amass import write_amass
from asap_core.motions.human import HumanMotion
from asap_core.motions.robot import RobotMotion
from tasks import reconstruct, retarget, screen


@pytest.fixture
def root(tmp_path: Path, repo_root: Path) -> Path:
    shutil.copytree(repo_root / "data/human", tmp_path / "data/human")
    return tmp_path


def _params(repo_root: Path, *names: str) -> Params:
    motions = MotionsSettings(source="data/human", names=names, train=names[0])
    return load_params(repo_root / "params.yaml").model_copy(update={"motions": motions})


def _run_all(params: Params, root: Path) -> dict[str, float | int | str]:
    reconstruct.run(params, root)
    screen.run(params, root)
    return retarget.run(params, root)


def test_batch_goes_through_and_leaves_out_what_is_broken(
    root: Path, repo_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    human = root / "data/human"
    (human / "half.npz").write_bytes((human / "squat.npz").read_bytes()[:1500])
    with np.load(human / "kick.npz") as clip:
        write_amass(human / "floats.npz", clip["poses"], clip["trans"] + [0, 0, 0.5], 30.0)
    figures = _run_all(_params(repo_root, "squat", "half", "kick", "floats", "gone"), root)
    assert (figures["motions"], figures["left_out"]) == (2, 3)
    report = read_json(root / "data/retargeted/report.json")
    assert set(report["motions"]) == {"squat", "kick"}
    assert "half.npz: not a whole npz file" in report["left_out"]["half"]
    assert report["left_out"]["floats"].startswith("float: found 1.00, limit 0.15 of the frames")
    assert "data/human/gone.npz: missing; found in data/human: floats, half, kick" in report["left_out"]["gone"]
    assert str(root) not in str(report)
    said = capsys.readouterr().err
    assert "reconstruct: left out gone: data/human/gone.npz: missing" in said
    assert said.count("left out half") == 1
    screened = HumanMotion.load(root / "data/screened/kick.parquet")
    assert screened.screening is not None
    assert screened.screening["accepted"] is True
    motion = RobotMotion.load(root / "data/retargeted/squat.parquet")
    assert (motion.robot, motion.num_frames, motion.source.path) == ("g1_23dof", 103, "data/human/squat.npz")


def test_second_run_gives_the_same_bytes_from_the_store(root: Path, repo_root: Path) -> None:
    params = _params(repo_root, "squat", "side_step")
    folders = ("reconstructed", "screened", "retargeted")
    _run_all(params, root)
    first = [sha256_tree(root / "data" / folder) for folder in folders]
    for folder in folders:
        shutil.rmtree(root / "data" / folder)
    entries = sorted((root / ".asap/store").glob("*/*"))
    stamps = [entry.stat().st_mtime_ns for entry in entries]
    _run_all(params, root)
    assert [sha256_tree(root / "data" / folder) for folder in folders] == first
    assert sorted((root / ".asap/store").glob("*/*")) == entries
    assert [entry.stat().st_mtime_ns for entry in entries] == stamps


def test_one_changed_motion_recomputes_alone(root: Path, repo_root: Path) -> None:
    params = _params(repo_root, "squat", "kick")
    _run_all(params, root)
    before = set((root / ".asap/store").glob("*/*"))
    with np.load(root / "data/human/kick.npz") as clip:
        write_amass(root / "data/human/kick.npz", clip["poses"][5:], clip["trans"][5:], 30.0)
    _run_all(params, root)
    assert len(set((root / ".asap/store").glob("*/*")) - before) == 3


def test_stage_stops_if_the_motion_to_train_is_left_out(root: Path, repo_root: Path) -> None:
    with np.load(root / "data/human/squat.npz") as clip:
        write_amass(root / "data/human/squat.npz", clip["poses"], clip["trans"] + [0, 0, 0.5], 30.0)
    params = _params(repo_root, "squat", "kick")
    reconstruct.run(params, root)
    with pytest.raises(StageError, match=r"screen: motion 'squat' \(motions.train\) was left out(.|\n)*squat: float"):
        screen.run(params, root)
    assert not (root / "data/screened").exists()


def test_stage_stops_if_nothing_is_left(root: Path, repo_root: Path) -> None:
    with pytest.raises(StageError, match=r"reconstruct: no motion is left(.|\n)*gone: data/human/gone.npz: missing"):
        reconstruct.run(_params(repo_root, "gone"), root)
    assert not (root / "data/reconstructed").exists()


def test_stage_without_the_one_before_names_the_file(root: Path, repo_root: Path) -> None:
    with pytest.raises(InputFileError, match=r"screened/report.json: missing"):
        retarget.run(_params(repo_root, "squat"), root)


def test_store_that_cannot_be_written_stops_the_stage_instead_of_leaving_clips_out(root: Path, repo_root: Path) -> None:
    params = _params(repo_root, "squat", "kick")
    (root / ".asap").write_text("in the way")
    with pytest.raises(StageError, match=r"store.*: cannot be written: Not a directory"):
        reconstruct.run(params, root)
    assert not (root / "data/reconstructed").exists()
    (root / ".asap").unlink()
    assert reconstruct.run(params, root)["motions"] == 2


def test_report_of_another_shape_is_named(root: Path, repo_root: Path) -> None:
    write_json(root / "data/screened/report.json", {"motions": []})
    with pytest.raises(InputFileError, match="field motions: found list, expected an object"):
        retarget.run(_params(repo_root, "squat"), root)


def test_file_in_place_of_the_output_gives_way(root: Path, repo_root: Path) -> None:
    (root / "data/reconstructed").write_text("in the way")
    assert reconstruct.run(_params(repo_root, "squat"), root)["motions"] == 1
    assert sorted(path.name for path in (root / "data").iterdir()) == ["human", "reconstructed"]
