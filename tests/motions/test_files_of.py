"""Paths as users give them: links in circles, pipes, closed and missing files, names that a terminal misreads."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from motion_fixtures import robot_fixtures
from typer.testing import CliRunner

from asap_core.files import file_name
from asap_core.motions.files_of import find_motions
from asap_core.motions.robot import RobotMotion
from flows.cli import app


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return robot_fixtures(tmp_path_factory.mktemp("files"))["robot_parquet"]


def test_links_in_circles_are_walked_once(clip: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    (folder / "sub").mkdir(parents=True)
    shutil.copy(clip, folder / "sub/clip.parquet")
    (folder / "sub/up").symlink_to("..")
    (folder / "self").symlink_to(folder)
    (folder / "broken").symlink_to("broken")
    found = find_motions([folder])
    assert found.files == [folder / "sub/clip.parquet"]
    assert [error.path for error in found.unreadable] == [folder / "broken"]


def test_pipes_and_what_is_missing_do_not_stop_the_others(clip: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "empty").mkdir()
    named = [tmp_path / "pipe.csv", tmp_path / "absent.npz", tmp_path / "empty", tmp_path / ("n" * 300)]
    result = CliRunner().invoke(app, ["doctor", "--json", *map(str, named), str(clip)])
    assert result.exit_code == 2
    files = json.loads(result.stdout)["files"]
    assert files[str(clip)]["clean"]
    assert [name for name in files if "unreadable" in files[name]] == [str(path) for path in named]
    assert "a pipe or device" in files[str(named[0])]["unreadable"]
    assert "missing" in files[str(named[1])]["unreadable"]
    assert "a folder without motion files" in files[str(named[2])]["unreadable"]


def test_brackets_in_a_name_are_no_markup(tmp_path: Path) -> None:
    (tmp_path / "take[").mkdir()
    path = tmp_path / "take[/red]1 [bold].pkl"
    path.write_bytes(b"junk")
    result = CliRunner().invoke(app, ["doctor", str(path)])
    assert result.exit_code == 2
    assert str(path) in result.stdout.replace("\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="file names of any bytes")
def test_a_name_of_another_encoding_is_printed_in_escapes(clip: Path, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/bad\xff.parquet"
    shutil.copy(clip, name)
    run = subprocess.run([sys.executable, "-m", "flows.cli", "doctor", name], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
    assert rb"bad\udcff.parquet" in run.stdout


def test_a_source_is_never_written_over(clip: Path, tmp_path: Path) -> None:
    source = tmp_path / "clip.parquet"
    shutil.copy(clip, source)
    result = CliRunner().invoke(app, ["convert", str(source), str(tmp_path), "--to-fps", "20"])
    assert result.exit_code == 0, result.output
    assert source.read_bytes() == clip.read_bytes()
    assert RobotMotion.load(tmp_path / "clip-2.parquet").fps == 20


def test_links_in_circles_as_source_and_destination(clip: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for args in (["loop", "x.parquet"], [str(clip), "loop"], [str(clip), "loop/x.parquet"], [str(clip), "n" * 300]):
        paths = [str(tmp_path / arg) for arg in args]
        result = CliRunner().invoke(app, ["convert", *paths])
        assert result.exit_code == 1, args
        assert type(result.exception).__name__ in ("InputFileError", "StageError"), result.exception


def test_what_is_left_out_is_named(clip: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    shutil.copy(clip, tmp_path / "in/clip.parquet")
    (tmp_path / "in/notes.txt").write_text("no motion")
    result = CliRunner().invoke(app, ["convert", str(tmp_path / "in"), str(tmp_path / "out")])
    assert result.exit_code == 1
    assert f"{tmp_path / 'in/notes.txt'}: no motion format has its suffix" in result.output


def test_a_name_with_a_pattern_is_written(clip: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["convert", str(clip), str(tmp_path / "a**[b.parquet")])
    assert result.exit_code == 0, result.output
    assert RobotMotion.load(tmp_path / "a**[b.parquet").fps == 50


@pytest.mark.skipif(sys.platform != "linux", reason="file names of any bytes")
def test_names_of_clips_cannot_leave_the_folder_or_break_it(tmp_path: Path) -> None:
    content = pickle.loads(robot_fixtures(tmp_path / "in")["asap_pkl"].read_bytes())
    (clip,) = content.values()
    names = ["x\0y", "s\ud800t", "[/red]", "..", "n" * 5000]
    (tmp_path / "many.pkl").write_bytes(pickle.dumps(dict.fromkeys(names, clip)))
    result = CliRunner().invoke(app, ["convert", str(tmp_path / "many.pkl"), str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    made = sorted(path.name for path in (tmp_path / "out").iterdir() if path.suffix == ".parquet")
    assert made == sorted(f"many.{name}.parquet" for name in ("x_y", "s_t", "red]", "..", "n" * 100))
    assert file_name("../../etc/x") == ".._.._etc_x"
