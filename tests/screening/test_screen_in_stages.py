"""What the stages retarget and pretrain do with the robot's screen and with the preflight."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap_core.config import MotionsSettings, Params, load_params
from asap_core.errors import StageError
from asap_core.files import read_json
from asap_core.motions.robot import RobotMotion
from asap_core.rotations import rotvec_to_quat
from tasks import pretrain, reconstruct, retarget, screen
from tests.robot_motions import knee_bend


@pytest.fixture
def root(tmp_path: Path, repo_root: Path) -> Path:
    shutil.copytree(repo_root / "data/human", tmp_path / "data/human")
    return tmp_path


def _params(repo_root: Path, torque: float = 1.0) -> Params:
    params = load_params(repo_root / "params.yaml")
    motions = MotionsSettings(source="data/human", names=("squat",), train="squat")
    robot = params.screen.robot.model_copy(update={"torque": torque})
    return params.model_copy(update={"motions": motions, "screen": params.screen.model_copy(update={"robot": robot})})


def test_robot_motion_carries_both_verdicts(root: Path, repo_root: Path) -> None:
    params = _params(repo_root)
    for stage in (reconstruct, screen, retarget):
        stage.run(params, root)
    motion = RobotMotion.load(root / "data/retargeted/squat.parquet")
    assert motion.screening is not None
    assert motion.screening["accepted"] is True
    assert motion.screening["robot"]["accepted"] is True
    assert "torque_share" in motion.screening["robot"]["figures"]
    report = read_json(root / "data/retargeted/report.json")
    assert report["verdicts"]["squat"] == motion.screening["robot"]


def test_rejected_robot_motion_is_listed_with_its_reasons(root: Path, repo_root: Path) -> None:
    params = _params(repo_root, torque=0.01)
    reconstruct.run(params, root)
    screen.run(params, root)
    with pytest.raises(StageError, match=r"retarget: no motion is left; left out:\n  squat: torque: found 1\.00"):
        retarget.run(params, root)


def test_pretrain_does_not_start_on_a_motion_that_ends_every_episode(root: Path, repo_root: Path) -> None:
    motion = knee_bend()
    lying = replace(motion, root_quat=np.tile(rotvec_to_quat(np.array([0.0, 1.5, 0.0])), (motion.num_frames, 1)))
    folder = root / "data/retargeted"
    folder.mkdir(parents=True)
    lying.save(folder / "squat.parquet")
    with pytest.raises(StageError, match=r"would end at step 0: pelvis tilt 1\.00 > 0\.80 in frame 0"):
        pretrain.run(_params(repo_root), root)
    assert not (root / "models").exists()
