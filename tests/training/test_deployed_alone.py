"""An exported policy runs where only onnxruntime and numpy are, and says there all that a robot must know."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap_core.config import load_params
from asap_core.environments.motion_set import MotionSet
from asap_core.environments.settings import TrackingSettings
from asap_core.environments.tracking import TrackingEnv
from asap_core.presets import apply_preset
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.training.contract import PolicyContract
from asap_core.training.export import export_policy
from asap_core.training.policy import OnnxPolicy
from asap_core.training.ppo import PpoTrainer, use_threads
from asap_core.training.settings import PpoSettings
from tests.asap_env import PROFILE, asap_params_in, make_asap_env
from tests.robot_motions import knee_bend_reference

ALONE = """
import importlib.abc, json, sys

class Only(importlib.abc.MetaPathFinder):
    names = set(sys.stdlib_module_names) | {"numpy", "onnxruntime", "flatbuffers", "google", "packaging", "sympy",
                                            "mpmath", "coloredlogs", "humanfriendly", "ml_dtypes"}
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in self.names:
            raise ModuleNotFoundError(f"{name} is not on the robot")
        return None

sys.meta_path.insert(0, Only())
import numpy as np
import onnxruntime

model, observations, answers = sys.argv[1:]
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
contract = json.loads(session.get_modelmeta().custom_metadata_map["asap_contract"])
np.save(answers, session.run(["actions"], {"obs": np.load(observations)})[0])
foreign = sorted({m.partition(".")[0] for m in sys.modules} & {"torch", "mujoco", "asap_core", "pydantic", "onnx"})
print(json.dumps({"contract": contract, "foreign": foreign}))
"""


@pytest.fixture
def asap_params(repo_root, tmp_path):
    return asap_params_in(tmp_path, repo_root)


def trainer_of(params, **changes) -> PpoTrainer:
    use_threads(1)
    ppo = PpoSettings.model_validate(
        params.ppo.model_dump() | {"num_envs": 4, "steps_per_env": 6, "hidden": (32, 16), **changes}
    )
    return PpoTrainer(make_asap_env(params), ppo, seed=0)


def test_a_policy_with_the_papers_layout_answers_alike_without_us(asap_params, tmp_path):
    trainer = trainer_of(asap_params)
    answers_alike_without_us(trainer, asap_params.tracking, 380, tmp_path)


def test_a_policy_over_several_motions_answers_alike_without_us(asap_params, tmp_path, repo_root):
    """Its actor sees three frames ahead: 23 joints, 10 figures of the root and 6 of the turn in each; 75 and 4 · 75."""
    apply_preset(tmp_path / "params.yaml", "many", repo_root / "presets")
    tracking = load_params(tmp_path / "params.yaml").tracking
    motions = MotionSet((knee_bend_reference(), replace(knee_bend_reference(depth=0.4), name="deeper")))
    use_threads(1)
    sim = MujocoSimulator(PROFILE, PhysicsSettings(), 4)
    small = PpoSettings(num_envs=4, steps_per_env=6, hidden=(32, 16))
    trainer = PpoTrainer(TrackingEnv(sim, PROFILE, motions, tracking, 0), small, seed=0)
    answers_alike_without_us(trainer, tracking, 75 + 4 * 75 + 3 * (23 + 10 + 6), tmp_path)


def answers_alike_without_us(trainer: PpoTrainer, tracking: TrackingSettings, width: int, tmp_path: Path) -> None:
    """1,000 observations through the network here, and through the file where only onnxruntime and numpy are."""
    for _ in range(2):
        trainer.iterate()
    contract = PolicyContract.of(PROFILE, trainer.env.reference, tracking)
    export_policy(trainer.actor, contract, tmp_path / "policy.onnx")
    obs = np.random.default_rng(0).normal(size=(1000, width)).astype(np.float32)
    np.save(tmp_path / "obs.npy", obs)
    command = [sys.executable, "-c", ALONE, "policy.onnx", "obs.npy", "answers.npy"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    trainer.algorithm.eval_mode()
    np.testing.assert_allclose(np.load(tmp_path / "answers.npy"), trainer.policy()(obs), atol=1e-5)
    said = json.loads(done.stdout)
    assert said["foreign"] == []
    assert said["contract"] == contract.model_dump(mode="json")


def test_the_contract_holds_what_a_control_loop_needs(asap_params, tmp_path):
    trainer = trainer_of(asap_params)
    contract = PolicyContract.of(PROFILE, trainer.env.reference, asap_params.tracking)
    export_policy(trainer.actor, contract, tmp_path / "policy.onnx")
    read = OnnxPolicy(tmp_path / "policy.onnx").contract
    assert read == contract
    assert (read.robot, read.control_dt, read.action_base) == ("g1_23dof", 0.02, "default")
    assert read.joint_names == PROFILE.joint_names
    assert read.kp == tuple(PROFILE.kp)
    assert read.kd == tuple(PROFILE.kd)
    assert read.action_scale == (0.25,) * 23
    assert read.phase_length_s == trainer.env.reference.clip_length_s
    assert read.observation == asap_params.tracking.actor
    assert len(read.ref_joint_pos) == trainer.env.reference.num_frames


@pytest.mark.slow
def test_200_iterations_of_the_papers_environment_are_100_and_100_more(asap_params, tmp_path):
    """Curricula, widths, failure counts, delays and pushes are part of what a checkpoint holds."""
    from asap_core.environments.disturbances import DisturbanceSettings, PushSettings
    from asap_core.environments.starts import InitialisationSettings
    from asap_core.training.session import TrainingSession

    lively = asap_params.model_copy(
        update={
            "tracking": asap_params.tracking.model_copy(
                update={
                    "adaptive_sigma": 0.01,
                    "compare": "anchor",
                    "initialisation": InitialisationSettings(failure_weight=0.5, root_turn=0.1),
                    "disturbances": DisturbanceSettings(
                        delay_steps=(0, 2), push=PushSettings(interval_s=(0.2, 0.6), speed=0.5)
                    ),
                }
            )
        }
    )

    def run(name: str, until: int) -> PpoTrainer:
        trainer = trainer_of(lively, epochs=1, mini_batches=1)
        contract = PolicyContract.of(PROFILE, trainer.env.reference, lively.tracking)
        TrainingSession(trainer, contract, tmp_path / name, 100).run(until, name)
        return trainer

    straight = run("straight", 200)
    run("parts", 100)
    resumed = run("parts", 200)
    first, second = straight.env.state_dict(), resumed.env.state_dict()
    assert first["penalty_scale"] == second["penalty_scale"] != 0.1
    assert first["soft_limits"] == second["soft_limits"]
    assert first["widths"] == second["widths"]
    assert first["failures"].any()
    for name in ("failures", "push_due_s", "frame", "last_action"):
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    for name in ("delay", "past"):
        np.testing.assert_array_equal(first["delay"][name], second["delay"][name], err_msg=name)
    assert first["rng"] == second["rng"]
    assert (tmp_path / "straight" / "policy.onnx").read_bytes() == (tmp_path / "parts" / "policy.onnx").read_bytes()
