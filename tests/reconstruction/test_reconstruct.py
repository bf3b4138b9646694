"""From a video to a motion: the command, the stage, what they write and say."""

from __future__ import annotations

import json
import math
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from asap_core.config import MotionsSettings, Params, load_params
from asap_core.errors import ConfigError, StageError
from asap_core.files import read_json, write_json
from asap_core.motions.human import HumanMotion
from asap_core.reconstruction.settings import ReconstructSettings
from flows import cli
from tasks import reconstruct
from tasks.summary import left_out_clips
from tests.video_fixtures import SAMPLE, require_networks, write_sound


def params_of(repo_root: Path, *names: str, **clips: dict[str, float]) -> Params:
    motions = MotionsSettings(source="data/human", names=names, train=names[0])
    settings = ReconstructSettings.model_validate({"clips": clips})
    return load_params(repo_root / "params.yaml").model_copy(update={"motions": motions, "reconstruct": settings})


@pytest.fixture
def root(tmp_path: Path, repo_root: Path) -> Path:
    """A project with the shipped clips and, where they are, the weights."""
    shutil.copytree(repo_root / "data/human", tmp_path / "data/human")
    weights = repo_root / ".asap" / "weights"
    if weights.is_dir():
        shutil.copytree(weights, tmp_path / ".asap" / "weights")
    return tmp_path


