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
from asap_core.alignment.features import OWN_FEATURES, Limbs, PhysicalFeatures, leg_of_joint, shared_features
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
    model = DeltaActionModel(PROFILE, LIMIT, residual)
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
    delta = DeltaCorrection(DeltaActionModel(PROFILE, LIMIT, residual).predict, 0.02)(_state(4), np.ones((4, 23)), 0.0)
    assert np.abs(delta).max() == 0.0


def test_output_is_bounded() -> None:
    delta = DeltaCorrection(_random_model().predict, 0.02)(_state(4), np.full((4, 23), 50.0), 0.0)
    assert np.abs(delta).max() <= LIMIT
    assert np.abs(delta).max() == LIMIT


def _own(
    state: RobotState, acc: np.ndarray, target: np.ndarray, last: np.ndarray, earlier: np.ndarray, sign: float = 1
) -> dict[str, np.ndarray]:
    arrays = [torch.as_tensor(sign * x) for x in (state.joint_pos, state.joint_vel, acc, target, last, earlier)]
    half = torch.full((len(target), 23), 0.5, dtype=torch.float64)
    own = PhysicalFeatures(PROFILE).own(tuple(arrays), half, sign * half).numpy()
    return {name: own[:, :, i] for i, name in enumerate(OWN_FEATURES)}


def test_features_are_what_they_say() -> None:
    state, rng = _state(5), np.random.default_rng(1)
    acc, target, last, earlier = rng.normal(size=(4, 5, 23))
    at = _own(state, acc, target, last, earlier)
    torque = PROFILE.kp * (target - state.joint_pos) - PROFILE.kd * state.joint_vel
    np.testing.assert_allclose(at["torque"] * PROFILE.kp, torque)
    np.testing.assert_allclose(at["target_change"], target - last)
    np.testing.assert_allclose(at["target_change_before"], last - earlier)
    np.testing.assert_allclose(at["acceleration"] * PROFILE.kp, acc)
    np.testing.assert_allclose(at["velocity"] * PROFILE.kp, state.joint_vel)
    np.testing.assert_allclose(at["friction"] * PROFILE.kp, np.tanh(state.joint_vel / 0.05))
    np.testing.assert_allclose(at["standing_torque"], 0.5 * at["torque"])
    np.testing.assert_allclose(at["payload"] * PROFILE.kp, 0.5)
    limit = PROFILE.joint_torque_limit / PROFILE.kp
    np.testing.assert_allclose(at["torque"] - at["excess"], np.clip(at["torque"], -limit, limit))
    mirrored = _own(state, acc, target, last, earlier, -1)
    for name, values in at.items():
        np.testing.assert_allclose(mirrored[name], -values)
    root = (state.root_quat, state.root_ang_vel, state.root_pos[:, 2:])
    shared = shared_features(*map(torch.as_tensor, root)).numpy()
    np.testing.assert_allclose(shared[:, :3], projected_gravity(state.root_quat), atol=1e-12)
    np.testing.assert_allclose(shared[:, 3:6], rotate_inverse(state.root_quat, state.root_ang_vel), atol=1e-12)


def test_heights_of_soles_are_those_of_the_kinematics() -> None:
    state = _state(6)
    links = Kinematics(PROFILE).forward(state.root_pos, state.root_quat, state.joint_pos)
    feet = [PROFILE.link_names.index(name) for name in PROFILE.foot_links]
    points = links.pos[:, feet, None] + np.einsum("nfij,fsj->nfsi", links.rot[:, feet], PROFILE.sole_points)
    heights = Limbs(PROFILE).heights(torch.as_tensor(state.joint_pos), torch.as_tensor(state.root_quat)).numpy()
    np.testing.assert_allclose(heights + state.root_pos[:, 2:3], points[..., 2].min(axis=-1), atol=1e-12)
    assert leg_of_joint(PROFILE).sum(axis=1).tolist() == [6, 6]


