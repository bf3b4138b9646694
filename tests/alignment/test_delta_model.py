"""The model: zero at first, bounded, the same in every code path, no memory across resets, refused if misplaced."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from asap_core.alignment.contract import METADATA_KEY, DeltaContract, export_delta, load_delta, read_contract
from asap_core.alignment.delta_model import DeltaActionModel, DeltaCorrection
from asap_core.alignment.features import OWN_FEATURES, PhysicalFeatures, SoleHeights, leg_of_joint, shared_features
from asap_core.alignment.fit import transition_features
from asap_core.errors import ContractError, InputFileError
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import projected_gravity, rotate_inverse, rotvec_to_quat
from asap_core.simulators.protocol import RobotState
from tests.alignment.conftest import MakeRollout

LIMIT = 0.5
PROFILE = get_profile("g1_23dof")


def _random_model(residual: bool = False) -> DeltaActionModel:
    torch.manual_seed(0)
    model = DeltaActionModel(PROFILE, 0.02, LIMIT, residual)
    torch.nn.init.normal_(model.linear, std=0.1)
    if model.residual is not None:
        torch.nn.init.normal_(model.residual.net[-1].weight, std=0.1)
    return model


def _state(num: int, seed: int = 0) -> RobotState:
    rng = np.random.default_rng(seed)
    return RobotState(
        root_pos=rng.normal(size=(num, 3)),
        root_quat=rotvec_to_quat(rng.normal(size=(num, 3))),
        root_lin_vel=rng.normal(size=(num, 3)),
        root_ang_vel=rng.normal(size=(num, 3)),
        joint_pos=rng.normal(size=(num, 23)),
        joint_vel=rng.normal(size=(num, 23)),
    )


def _contract(profile: RobotProfile) -> DeltaContract:
    return DeltaContract.of(profile, 0.02, LIMIT, "test")


@pytest.mark.parametrize("residual", [False, True])
def test_a_new_model_corrects_nothing(residual: bool) -> None:
    delta = DeltaCorrection(DeltaActionModel(PROFILE, 0.02, LIMIT, residual).predict)(_state(4), np.ones((4, 23)))
    assert np.abs(delta).max() == 0.0


def test_output_is_bounded() -> None:
    delta = DeltaCorrection(_random_model().predict)(_state(4), np.full((4, 23), 50.0))
    assert np.abs(delta).max() <= LIMIT
    assert np.abs(delta).max() == LIMIT


def _own(
    state: RobotState, target: np.ndarray, last_vel: np.ndarray, last: np.ndarray, earlier: np.ndarray, sign: float = 1
) -> dict[str, np.ndarray]:
    arrays = [torch.as_tensor(sign * x) for x in (state.joint_pos, state.joint_vel, target, last_vel, last, earlier)]
    standing = torch.full((len(target), 23), 0.5, dtype=torch.float64)
    own = PhysicalFeatures(PROFILE, 0.02).own(tuple(arrays), standing).numpy()
    return {name: own[:, :, i] for i, name in enumerate(OWN_FEATURES)}


def test_features_are_what_they_say() -> None:
    state, rng = _state(5), np.random.default_rng(1)
    target, last_vel, last, earlier = rng.normal(size=(4, 5, 23))
    at = _own(state, target, last_vel, last, earlier)
    np.testing.assert_allclose(at["target_change"], target - last)
    np.testing.assert_allclose(at["target_change_before"], last - earlier)
    np.testing.assert_allclose(at["acceleration"] * PROFILE.kp, (state.joint_vel - last_vel) / 0.02)
    ahead = 1.5 * state.joint_vel - 0.5 * last_vel
    np.testing.assert_allclose(at["velocity"] * PROFILE.kp, ahead)
    np.testing.assert_allclose(at["friction"] * PROFILE.kp, np.tanh(ahead / 0.05))
    np.testing.assert_allclose(at["standing_torque"], 0.5 * at["torque"])
    limit = PROFILE.joint_torque_limit / PROFILE.kp
    np.testing.assert_allclose(at["torque"] - at["excess"], np.clip(at["torque"], -limit, limit))
    mirrored = _own(state, target, last_vel, last, earlier, -1)
    for name, values in at.items():
        np.testing.assert_allclose(mirrored[name], -values)
    root = (state.root_quat, state.root_ang_vel, state.root_pos[:, 2:])
    shared = shared_features(*map(torch.as_tensor, root)).numpy()
    np.testing.assert_allclose(shared[:, :3], projected_gravity(state.root_quat), atol=1e-12)
    np.testing.assert_allclose(shared[:, 3:6], rotate_inverse(state.root_quat, state.root_ang_vel), atol=1e-12)


def test_torque_is_the_mean_pd_torque_of_the_coming_step() -> None:
    """Under constant acceleration, in rad of target: τ/kp averaged over the 20 ms that the target is held."""
    rng = np.random.default_rng(3)
    state, target = _state(4), rng.normal(size=(4, 23))
    acceleration = rng.normal(0.0, 20.0, (4, 23))
    last_vel = state.joint_vel - 0.02 * acceleration
    t = (np.arange(2000) + 0.5)[:, None, None] * (0.02 / 2000)
    pos = state.joint_pos + state.joint_vel * t + 0.5 * acceleration * t**2
    vel = state.joint_vel + acceleration * t
    exact = (target - pos - vel * PROFILE.kd / PROFILE.kp).mean(axis=0)
    np.testing.assert_allclose(_own(state, target, last_vel, target, target)["torque"], exact, atol=1e-7)


def test_heights_of_soles_are_those_of_the_kinematics() -> None:
    state = _state(6)
    links = Kinematics(PROFILE).forward(state.root_pos, state.root_quat, state.joint_pos)
    feet = [PROFILE.link_names.index(name) for name in PROFILE.foot_links]
    points = links.pos[:, feet, None] + np.einsum("nfij,fsj->nfsi", links.rot[:, feet], PROFILE.sole_points)
    heights = SoleHeights(PROFILE)(torch.as_tensor(state.joint_pos), torch.as_tensor(state.root_quat)).numpy()
    np.testing.assert_allclose(heights + state.root_pos[:, 2:3], points[..., 2].min(axis=-1), atol=1e-12)
    assert leg_of_joint(PROFILE).sum(axis=1).tolist() == [6, 6]


def test_change_features_use_the_previous_calls_and_are_cleared_by_reset() -> None:
    model = DeltaActionModel(PROFILE, 0.02, LIMIT)
    with torch.no_grad():
        model.linear[:, OWN_FEATURES.index("target_change")] = 1.0
        model.linear[:, OWN_FEATURES.index("target_change_before")] = 10.0
    correction = DeltaCorrection(model.predict)
    state = _state(3)
    target = state.joint_pos
    assert np.abs(correction(state, target)).max() == 0.0
    np.testing.assert_allclose(correction(state, target + 0.01), 0.01)
    np.testing.assert_allclose(correction(state, target + 0.03), 0.02 + 0.1)
    correction.reset(np.array([1]))
    after = correction(state, target + 0.04)
    np.testing.assert_allclose(after[1], 0.04)
    np.testing.assert_allclose(after[[0, 2]], 0.01 + 0.2)
    np.testing.assert_allclose(correction(state, target + 0.04)[1], 0.4)


def test_training_and_acting_see_the_same_features(profile: RobotProfile, make_rollout: MakeRollout) -> None:
    rollout = make_rollout(PhysicsSettings(action_delay=1), 2, 6, 0)
    model, rows = _random_model(), rollout.transitions()
    with torch.no_grad():
        trained = model.bound(model.unbounded(torch.as_tensor(transition_features(model, rollout, rows)))).numpy()
    correction = DeltaCorrection(model.predict)
    for step in range(6):
        at = np.array([step, 6 + step])
        acted = correction(rollout.state.take(rows[at]), rollout.joint_target[rows[at]])
        np.testing.assert_allclose(acted, trained[at], atol=1e-12)


def test_a_target_changed_in_place_is_remembered_as_it_was() -> None:
    model = DeltaActionModel(PROFILE, 0.02, LIMIT)
    with torch.no_grad():
        model.linear[:, OWN_FEATURES.index("target_change")] = 1.0
    correction, target = DeltaCorrection(model.predict), np.zeros((2, 23))
    correction(_state(2), target)
    target += 0.02
    np.testing.assert_allclose(correction(_state(2), target), 0.02)


def test_first_call_after_reset_depends_on_nothing_before() -> None:
    correction = DeltaCorrection(_random_model().predict)
    for seed in range(3):
        correction(_state(4, seed), np.random.default_rng(seed).normal(size=(4, 23)))
    correction.reset(np.arange(4))
    state, target = _state(4, 9), np.ones((4, 23))
    np.testing.assert_array_equal(correction(state, target), DeltaCorrection(_random_model().predict)(state, target))


@pytest.mark.parametrize("residual", [False, True])
def test_file_and_model_give_the_same_delta_for_any_batch(
    profile: RobotProfile, tmp_path: Path, residual: bool
) -> None:
    model = _random_model(residual)
    export_delta(model, _contract(profile), tmp_path / "delta.onnx")
    for num in (1, 7):
        state, target = _state(num), np.random.default_rng(2).normal(size=(num, 23))
        from_file = load_delta(tmp_path / "delta.onnx", profile, 0.02)(state, target)
        np.testing.assert_allclose(from_file, DeltaCorrection(model.predict)(state, target), atol=2e-6)


def test_contract_survives_in_full_precision(profile: RobotProfile, tmp_path: Path) -> None:
    contract = _contract(profile)
    export_delta(_random_model(), contract, tmp_path / "delta.onnx")
    assert read_contract(tmp_path / "delta.onnx") == contract


@pytest.mark.parametrize(
    ("field", "value"),
    [("robot", "h1"), ("control_dt", 0.01), ("kp", (1.0,) * 23), ("joint_names", tuple(f"j{i}" for i in range(23)))],
)
def test_a_misfit_is_refused_by_field(profile: RobotProfile, tmp_path: Path, field: str, value: object) -> None:
    contract = replace(_contract(profile), **{field: value})
    export_delta(_random_model(), contract, tmp_path / "delta.onnx")
    with pytest.raises(ContractError, match=f"contract field {field}"):
        load_delta(tmp_path / "delta.onnx", profile, 0.02)


def test_files_that_are_no_delta_model(profile: RobotProfile, tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="missing"):
        load_delta(tmp_path / "none.onnx", profile, 0.02)
    (tmp_path / "bad.onnx").write_bytes(b"not onnx")
    with pytest.raises(InputFileError, match="not a readable ONNX"):
        load_delta(tmp_path / "bad.onnx", profile, 0.02)
    export_delta(_random_model(), _contract(profile), tmp_path / "delta.onnx")
    graph = onnx.load(str(tmp_path / "delta.onnx"))
    onnx.helper.set_model_props(graph, {METADATA_KEY: json.dumps({"kind": "tracking_policy"})})
    onnx.save(graph, str(tmp_path / "policy.onnx"))
    with pytest.raises(ContractError, match="field kind: found 'tracking_policy'"):
        load_delta(tmp_path / "policy.onnx", profile, 0.02)
    old = json.loads(_contract(profile).to_json()) | {"version": 1}
    onnx.helper.set_model_props(graph, {METADATA_KEY: json.dumps(old)})
    onnx.save(graph, str(tmp_path / "policy.onnx"))
    with pytest.raises(ContractError, match="field version: found 1, expected 2; fit it anew"):
        load_delta(tmp_path / "policy.onnx", profile, 0.02)
    for contract in ("no json", "[1]"):
        onnx.helper.set_model_props(graph, {METADATA_KEY: contract})
        onnx.save(graph, str(tmp_path / "policy.onnx"))
        with pytest.raises(ContractError, match="the contract is no JSON object"):
            load_delta(tmp_path / "policy.onnx", profile, 0.02)
