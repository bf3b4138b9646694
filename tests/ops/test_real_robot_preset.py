"""The paper's real-robot protocol: what the preset asks for, and that `collect` records it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap_core.alignment.refine import joints_of_group
from asap_core.config import Params, load_params
from asap_core.errors import ConfigError
from asap_core.presets import apply_preset
from asap_core.robots import get_profile
from asap_core.rollouts import SPLITS, kind_folder, load_split
from tasks import collect
from tasks.collect import assign_snapshots
from tests.robot_motions import knee_bend_reference

PROFILE = get_profile("g1_23dof")
WALK_S = 5.04


def with_presets(folder: Path, root: Path, *names: str) -> Params:
    shutil.copy(root / "params.yaml", folder / "params.yaml")
    for name in names:
        apply_preset(folder / "params.yaml", name, root / "presets")
    return load_params(folder / "params.yaml")


def test_five_tasks_of_thirty_runs_and_ten_minutes_of_walking(tmp_path: Path, repo_root: Path) -> None:
    params = with_presets(tmp_path, repo_root, "many", "real_robot")
    settings = params.collect
    assert len(settings.motions) == 5
    assert settings.runs == 30
    walks = [settings.of(split).snapshots * settings.locomotion_episodes(split, WALK_S) for split in SPLITS]
    assert 600.0 <= sum(walks) * WALK_S < 600.0 + len(SPLITS) * WALK_S
    assert walks[0] == pytest.approx(2 / 3 * sum(walks), abs=1)
    assert params.align.joints == "ankles"
    moved = joints_of_group(PROFILE, params.align.joints)
    assert [n for n, yes in zip(PROFILE.joint_names, moved, strict=True) if yes] == [
        f"{side}_ankle_{axis}_joint" for side in ("left", "right") for axis in ("pitch", "roll")
    ]
    assert {*settings.motions, "walk_level1"} == set(params.pretraining_motions)


def test_without_an_actor_that_sees_the_motion_it_is_refused(tmp_path: Path, repo_root: Path) -> None:
    with pytest.raises(ConfigError, match="preset many"):
        with_presets(tmp_path, repo_root, "real_robot")


def test_motions_must_be_named(tmp_path: Path, repo_root: Path) -> None:
    with_presets(tmp_path, repo_root, "many", "real_robot")
    path = tmp_path / "params.yaml"
    path.write_text(path.read_text().replace("motion: walk_level1", "motion: stroll"))
    with pytest.raises(ConfigError, match=r"'stroll' is none of motions\.names: kick_level1"):
        load_params(path)


def test_collect_records_every_run(tmp_path: Path, repo_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With policies that stand still and a short motion under every name."""
    params = with_presets(tmp_path, repo_root, "many", "real_robot")
    clip = knee_bend_reference()
    monkeypatch.setattr(collect, "named_reference", lambda params, name, root: replace(clip, name=name))
    monkeypatch.setattr(collect, "OnnxPolicy", lambda path: Still(params, clip))
    minutes = params.collect.model_copy(
        update={"locomotion": params.collect.locomotion.model_copy(update={"minutes": 9 * clip.length_s / 60})}  # type: ignore[union-attr]
    )
    params = params.model_copy(update={"collect": minutes})
    snapshots = tmp_path / "models" / "pretrained" / "snapshots"
    snapshots.mkdir(parents=True)
    for number in range(3):
        (snapshots / f"policy_{number:06d}.onnx").write_text(f"policy {number}")
    assert {len(paths) for paths in assign_snapshots(params, snapshots).values()} == {1}
    collect.run(params, tmp_path)
    runs: dict[str, int] = {}
    for split in SPLITS:
        rollout = load_split(kind_folder(tmp_path, "twin"), split, PROFILE, 0.02, "twin")
        first = np.unique(rollout.episode, return_index=True)[1]
        for motion in rollout.motion[first]:
            runs[str(motion)] = runs.get(str(motion), 0) + 1
    assert runs == dict.fromkeys(params.collect.motions, 30) | {"walk_level1": 10}


class Still:
    """Commands the default pose, by the contract of the parameters."""

    def __init__(self, params: Params, clip: object) -> None:
        from asap_core.training.contract import PolicyContract

        self.contract = PolicyContract.of(PROFILE, clip, params.tracking)  # type: ignore[arg-type]

    def check(self, profile: object, reference: object) -> None: ...

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        return np.zeros((len(observation), PROFILE.num_joints), np.float32)
