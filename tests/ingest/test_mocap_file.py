"""Motion capture in a file of its own, joined with the robot's log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from asap_core.errors import ConfigError, InputFileError
from asap_core.robots import get_profile
from asap_core.rollouts.ingest.ingest import ingest
from asap_core.rollouts.ingest.mocap_file import with_mocap
from asap_core.rollouts.ingest.readers import read_log
from asap_core.rollouts.ingest.streams import Log
from flows.cli import app
from tasks.ingest import ActionSource, Request, ingest_logs

PROFILE = get_profile("g1_23dof")


def _motive(path: Path, pos: np.ndarray, quat: np.ndarray) -> Path:
    """A y-up Motive 1.23 take in mm at 120 Hz, times from 0; pos (N, 3) m and quat (N, 4) wxyz are z-up."""
    lines = [
        "Format Version,1.23,Take Name,run,Capture Frame Rate,120.000000,Export Frame Rate,120.000000,"
        "Rotation Type,Quaternion,Length Units,Millimeters,Coordinate Space,Global",
        "",
        "," + ",".join(["Type", *["Rigid Body"] * 7]),
        "," + ",".join(["Name", *["pelvis"] * 7]),
        "," + ",".join(["ID", *["1"] * 7]),
        "," + ",".join(["", *["Rotation"] * 4, *["Position"] * 3]),
        "Frame,Time (Seconds),X,Y,Z,W,X,Y,Z",
    ]
    w, x, y, z = quat.T
    turned = np.stack([x, z, -y, w], axis=1)
    places = 1000 * np.stack([pos[:, 0], pos[:, 2], -pos[:, 1]], axis=1)
    for k, row in enumerate(np.concatenate([turned, places], axis=1)):
        lines.append(f"{k},{k / 120:.6f}," + ",".join(f"{value:.6f}" for value in row))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def whole(twin_mcap: Path) -> Log:
    return read_log(twin_mcap)


@pytest.fixture(scope="module")
def take(whole: Log, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The mocap of the log, its own clock from 0."""
    (pose,) = whole.of_kind("pose")
    x, y, z, w = pose.values["quat"].T
    stamps = pose.source_time if pose.source_time is not None else pose.receive_time
    assert stamps is not None
    every = np.arange(stamps[0], stamps[-1], 1 / 120)
    rows = np.abs(stamps[:, None] - every).argmin(axis=0)
    path = tmp_path_factory.mktemp("mocap") / "take.csv"
    return _motive(path, pose.values["pos"][rows], np.stack([w, x, y, z], axis=1)[rows])


def test_a_motive_take_gives_the_base_that_the_log_s_own_mocap_gives(whole: Log, take: Path) -> None:
    alone = replace(whole, streams=tuple(s for s in whole.streams if s.kind != "pose"))
    joined = ingest(with_mocap(alone, read_log(take)), PROFILE, None)
    expected = ingest(whole, PROFILE, None)
    assert joined.sync is not None
    assert joined.sync.refused == ()
    assert joined.root is not None
    assert expected.root is not None
    assert joined.root.kind == "mocap+imu"
    known = joined.root.valid & expected.root.valid
    assert known.mean() > 0.95
    # The take's frames are the log's put on an even 120 Hz grid: up to half a frame of the sway apart.
    assert np.nanstd((joined.root.pos - expected.root.pos)[known], axis=0).max() < 2e-3
    assert joined.raw.metadata["asap.mocap"]["path"] == "take.csv"


def test_a_file_without_a_body_is_refused(whole: Log) -> None:
    blind = replace(whole, streams=tuple(s for s in whole.streams if s.kind != "pose"))
    with pytest.raises(InputFileError, match="expected a rigid body"):
        with_mocap(whole, blind)


def test_one_take_is_not_for_several_logs(twin_npz: Path, twin_mcap: Path, take: Path) -> None:
    with pytest.raises(ConfigError, match="found 2 logs"):
        ingest_logs(Request((twin_npz, twin_mcap), None, "fit", PROFILE, ActionSource(), mocap=take))


def test_the_command_joins_both(twin_npz: Path, take: Path, tmp_path: Path) -> None:
    with np.load(twin_npz) as content:
        blind = {name: content[name] for name in content.files if name not in ("pos", "quat", "lin_vel", "ang_vel")}
    np.savez(tmp_path / "motion_0.npz", allow_pickle=False, **blind)
    result = CliRunner().invoke(app, ["ingest", str(tmp_path / "motion_0.npz"), "--mocap", str(take)])
    assert "pelvis: pose, 120.0 Hz" in result.output
    assert "up axis of pelvis: y" in result.output