def asap(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code and what is printed."""
    monkeypatch.setattr(sys, "argv", ["asap", *arguments])
    code = 0
    try:
        cli.main()
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_command_writes_motion_estimates_and_pictures(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its last second: what is given is taken as it is, the rest is said to be estimated."""
    require_networks()
    import av

    destination = root / "out" / "a.parquet"
    known = ("--camera-height", "1.2", "--pitch", str(math.degrees(0.09)), "--height", "1.74")
    code, out, _ = asap(
        monkeypatch, capsys, "reconstruct", str(SAMPLE), "-o", str(destination), "--root", str(root), *known,
        "--from", "3.5", "--to", "4.5",
    )  # fmt: skip
    assert code == 0
    assert f"wrote {destination}" in out
    motion = HumanMotion.load(destination)
    assert (motion.name, motion.fps, motion.num_frames) == ("a", pytest.approx(30), 31)
    assert motion.confidence is not None
    about = read_json(destination.with_suffix(".estimates.json"))
    estimates = about["estimates"]
    assert estimates["camera_height"] == {"value": pytest.approx(1.2, abs=1e-3), "unit": "m", "origin": "given"}
    assert estimates["pitch"]["origin"] == "given"
    assert estimates["person_height"] == {"value": pytest.approx(1.74, abs=1e-3), "unit": "m", "origin": "given"}
    assert estimates["focal"]["origin"] == "estimated"
    assert (about["start_s"], about["bridged_frames"], about["notes"]) == (3.5, [], [])
    with av.open(str(destination.with_suffix(".overlay.mp4"))) as video:
        stream = video.streams.video[0]
        frames = [frame.time for frame in video.decode(stream)]
        assert (stream.codec_context.name, stream.width, stream.height) == ("h264", 640 + 320, 640)
    np.testing.assert_allclose(frames, np.arange(31) / 30, atol=1e-4)
    assert destination.with_suffix(".preview.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_of_an_earlier_motion_do_not_stay_beside_another(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that rich would take for a colour is printed as it is."""
    require_networks()
    destination = root / "a [red].parquet"
    destination.with_suffix(".overlay.mp4").write_bytes(b"of another video")
    options = ("--no-pictures", "--from", "3.9", "-o", str(destination), "--root", str(root))
    code, out, _ = asap(monkeypatch, capsys, "reconstruct", str(SAMPLE), *options)
    assert code == 0
    assert "a [red]: " in out
    left = sorted(path.name for path in root.glob("a*"))
    assert left == ["a [red].estimates.json", "a [red].parquet"]


def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.parquet").mkdir()
    (tmp_path / "file").touch()
    for output, text in (
        ("a.parquet", "a.parquet: a folder, expected the name of a file to write"),
        ("file/b.parquet", "file: the folder cannot be made"),
    ):
        code, _, err = asap(monkeypatch, capsys, "reconstruct", "missing.mp4", "-o", str(tmp_path / output))
        assert code == 1
        assert text in err


@pytest.mark.parametrize("name", ["hmr4d_results.pt", "wham_output.pkl", "hps_track_0.npy"])
def test_a_damaged_result_of_another_estimator_is_not_taken_for_a_video(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / name).write_bytes(b"PK\x03\x04 and no more")
    code, _, err = asap(monkeypatch, capsys, "reconstruct", str(tmp_path / name), "--fps", "30")
    assert code == 1
    assert f"{name}: no whole result of tram, gvhmr, wham: damaged, or another file" in err


def test_standing_person_is_placed_where_the_truth_says(root: Path, repo_root: Path) -> None:
    """The sample's last half second, its camera's height and the focal length given: pelvis and feet within 15 cm."""
    weights = require_networks()
    from asap_core.reconstruction.camera import Known
    from asap_core.reconstruction.reconstruct import Choice
    from asap_core.reconstruction.reconstruct import reconstruct as run

    scene = json.loads((repo_root / "data/video/person_squat.truth.json").read_text())
    truth = HumanMotion.load(repo_root / "data/video/person_squat.truth.parquet").joint_positions()
    known = Known(scene["camera"]["focal"], scene["camera"]["pitch"], scene["camera"]["height"], scene["person_height"])
    made = run(SAMPLE, known, Choice(weights=weights, start=4.1), "a", "a.mp4")
    places = made.lift.motion.joint_positions()
    joints = [0, 7, 8]
    off = np.linalg.norm(places[:, joints] - truth[-len(places) :, joints], axis=-1)
    assert off.mean() < 0.15


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--output", "a.npz"), "expected a name that ends in .parquet"),
        (("--camera-height", "-3"), "camera_height: found -3, expected 0.05 to 50 m"),
        (("--calibration", "c.toml", "--focal", "700"), "leave out --focal, --pitch and --camera-height"),
        (("b.mp4",), "2 videos: expected one, or --calibration with the cameras of all"),
        (("--fps", "30"), "--fps: not used by the embedded estimator"),
        (("--with", "tram", "--height", "1.7", "--to", "0"), "--height, --to: not used by --with"),
        (("--with", "a/b"), "unknown estimator 'a/b'; valid: gvhmr, tram, wham"),
        (("--with", ""), "unknown estimator ''; valid: gvhmr, tram, wham"),
        (("--pitch", "95"), "pitch: found 1.65806 (95°), expected -1.4 to 1.4 rad"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], text: str
) -> None:
    code, _, err = asap(monkeypatch, capsys, "reconstruct", "a.mp4", *arguments)
    assert code == 1
    assert text in err
    assert "Traceback" not in err


def test_stage_takes_videos_beside_clips_and_keeps_them(
    root: Path, repo_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_networks()
    clip = {"camera_height": 1.2, "start": 3.5, "end": 4.5}
    params = params_of(repo_root, "squat", "person_squat", person_squat=clip)
    assert reconstruct.run(params, root) == {"motions": 2, "left_out": 0, "frames": 103 + 31}
    manifest = read_json(root / "data/reconstructed/manifest.json")
    video = manifest["motions"]["person_squat"]
    assert video["source"]["path"] == "data/human/person_squat.mp4"
    assert video["video"]["estimates"]["camera_height"]["origin"] == "given"
    assert "video" not in manifest["motions"]["squat"]
    assert str(root) not in str(manifest)
    first = (root / "data/reconstructed/person_squat.parquet").read_bytes()
    monkeypatch.setattr(reconstruct, "reconstruct", lambda *_: pytest.fail("made again"))
    reconstruct.run(params, root)
    assert (root / "data/reconstructed/person_squat.parquet").read_bytes() == first


def test_stage_leaves_videos_out_where_the_extra_is_absent(
    root: Path, repo_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    assert reconstruct.run(params_of(repo_root, "squat", "person_squat"), root)["left_out"] == 1
    left_out = read_json(root / "data/reconstructed/manifest.json")["left_out"]
    assert left_out["person_squat"].startswith("av is not installed; `make video` installs the extra `video`")
    with pytest.raises(StageError, match=r"no motion is left.*\n.*av is not installed"):
        reconstruct.run(params_of(repo_root, "person_squat"), root)


def test_summary_names_what_was_left_out(tmp_path: Path) -> None:
    assert left_out_clips(tmp_path) == {}
    left_out = {"person_squat": "av is not installed"}
    write_json(tmp_path / "data" / "retargeted" / "report.json", {"motions": {}, "left_out": left_out})
    assert left_out_clips(tmp_path) == left_out


def test_stage_names_what_is_wrong_with_a_video(root: Path, repo_root: Path) -> None:
    require_networks()
    human = root / "data/human"
    write_sound(human / "song.mp4")
    shutil.copy(human / "person_squat.mp4", human / "kick.mp4")
    reconstruct.run(params_of(repo_root, "squat", "song", "kick"), root)
    left_out = read_json(root / "data/reconstructed/manifest.json")["left_out"]
    assert left_out["song"] == "data/human/song.mp4: holds no video: found audio only"
    assert left_out["kick"] == "data/human/kick: found kick.npz and kick.mp4, expected one; rename the other"


def test_settings_of_clips_are_checked(tmp_path: Path, repo_root: Path) -> None:
    text = (repo_root / "params.yaml").read_text()
    path = tmp_path / "params.yaml"

    def problem(section: str) -> str:
        line = next(line for line in text.splitlines() if line.startswith("reconstruct:"))
        path.write_text(text.replace(line, f"reconstruct: {section}"))
        with pytest.raises(ConfigError) as caught:
            load_params(path)
        return str(caught.value)

    assert "did you mean 'camera_height'?" in problem("{clips: {squat: {camera_heigth: 1}}}")
    assert "reconstruct.clips: 'gone' is none of motions.names: squat" in problem("{clips: {gone: {}}}")
    assert "focal: found 1, expected 50 to 100000 px" in problem("{clips: {squat: {focal: 1}}}")
    assert "end is 1, expected a time after start, 2" in problem("{clips: {squat: {start: 2, end: 1}}}")