def _load_seen_from(link: str, joint_pos: np.ndarray, root_quat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The torso's centre of mass (3,) in the frame of `link`, and that frame's orientation (3, 3) in the world."""
    links = Kinematics(PROFILE).forward(np.zeros((1, 3)), root_quat, joint_pos)
    torso, at = PROFILE.link_names.index("torso_link"), PROFILE.link_names.index(link)
    com = np.array(next(part.com for part in PROFILE.links if part.name == "torso_link"))
    place = links.pos[0, torso] + links.rot[0, torso] @ com - links.pos[0, at]
    return links.rot[0, at].T @ place, links.rot[0, at]


def test_payload_is_the_work_of_a_weight() -> None:
    """Virtual work, τ dq = −g dh: through the leg with its foot fixed in the world, through the waist from the root."""
    state = _state(1, 3)
    pos, quat = 0.6 * state.joint_pos, state.root_quat
    limbs = Limbs(PROFILE)
    heights = limbs.heights(torch.as_tensor(pos), torch.as_tensor(quat)).numpy()[0]
    low = int(np.argmin(heights))
    assert abs(heights[1] - heights[0]) > 0.08
    root_height = torch.tensor([[-heights[low]]])
    standing, payload = (x.numpy()[0] for x in limbs(torch.as_tensor(pos), root_height, torch.as_tensor(quat)))
    side, step = ("left", "right")[low], 1e-6
    for joint, name in enumerate(PROFILE.joint_names):
        fixed = PROFILE.links[0].name if "waist" in name else PROFILE.foot_links[low]
        before, world = _load_seen_from(fixed, pos, quat)
        after, _ = _load_seen_from(fixed, pos + step * np.eye(23)[joint : joint + 1], quat)
        raised = (world @ (after - before))[2] / step
        carries = 1.0 if "waist" in name else standing[joint]
        expected = -9.81 * raised * carries if "waist" in name or name.startswith(side) else 0.0
        assert payload[joint] == pytest.approx(expected, abs=1e-4), name
    assert np.abs(payload).max() > 1.0


def _keeping(weights: dict[str, float]) -> DeltaCorrection:
    model = DeltaActionModel(PROFILE, LIMIT)
    with torch.no_grad():
        for feature, weight in weights.items():
            model.linear[:, OWN_FEATURES.index(feature)] = weight
    return DeltaCorrection(model.predict, 0.02)


def test_change_features_use_the_last_control_steps_and_are_cleared_by_reset() -> None:
    correction = _keeping({"target_change": 1.0, "target_change_before": 10.0})
    state = _state(3)
    target = state.joint_pos
    assert np.abs(correction(state, target, 0.0)).max() == 0.0
    for time_s in (0.0, 0.01):
        np.testing.assert_allclose(correction(state, target + 0.01, time_s), 0.01)
    np.testing.assert_allclose(correction(state, target + 0.03, 0.0), 0.02 + 0.1)
    correction.reset(np.array([1]))
    after = correction(state, target + 0.04, 0.0)
    np.testing.assert_allclose(after[1], 0.04)
    np.testing.assert_allclose(after[[0, 2]], 0.01 + 0.2)
    np.testing.assert_allclose(correction(state, target + 0.04, 0.0)[1], 0.4)


def test_acceleration_is_smoothed_over_its_time_and_cleared_by_reset() -> None:
    correction = _keeping({"acceleration": 1.0})
    state = _state(2)

    def seen(vel: float, time_s: float) -> np.ndarray:
        now = replace(state, joint_vel=np.full((2, 23), vel))
        return correction(now, state.joint_pos, time_s) * PROFILE.kp

    assert np.abs(seen(0.0, 0.0)).max() == 0.0
    keep = np.exp(-0.5)
    np.testing.assert_allclose(seen(0.01, 0.005), 2.0 * (1.0 - keep))
    np.testing.assert_allclose(seen(0.01, 0.01), 2.0 * (1.0 - keep) * keep)
    whole_step = np.exp(-2.0)
    before = seen(0.01, 0.0)
    correction.recall(replace(state, joint_vel=np.full((2, 23), 0.05)), state.joint_pos)
    np.testing.assert_allclose(seen(0.05, 0.0), whole_step * (2.0 + whole_step * (before - 2.0)))
    correction.reset(np.array([0]))
    assert np.abs(seen(0.2, 0.005)[0]).max() == 0.0


def test_training_and_acting_see_the_same_features(profile: RobotProfile, make_rollout: MakeRollout) -> None:
    rollout = make_rollout(PhysicsSettings(action_delay=1), 2, 6, 0)
    model, rows = _random_model(), rollout.transitions()
    with torch.no_grad():
        model.linear[:, OWN_FEATURES.index("acceleration")] = 0.0
        trained = model.bound(model.unbounded(torch.as_tensor(transition_features(model, rollout, rows)))).numpy()
    correction = DeltaCorrection(model.predict, 0.02)
    for step in range(6):
        at = np.array([step, 6 + step])
        acted = correction(rollout.state.take(rows[at]), rollout.joint_target[rows[at]], 0.0)
        np.testing.assert_allclose(acted, trained[at], atol=1e-12)


def test_a_target_changed_in_place_is_remembered_as_it_was() -> None:
    correction, target = _keeping({"target_change": 1.0}), np.zeros((2, 23))
    correction(_state(2), target, 0.0)
    target += 0.02
    np.testing.assert_allclose(correction(_state(2), target, 0.0), 0.02)


def test_first_call_after_reset_depends_on_nothing_before() -> None:
    correction = DeltaCorrection(_random_model().predict, 0.02)
    for seed in range(3):
        correction(_state(4, seed), np.random.default_rng(seed).normal(size=(4, 23)), 0.0)
    correction.reset(np.arange(4))
    state, target = _state(4, 9), np.ones((4, 23))
    fresh = DeltaCorrection(_random_model().predict, 0.02)
    np.testing.assert_array_equal(correction(state, target, 0.0), fresh(state, target, 0.0))


@pytest.mark.parametrize("residual", [False, True])
def test_file_and_model_give_the_same_delta_for_any_batch(
    profile: RobotProfile, tmp_path: Path, residual: bool
) -> None:
    model = _random_model(residual)
    export_delta(model, _contract(profile), tmp_path / "delta.onnx")
    for num in (1, 7):
        state, target = _state(num), np.random.default_rng(2).normal(size=(num, 23))
        from_file = load_delta(tmp_path / "delta.onnx", profile, 0.02)(state, target, 0.0)
        np.testing.assert_allclose(from_file, DeltaCorrection(model.predict, 0.02)(state, target, 0.0), atol=2e-6)


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
    with pytest.raises(ContractError, match="field version: found 1, expected 3; fit it anew"):
        load_delta(tmp_path / "policy.onnx", profile, 0.02)
    for contract in ("no json", "[1]"):
        onnx.helper.set_model_props(graph, {METADATA_KEY: contract})
        onnx.save(graph, str(tmp_path / "policy.onnx"))
        with pytest.raises(ContractError, match="the contract is no JSON object"):
            load_delta(tmp_path / "policy.onnx", profile, 0.02)
