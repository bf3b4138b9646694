"""The tasks registered for Isaac Lab: what its scripts find, its own events, and trainings by its own rsl_rl script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.rollouts import kind_folder, split_folder
from tests.alignment.conftest import assemble, standing_state
from tests.robot_motions import knee_bend

pytestmark = pytest.mark.skipif(find_spec("isaaclab") is None, reason="Isaac Lab absent")
ROOT = Path(__file__).resolve().parents[2]
PROFILE = get_profile("g1_23dof")
MIXED = {
    "friction": [0.4, 0.8],
    "kp": [0.8, 1.2],
    "kd": [0.8, 1.2],
    "armature": [0.5, 2.0],
    "link_mass": [0.9, 1.1],
    "com_offset": 0.05,
}
LOOK = """
import json, sys
import gymnasium, torch
import tasks.gym_tasks
from tasks import gym_envs
cfg = gym_envs.tracking_cfg()
env = gymnasium.make("Asap-Tracking-G1-v0", cfg=cfg)
observed, _ = env.reset()
inner = env.unwrapped
data = inner.scene["robot"].data
actuator = inner.scene["robot"].actuators["joints"]
before = inner.robots.state.root_lin_vel
said = {
    "policy": list(observed["policy"].shape), "critic": list(observed["critic"].shape),
    "mass": data.body_mass.torch.tolist(), "com": data.body_com_pos_b.torch.tolist(),
    "stiffness": data.joint_stiffness.torch.tolist(), "armature": data.joint_armature.torch.tolist(),
    "bodies": list(inner.scene["robot"].body_names), "delay": inner.tracking._delay.delay.tolist(),
    "terms": {mode: list(names) for mode, names in inner.event_manager.active_terms.items()}, "rewards": [],
}
for _ in range(8):
    observed, reward, failed, timed_out, _ = env.step(torch.zeros(inner.num_envs, inner.cfg.action_space))
    said["rewards"].append(reward.tolist())
said["finite"] = bool(torch.isfinite(observed["policy"]).all() and torch.isfinite(observed["critic"]).all())
json.dump(said, open("said.json", "w"))
"""

OURS = """
import json
from pathlib import Path
import numpy as np
from tasks._training import make_env, pretraining_reference
from tasks.stages import read_params
params = read_params(Path("."))
params = params.model_copy(update={"simulation": params.simulation.model_copy(update={"backend": "isaaclab"})})
env = make_env(params, pretraining_reference(params, Path(".")), params.pretrain.physics_dt, 4, 0)
json.dump([env.step(np.zeros((4, 23))).reward.tolist() for _ in range(8)], open("ours.json", "w"))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of four robots with a motion and short rollouts."""
    content: dict[str, Any] = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["ppo"] |= {"num_envs": 4, "steps_per_env": 4, "mini_batches": 2, "hidden": [32, 16]}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content))
    (tmp_path / "data" / "retargeted").mkdir(parents=True)
    knee_bend().save(tmp_path / "data" / "retargeted" / f"{content['motions']['train']}.parquet")
    states = [standing_state(PROFILE, 2, 0)] * 61
    targets = np.stack([states[0].joint_pos] * 60, axis=1)
    folder = split_folder(kind_folder(tmp_path, "twin"), "fit")
    folder.mkdir(parents=True)
    assemble(PROFILE, PhysicsSettings(), states, targets, 0).save(folder / "standing.parquet")
    return tmp_path


def change(project: Path, section: str, **values: Any) -> None:
    content = yaml.safe_load((project / "params.yaml").read_text())
    content[section] = {**content[section], **values}
    (project / "params.yaml").write_text(yaml.safe_dump(content))


def python(project: Path, *arguments: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=project, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def test_events_make_the_robots_different_within_their_ranges(project: Path) -> None:
    push = {"interval_s": [0.05, 0.05], "speed": 1.0}
    change(project, "tracking", randomisation=MIXED, disturbances={"delay_steps": [1, 2], "push": push})
    python(project, "-c", LOOK)
    said = json.loads((project / "said.json").read_text())
    assert said["terms"]["reset"] == ["episode"]
    assert set(said["terms"]["startup"]) == {"friction", "gains", "armature", "mass", "centre_of_mass"}
    assert said["terms"]["interval"] == ["push"]
    assert (len(said["policy"]), said["policy"][0], said["finite"]) == (2, 4, True)
    assert set(said["delay"]) <= {1, 2}
    mass = np.array(said["mass"])
    varied = [any(part in name for part in ("pelvis", "hip", "knee")) for name in said["bodies"]]
    ratio = mass / mass.mean(axis=0)
    assert np.ptp(ratio[:, varied], axis=0).min() > 1e-3
    assert np.ptp(ratio[:, ~np.array(varied)]) < 1e-5
    armature = np.array(said["armature"]) / 0.01
    assert 0.5 <= armature.min() < 0.9 < 1.4 < armature.max() <= 2.0
    torso = said["bodies"].index(next(name for name in said["bodies"] if "torso" in name))
    com = np.array(said["com"])
    assert 0.005 < np.ptp(com[:, torso], axis=0).max() <= 0.1
    assert np.ptp(np.delete(com, torso, axis=1), axis=0).max() < 1e-6
    assert np.ptp(np.array(said["stiffness"]) / np.mean(said["stiffness"], axis=0)) > 0.05


def test_robots_that_stand_on_the_reference_earn_what_our_own_environment_pays(project: Path) -> None:
    exact = {"from_start": 1.0, "joint_pos_noise": 0.0, "joint_vel_noise": 0.0, "root_vel_noise": 0.0}
    change(project, "tracking", initialisation=exact)
    change(project, "pretrain", physics_dt=0.005)
    python(project, "-c", LOOK)
    said = json.loads((project / "said.json").read_text())
    python(project, "-c", OURS)
    ours = json.loads((project / "ours.json").read_text())
    np.testing.assert_allclose(said["rewards"], ours, rtol=0.02)


@pytest.mark.parametrize(
    ("task", "name"), [("Asap-Tracking-G1-v0", "asap_tracking"), ("Asap-DeltaAction-G1-v0", "asap_delta_action")]
)
def test_isaac_labs_own_script_trains_it(project: Path, task: str, name: str) -> None:
    import torch

    chosen = ["--rl_library", "rsl_rl", "--task", task, "--num_envs", "4", "--max_iterations", "2", "--device", "cpu"]
    python(project, "-m", "isaaclab", "train", *chosen)
    saved = sorted((project / "logs" / "rsl_rl" / name).glob("*/model_*.pt"))
    assert [path.name for path in saved] == ["model_0.pt", "model_1.pt"]
    first, last = (torch.load(path, weights_only=True)["actor_state_dict"] for path in saved)
    assert all(torch.isfinite(value).all() for value in last.values())
    assert any(not torch.equal(first[key], last[key]) for key in last)
