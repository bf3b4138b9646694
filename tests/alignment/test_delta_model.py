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
from asap_core.alignment.features import OWN_FEATURES, own_features, shared_features
from asap_core.errors import ContractError, InputFileError
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import projected_gravity, rotate_inverse, rotvec_to_quat
from asap_core.simulators.protocol import RobotState

LIMIT = 0.5


def _random_model(residual: bool = False) -> DeltaActionModel:
    torch.manual_seed(0)
    model = DeltaActionModel(23, LIMIT, residual).double()
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
    delta = DeltaCorrection(DeltaActionModel(23, LIMIT, residual).predict)(_state(4), np.ones((4, 23)))
    assert np.abs(delta).max() == 0.0


def test_output_is_bounded() -> None:
    delta = DeltaCorrection(_random_model().predict)(_state(4), np.full((4, 23), 50.0))
    assert np.abs(delta).max() <= LIMIT
    assert np.abs(delta).max() > 0.99 * LIMIT


def test_features_are_what_they_say() -> None:
    state, rng = _state(5), np.random.default_rng(1)
    target, last_vel, last_target = rng.normal(size=(3, 5, 23))
    arrays = (state.joint_pos, state.joint_vel, target, last_vel, last_target)
    own = own_features(*map(torch.as_tensor, arrays)).numpy()
    at = {name: own[:, :, i] for i, name in enumerate(OWN_FEATURES)}
    np.testing.assert_allclose(at["error"], target - state.joint_pos)
    np.testing.assert_allclose(at["velocity_change"], state.joint_vel - last_vel)
    np.testing.assert_allclose(at["target_change"], target - last_target)
    np.testing.assert_allclose(at["velocity_sign_0.3"], np.tanh(state.joint_vel / 0.3))
    mirrored = own_features(*(torch.as_tensor(-x) for x in arrays)).numpy()
    np.testing.assert_allclose(mirrored, -own)
    root = (state.root_quat, state.root_ang_vel, state.root_pos[:, 2:])
    shared = shared_features(*map(torch.as_tensor, root)).numpy()
    np.testing.assert_allclose(shared[:, :3], projected_gravity(state.root_quat), atol=1e-12)
    np.testing.assert_allclose(shared[:, 3:6], rotate_inverse(state.root_quat, state.root_ang_vel), atol=1e-12)


def test_change_features_use_the_previous_call_and_are_cleared_by_reset() -> None:
    model = DeltaActionModel(23, LIMIT).double()
    with torch.no_grad():
        model.linear[:, OWN_FEATURES.index("target_change")] = 1.0
    correction = DeltaCorrection(model.predict)
    state, target = _state(3), np.zeros((3, 23))
    assert np.abs(correction(state, target)).max() == 0.0
    np.testing.assert_allclose(correction(state, target + 0.01), LIMIT * np.tanh(0.01 / LIMIT))
    correction.reset(np.array([1]))
    third = correction(state, target + 0.02)
    assert np.abs(third[1]).max() == 0.0
    np.testing.assert_allclose(third[[0, 2]], LIMIT * np.tanh(0.01 / LIMIT))


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
    for contract in ("no json", "[1]"):
        onnx.helper.set_model_props(graph, {METADATA_KEY: contract})
        onnx.save(graph, str(tmp_path / "policy.onnx"))
        with pytest.raises(ContractError, match="the contract is no JSON object"):
            load_delta(tmp_path / "policy.onnx", profile, 0.02)
