"""`asap preflight MOTION`: the verdict, its figures joint by joint, and an exit code for scripts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from asap_core.errors import InputFileError
from asap_core.rotations import rotvec_to_quat
from flows.cli import app
from tests.robot_motions import knee_bend


def test_a_good_motion_is_told_to_be_within_the_limits(tmp_path: Path, repo_root: Path) -> None:
    knee_bend().save(tmp_path / "bend.parquet")
    done = CliRunner().invoke(app, ["preflight", str(tmp_path / "bend.parquet"), "--root", str(repo_root)])
    assert done.exit_code == 0
    assert "motion 'knee_bend' is within the robot's limits" in done.output
    assert "left_knee_joint" in done.output


def test_a_refused_motion_exits_with_1_and_says_why(tmp_path: Path, repo_root: Path) -> None:
    motion = knee_bend()
    lying = replace(motion, root_quat=np.tile(rotvec_to_quat(np.array([0.0, 1.9, 0.0])), (motion.num_frames, 1)))
    lying.save(tmp_path / "lying.parquet")
    done = CliRunner().invoke(app, ["preflight", str(tmp_path / "lying.parquet"), "--json", "--root", str(repo_root)])
    assert done.exit_code == 1
    said = json.loads(done.output)
    assert said["verdict"] == "refused"
    assert said["reasons"][0].startswith("would end at step 0: pelvis tilt 0.95 > 0.80")
    assert len(said["joints"]) == 23
    assert {"position share", "speed at s", "torque of its limit"} <= said["joints"][0].keys()


def test_a_missing_motion_is_named(tmp_path: Path, repo_root: Path) -> None:
    done = CliRunner().invoke(app, ["preflight", str(tmp_path / "none.pkl"), "--root", str(repo_root)])
    assert isinstance(done.exception, InputFileError)
    with pytest.raises(InputFileError, match=r"none\.pkl"):
        raise done.exception
