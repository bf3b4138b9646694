"""The other estimators as external programs, and their finished results, on fixtures of their exact layouts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import human_fixtures as made
import numpy as np
import pytest
import torch

from asap_core.errors import ConfigError, InputFileError, StageError, UnknownNameError
from asap_core.reconstruction.estimators.estimators import ESTIMATORS, LOG, import_result, result_of, run_estimator
from asap_core.reconstruction.estimators.settings import EstimatorSettings, EstimatorsSettings

pytest.importorskip("av", reason="extra video absent")
RATE = 24.0
FAKE = """
    import pathlib, shutil, subprocess, sys, time
    mode, fixture, *words = sys.argv[1:]
    name, out = pathlib.Path(words[0]).stem, pathlib.Path(words[1])
    assert pathlib.Path(words[0]).exists()
    print("Loading weights", flush=True)
    for k in range(3):
        print(f"\\rframes: {k}/3", end="", flush=True)
    print()
    if mode == "hang":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        pathlib.Path("child.pid").write_text(str(child.pid))
        time.sleep(600)
    if mode == "stubborn":
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        pathlib.Path("child.pid").write_text(str(__import__("os").getpid()))
        time.sleep(600)
    if mode == "fail":
        sys.exit("CUDA error: out of memory")
    if mode != "nothing":
        fixture = pathlib.Path(fixture)
        target = pathlib.Path(words[2])
        target.mkdir(parents=True)
        shutil.copy(fixture, target)
        if (fixture.parent / "camera.npy").exists():
            shutil.copy(fixture.parent / "camera.npy", target.parent)
        if mode == "half":
            data = fixture.read_bytes()
            (target / fixture.name).write_bytes(data[: len(data) // 2])
        if mode == "late failure":
            sys.exit("no display for the rendering")
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return made.human_fixtures(tmp_path_factory.mktemp("human"))


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from asap_core.reconstruction.rendering.mp4 import write_mp4

    path = tmp_path_factory.mktemp("video") / "a clip (1).mov.mp4"
    write_mp4((np.full((32, 32, 3), 40 * k, np.uint8) for k in range(5)), RATE, path)
    return path


def _settings(name: str, mode: str, fixture: Path, folder: Path, **more: object) -> EstimatorsSettings:
    folder.mkdir(exist_ok=True)
    (folder / "fake.py").write_text(textwrap.dedent(FAKE))
    place = {"tram": "results/{name}/hps"}.get(name, "{out}/{name}")
    step = ("{python}", "fake.py", mode, str(fixture), "{video}", "{out}", place)
    chosen = EstimatorSettings(folder=folder, python=sys.executable, steps=(step,), **more)  # type: ignore[arg-type]
    return EstimatorsSettings(**{name: chosen})


def _is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_a_run_gives_the_fixtures_joints_at_the_videos_rate(
    name: str, files: dict[str, Path], video: Path, tmp_path: Path
) -> None:
    settings = _settings(name, "good", files[name], tmp_path / "tool")
    motions = run_estimator(name, video, settings, tmp_path / "out")
    expected = made.expected_joints(made.sample())
    count = {"tram": 2, "gvhmr": 1, "wham": 3}[name]
    assert len(motions) == count
    for motion in motions:
        assert motion.fps == pytest.approx(RATE)
        first = int(motion.name.rpartition("_f")[2]) if "_f" in motion.name else 0
        first -= 5 if name == "wham" and "_f" in motion.name else 0
        np.testing.assert_allclose(motion.joint_positions(), expected[first : first + motion.num_frames], atol=2e-6)
    log = (tmp_path / "out" / LOG).read_text()
    assert "Loading weights" in log
    assert not list((tmp_path / "out").glob("*.mp4")), "the link to the video is taken away"


@pytest.mark.parametrize(("name", "lengths"), [("tram", [30, 23]), ("wham", [60, 10, 45])])
def test_frames_that_were_left_out_cut_the_motion(name: str, lengths: list[int], files: dict[str, Path]) -> None:
    assert [motion.num_frames for motion in import_result(files[name], name, RATE)] == lengths


def test_only_the_camera_frame_is_refused_with_the_right_fields_name(files: dict[str, Path], tmp_path: Path) -> None:
    content = made.gvhmr_content(made.sample())
    path = tmp_path / "hmr4d_results.pt"
    torch.save({"smpl_params_incam": content["smpl_params_incam"]}, path)
    with pytest.raises(InputFileError, match="use smpl_params_global"):
        import_result(path, "gvhmr", RATE)


def test_older_tram_camera_is_refused_with_what_is_missing(files: dict[str, Path], tmp_path: Path) -> None:
    track = tmp_path / "hps_track_0.npy"
    track.write_bytes(files["tram"].read_bytes())
    camera = {"pred_cam_R": np.tile(np.eye(3), (60, 1, 1)), "pred_cam_T": np.zeros((60, 3))}
    np.save(tmp_path / "camera.npy", np.array(camera, dtype=object), allow_pickle=True)
    with pytest.raises(InputFileError, match=r"world_cam_R: missing; found pred_cam_R.*newer TRAM"):
        import_result(track, "tram", RATE)


def test_results_are_told_from_videos(files: dict[str, Path], video: Path) -> None:
    assert {name: result_of(files[name]) for name in ESTIMATORS} == {name: name for name in ESTIMATORS}
    assert result_of(video) is None
    assert result_of(files["bvh"]) is None


def test_timeout_ends_the_tool_and_its_children(files: dict[str, Path], video: Path, tmp_path: Path) -> None:
    settings = _settings("wham", "hang", files["wham"], tmp_path / "tool", timeout_s=6.0)
    with pytest.raises(StageError, match=r"out of time(.|\n)*frames: 2/3"):
        run_estimator("wham", video, settings, tmp_path / "out")
    assert not _is_running(int((tmp_path / "tool" / "child.pid").read_text()))


def test_tool_that_ignores_the_polite_end_is_ended(files: dict[str, Path], video: Path, tmp_path: Path) -> None:
    settings = _settings("wham", "stubborn", files["wham"], tmp_path / "tool", timeout_s=6.0)
    with pytest.raises(StageError, match="out of time"):
        run_estimator("wham", video, settings, tmp_path / "out")
    assert not _is_running(int((tmp_path / "tool" / "child.pid").read_text()))


def test_ctrl_c_ends_the_tool_and_its_children(files: dict[str, Path], video: Path, tmp_path: Path) -> None:
    settings = _settings("wham", "hang", files["wham"], tmp_path / "tool")
    caller = (
        "import sys, pathlib, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where the tests run in the background
        "from asap_core.reconstruction.estimators.estimators import run_estimator\n"
        "from asap_core.reconstruction.estimators.settings import EstimatorsSettings\n"
        "settings = EstimatorsSettings.model_validate_json(sys.argv[1])\n"
        "run_estimator('wham', pathlib.Path(sys.argv[2]), settings, pathlib.Path(sys.argv[3]))\n"
    )
    command = [sys.executable, "-c", caller, settings.model_dump_json(), str(video), str(tmp_path / "out")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    note = tmp_path / "tool" / "child.pid"
    limit = time.monotonic() + 60
    while not (note.exists() and note.read_text()):
        assert time.monotonic() < limit
        assert process.poll() is None
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    assert b"KeyboardInterrupt" in process.communicate(timeout=60)[1]
    assert not _is_running(int(note.read_text()))


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("fail", r"status 1 and left no (.|\n)*wham_output.pkl(.|\n)*CUDA error: out of memory"),
        ("nothing", r"status 0 and left no (.|\n)*frames: 2/3"),
        ("half", r"result cannot be used: (.|\n)*wham_output.pkl(.|\n)*frames: 2/3"),
    ],
)
def test_runs_without_a_whole_result_fail_with_the_logs_end(
    mode: str, message: str, files: dict[str, Path], video: Path, tmp_path: Path
) -> None:
    settings = _settings("wham", mode, files["wham"], tmp_path / "tool")
    with pytest.raises(StageError, match=message):
        run_estimator("wham", video, settings, tmp_path / "out")


def test_failure_after_a_whole_result_is_a_success(
    files: dict[str, Path], video: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = _settings("gvhmr", "late failure", files["gvhmr"], tmp_path / "tool")
    assert len(run_estimator("gvhmr", video, settings, tmp_path / "out")) == 1
    assert "ended with status 1 after it wrote its result" in caplog.text


def test_a_result_of_an_earlier_run_is_not_taken(files: dict[str, Path], video: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_estimator("wham", video, _settings("wham", "good", files["wham"], tmp_path / "tool"), out)
    with pytest.raises(StageError, match="left no"):
        run_estimator("wham", video, _settings("wham", "nothing", files["wham"], tmp_path / "tool"), out)


def test_what_is_not_configured_is_named(files: dict[str, Path], video: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'tram'"):
        run_estimator("trm", video, EstimatorsSettings(), tmp_path / "out")
    with pytest.raises(ConfigError, match=r"reconstruct.estimators.tram: missing"):
        run_estimator("tram", video, EstimatorsSettings(), tmp_path / "out")
    absent = EstimatorsSettings(tram=EstimatorSettings(folder=tmp_path / "absent"))
    with pytest.raises(ConfigError, match="absent is no folder"):
        run_estimator("tram", video, absent, tmp_path / "out")
    python = EstimatorsSettings(tram=EstimatorSettings(folder=tmp_path, python="no-such-python"))
    with pytest.raises(StageError, match="no-such-python: cannot be started"):
        run_estimator("tram", video, python, tmp_path / "out")
    steps = EstimatorsSettings(tram=EstimatorSettings(folder=tmp_path, steps=(("run", "{clip}"),)))
    with pytest.raises(ConfigError, match=r"tram.steps: 'clip'; valid: \{python\}"):
        run_estimator("tram", video, steps, tmp_path / "out")


@pytest.mark.parametrize(("moving", "last"), [(False, "--static_cam"), (True, "{out}")])
def test_a_still_camera_is_told_to_the_tool(moving: bool, last: str, video: Path, tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text('#!/bin/sh\necho "given: $@"\nexit 3\n')
    script.chmod(0o755)
    chosen = EstimatorSettings(folder=tmp_path, python=str(script), moving_camera=moving)
    with pytest.raises(StageError, match="status 3"):
        run_estimator("gvhmr", video, EstimatorsSettings(gvhmr=chosen), tmp_path / "out")
    line = next(line for line in (tmp_path / "out" / LOG).read_text().splitlines() if line.startswith("given: "))
    assert line.endswith(last.format(out=tmp_path / "out"))
    assert line.startswith("given: tools/demo/demo.py --video ")
