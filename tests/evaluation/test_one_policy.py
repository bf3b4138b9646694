"""One policy on one motion: a network of one row, the contract that a file lacks, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from asap_core.config import load_params
from asap_core.environments.observations import ObservationLayout
from asap_core.errors import ConfigError, ContractError, InputFileError, UnknownNameError
from asap_core.evaluation.one_policy import track_once
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.training.policy import OnnxPolicy
from asap_core.training.published import OBSERVATION, published_contract
from flows.cli import _rows, app
from tasks.policy import evaluate_policy
from tests.robot_motions import knee_bend, knee_bend_reference

PROFILE = get_profile("g1_23dof")


def one_row_network(path: Path, width: int = 380, gain: float = 0.0) -> Path:
    """actions = gain · (joint angles less the default pose), one row at a time and no metadata."""
    weight = np.zeros((width, 23), np.float32)
    weight[26:49] = gain * np.eye(23)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["actor_obs", "w"], ["action"])],
        "published",
        [helper.make_tensor_value_info("actor_obs", TensorProto.FLOAT, [1, width])],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, [1, 23])],
        [numpy_helper.from_array(weight, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(path))
    return path


def test_published_contract_is_the_papers_layout_and_action():
    contract = published_contract(PROFILE, knee_bend_reference())
    assert ObservationLayout(OBSERVATION, PROFILE).width == 380
    assert contract.action_base == "default"
    assert set(contract.action_scale) == {0.25}
    assert contract.kp[:6] == (100.0, 100.0, 100.0, 200.0, 20.0, 20.0)


def test_phase_is_one_at_the_clips_own_end():
    """30 frames at 30 Hz last 0.967 s; 0.96 s of them fit the 50 Hz frames."""
    from asap_core.environments.reference import ReferenceMotion

    reference = ReferenceMotion.from_motion(knee_bend(seconds=29 / 30, fps=30.0), PROFILE, 0.02)
    frames = np.array([0, 24, 48])
    assert reference.clip_length_s == pytest.approx(29 / 30)
    np.testing.assert_allclose(reference.phase(frames, None), [0, 0.5, 1])
    np.testing.assert_allclose(reference.phase(frames, reference.clip_length_s), frames * 0.02 / (29 / 30))


def test_differenced_joint_velocity_is_the_step_to_the_next_frame():
    from asap_core.environments.reference import ReferenceMotion

    motion = knee_bend(fps=50.0)
    reference = ReferenceMotion.from_motion(motion, PROFILE, 0.02, "difference")
    step = np.diff(motion.joint_pos, axis=0) * 50
    np.testing.assert_allclose(reference.state.joint_vel[:-1], step, atol=1e-9)
    np.testing.assert_allclose(reference.state.joint_vel[-1], step[-1], atol=1e-9)


def test_a_network_of_one_row_takes_many(tmp_path):
    policy = OnnxPolicy(
        one_row_network(tmp_path / "p.onnx", gain=2.0), published_contract(PROFILE, knee_bend_reference())
    )
    obs = np.random.default_rng(0).normal(size=(5, 380)).astype(np.float32)
    np.testing.assert_allclose(policy(obs), 2 * obs[:, 26:49], rtol=1e-6)


def test_a_run_starts_on_the_reference_and_counts_every_frame(tmp_path):
    reference = knee_bend_reference(seconds=0.6)
    policy = OnnxPolicy(one_row_network(tmp_path / "p.onnx"), published_contract(PROFILE, reference))
    errors = track_once(policy, reference, PROFILE, MujocoSimulator(PROFILE, PhysicsSettings(), 1))
    assert errors.frames == reference.num_frames
    assert errors.success == 1.0
    assert 0.0 < errors.E_mpjpe < errors.E_g_mpjpe < 300.0


def test_evaluate_policy_says_what_is_wrong(tmp_path, repo_root):
    params = load_params(repo_root / "params.yaml")
    motion, policy = tmp_path / "bend.parquet", one_row_network(tmp_path / "p.onnx")
    knee_bend().save(motion)
    with pytest.raises(UnknownNameError, match="unknown contract 'asapp'; valid: asap"):
        evaluate_policy(params, policy, motion, "asapp", None)
    with pytest.raises(ConfigError, match="--pd: found 'both'"):
        evaluate_policy(params, policy, motion, "asap", "both")
    with pytest.raises(ContractError, match="metadata has no 'asap_contract'"):
        evaluate_policy(params, policy, motion, None, None)
    with pytest.raises(ContractError, match=r"actor_obs has shape \[1, 379\], expected \(N, 380\)"):
        evaluate_policy(params, one_row_network(tmp_path / "n.onnx", 379), motion, "asap", None)
    with pytest.raises(InputFileError):
        evaluate_policy(params, policy, tmp_path / "none.pkl", "asap", None)
    figures = evaluate_policy(params, policy, motion, "asap", "explicit")
    assert figures["drive"] == "explicit"
    assert figures["frames"] > 10


def test_command_prints_the_errors_and_insists_on_both_files(tmp_path, repo_root):
    motion, policy = tmp_path / "bend.parquet", one_row_network(tmp_path / "p.onnx")
    knee_bend(seconds=0.6).save(motion)
    command = ["evaluate", str(policy), "--contract", "asap", "--root", str(repo_root), "--json"]
    done = CliRunner().invoke(app, [*command, "--motion", str(motion)])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.output)
    assert figures["motion"] == "knee_bend"
    assert figures["drive"] == "implicit"
    assert 0 < figures["E_mpjpe"] < figures["E_g_mpjpe"]
    alone = CliRunner().invoke(app, command)
    assert isinstance(alone.exception, ConfigError)
    assert "belong together" in str(alone.exception)


def test_figures_by_row_and_column_become_a_table():
    assert _rows({"a/x": 1, "a/y": 2, "mean/x": 3}) == [{"": "a", "x": 1, "y": 2}, {"": "mean", "x": 3}]
