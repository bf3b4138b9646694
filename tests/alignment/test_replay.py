"""Open-loop replay: exact in the recording simulator, and the same correction there as in closed loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from asap_core.alignment.delta_model import DeltaActionModel, DeltaCorrection
from asap_core.alignment.features import OWN_FEATURES
from asap_core.alignment.fit import transition_features
from asap_core.alignment.refine import JointGroup, Refiner, SharedWeights, away, joints_of_group, replay_variants
from asap_core.alignment.replay import (
    coordinates,
    cut_segments,
    horizon_errors,
    horizon_steps,
    replay,
    replay_distance,
    replay_with_joints,
)
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts import Rollout
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.simulators.protocol import Array, RobotState
from tests.alignment.conftest import MakeRollout

NOMINAL = PhysicsSettings()
WEAK = PhysicsSettings(strength={"knee": 0.8, "ankle": 0.8})


@pytest.fixture(scope="module")
def weak(make_rollout: MakeRollout) -> Rollout:
    return make_rollout(WEAK, 4, 50, 0)


def test_same_simulator_replays_to_rounding(profile: RobotProfile, weak: Rollout) -> None:
    segments = cut_segments(weak, profile, 50)
    distance = replay_distance(MujocoSimulator(profile, WEAK, 3), profile, segments)
    assert distance.max() < 1e-6


def test_the_gap_shows_and_does_not_depend_on_batching(profile: RobotProfile, weak: Rollout) -> None:
    segments = cut_segments(weak, profile, 25, 10)
    some = replay_distance(MujocoSimulator(profile, NOMINAL, 5), profile, segments)
    all_at_once = replay_distance(MujocoSimulator(profile, NOMINAL, 32), profile, segments)
    np.testing.assert_allclose(some, all_at_once, atol=1e-9)
    assert some[:, -1].mean() > 1e-3


def test_delayed_targets_from_before_a_segment_are_replayed(profile: RobotProfile, make_rollout: MakeRollout) -> None:
    late = PhysicsSettings(action_delay=1, action_delay_s=0.0075)
    segments = cut_segments(make_rollout(late, 2, 40, 1), profile, 10)
    assert segments.past.known.sum(axis=1).tolist() == [0, 8, 8, 8] * 2
    assert replay_distance(MujocoSimulator(profile, late, 3), profile, segments).max() < 1e-6
    sooner = MujocoSimulator(profile, PhysicsSettings(action_delay=1), 3)
    assert replay_distance(sooner, profile, segments).max() > 1e-4


def test_a_correction_has_seen_what_was_recorded_before_a_segment(profile: RobotProfile, weak: Rollout) -> None:
    segments = cut_segments(weak, profile, 20, 6)
    seen: list[tuple[RobotState, np.ndarray]] = []
    told: list[np.ndarray] = []

    class Spy:
        def reset(self, ids: np.ndarray) -> None:
            """Nothing to forget."""

        def recall(self, state: RobotState, joint_target: np.ndarray) -> None:
            seen.append((state, joint_target))

        def __call__(self, state: RobotState, joint_target: np.ndarray, time_s: float) -> np.ndarray:
            told.append(joint_target)
            return np.zeros_like(joint_target)

    replay(MujocoSimulator(profile, NOMINAL, segments.num), profile, segments, Spy())
    before = np.stack([target[1] for _, target in seen])
    assert segments.past.known[1].tolist() == [False] * 2 + [True] * 6
    np.testing.assert_array_equal(before[2:], segments.joint_target[0, :6])
    np.testing.assert_array_equal(before[0], segments.start.joint_pos[0])
    np.testing.assert_array_equal(told[0], segments.joint_target[:, 0])
    assert len(told) == 4 * 20


def test_horizons() -> None:
    assert [horizon_steps(h, 0.02) for h in (0.25, 0.5, 1.0)] == [12, 25, 50]
    distance = np.tile(np.arange(1, 51) / 1000.0, (2, 1))
    assert horizon_errors(distance, 0.02) == pytest.approx({0.25: 6.5, 0.5: 13.0, 1.0: 25.5})


def test_open_and_closed_loop_give_the_same_targets(profile: RobotProfile, weak: Rollout) -> None:
    """Unit invariance: the nominal target plus Δq rad is what the joints are told, in replay as in an environment."""
    model = DeltaActionModel(profile, 0.5)
    torch.nn.init.normal_(model.linear, std=0.02, generator=torch.Generator().manual_seed(0))
    segments = cut_segments(weak, profile, 12, 50)
    reached = replay(
        MujocoSimulator(profile, NOMINAL, segments.num), profile, segments, DeltaCorrection(model.predict, 0.02)
    )
    simulator, correction = MujocoSimulator(profile, NOMINAL, segments.num), DeltaCorrection(model.predict, 0.02)
    simulator.set_state(np.arange(segments.num), segments.start)
    for k in range(12):
        target = segments.joint_target[:, k]
        simulator.step(target, correction)
    np.testing.assert_allclose(simulator.link_states().pos, reached[:, -1], atol=1e-12)


def test_variants_are_models_with_changed_weights(profile: RobotProfile, weak: Rollout) -> None:
    segments = cut_segments(weak, profile, 12)
    start = DeltaActionModel(profile, 0.5)
    changes = np.random.default_rng(0).normal(0.0, 0.02, (3, 23, 10))
    reached = replay_variants(MujocoSimulator(profile, NOMINAL, 7), profile, segments, start, changes)
    for change, got in zip(changes, reached, strict=True):
        model = DeltaActionModel(profile, 0.5)
        with torch.no_grad():
            model.linear[:, :10] += torch.as_tensor(change)
        correction = DeltaCorrection(model.predict, 0.02)
        links, joints = replay_with_joints(MujocoSimulator(profile, NOMINAL, 4), profile, segments, correction)
        np.testing.assert_allclose(got, coordinates(links, joints), atol=1e-9)


def _weights(profile: RobotProfile, rollout: Rollout, group: JointGroup = "all") -> SharedWeights:
    rows = rollout.transitions()
    return SharedWeights.of(profile, transition_features(DeltaActionModel(profile, 0.5), rollout, rows), group)


def _refined(profile: RobotProfile, target: Rollout, steps: int, rounds: int, group: JointGroup = "all") -> Array:
    """Own-feature weights (J, O) after Gauss-Newton steps from zero."""
    weights = _weights(profile, target, group)
    simulator = MujocoSimulator(profile, NOMINAL, 4 * (weights.size + 1))
    segments = cut_segments(target, profile, steps)
    refiner = Refiner(simulator, profile, weights, DeltaActionModel(profile, 0.5), prior=1e-3)
    refiner.start_with_delay(segments)
    for _ in range(rounds):
        refiner.step(segments)
    return refiner.model.linear.detach().numpy()[:, : len(OWN_FEATURES)]


def test_sides_share_weights(profile: RobotProfile, weak: Rollout) -> None:
    weights = _weights(profile, weak)
    left, right = (profile.joint_names.index(f"{side}_knee_joint") for side in ("left", "right"))
    np.testing.assert_array_equal(weights.member[left], weights.member[right])
    assert weights.spread(np.ones((2, weights.size))).shape == (2, 23, len(OWN_FEATURES))
    elbow = profile.joint_names.index("left_elbow_joint")
    assert weights.member[elbow, OWN_FEATURES.index("standing_torque")] == -1
    assert (weights.spread(np.ones((1, weights.size)))[0, weights.member == -1] == 0.0).all()


@pytest.mark.parametrize(("group", "joints"), [("ankles", 4), ("legs", 12), ("all", 23)])
def test_only_joints_of_the_group_move(profile: RobotProfile, weak: Rollout, group: JointGroup, joints: int) -> None:
    moved = (_weights(profile, weak, group).member >= 0).any(axis=1)
    assert moved.sum() == joints
    np.testing.assert_array_equal(moved, joints_of_group(profile, group))


def test_refinement_lowers_the_replay_error(profile: RobotProfile, weak: Rollout) -> None:
    segments = cut_segments(weak, profile, 10, 25)
    weights = _weights(profile, weak)
    start = DeltaActionModel(profile, 0.5)
    simulator = MujocoSimulator(profile, NOMINAL, 4 * (weights.size + 1))
    refiner = Refiner(simulator, profile, weights, start, prior=0.01)
    error = refiner.step(segments)
    assert error < 0.5
    reached = [
        coordinates(*replay_with_joints(simulator, profile, segments, DeltaCorrection(m.predict, 0.02)))
        for m in (start, refiner.model)
    ]
    zero, after = (away(r, segments) for r in reached)
    assert (after / np.maximum(zero.mean(axis=0), 1e-4)).mean() == pytest.approx(error, rel=1e-6)
    resumed = Refiner(simulator, profile, weights, start, prior=0.01)
    resumed.memory = refiner.memory
    assert refiner.step(segments) <= error
    resumed.step(segments)
    np.testing.assert_array_equal(resumed.value, refiner.value)
    _check_ensemble(refiner, resumed)


def _check_ensemble(refiner: Refiner, resumed: Refiner) -> None:
    """It scatters, the same after a resume; where all episodes ask for the same it does not."""
    centre = refiner.model.linear.detach().numpy()
    members = [m.linear.detach().numpy() for m in refiner.ensemble(6, 0)]
    assert np.std(members, axis=0).max() > 1e-4
    assert np.abs(np.mean(members, axis=0) - centre).max() < 3 * np.std(members, axis=0).max()
    np.testing.assert_array_equal(members, [m.linear.detach().numpy() for m in resumed.ensemble(6, 0)])
    memory = refiner.memory
    memory[3 + len(refiner.value) :] = 1.0
    refiner.memory = memory
    for member in refiner.ensemble(6, 0):
        np.testing.assert_allclose(member.linear.detach().numpy(), centre, atol=1e-12)


@pytest.mark.slow
def test_a_stiffness_gap_is_met_by_its_analytic_delta(profile: RobotProfile, make_rollout: MakeRollout) -> None:
    """§12.3: kp → β kp asks for Δq = (β − 1)(q_target − q); with kd and limits scaled too, of the whole PD torque."""
    linear = _refined(profile, make_rollout(PhysicsSettings(strength={"knee": 0.8}), 4, 50, 0), 10, 2)
    knee = profile.joint_names.index("left_knee_joint")
    torque = linear[:, OWN_FEATURES.index("torque")] + linear[:, OWN_FEATURES.index("standing_torque")]
    assert torque[knee] == pytest.approx(-0.2, abs=0.04)
    arms = [i for i, name in enumerate(profile.joint_names) if "shoulder" in name]
    assert np.abs(torque[arms]).max() < 0.04


@pytest.mark.slow
def test_a_damping_gap_is_met_by_its_own_form(profile: RobotProfile, make_rollout: MakeRollout) -> None:
    """§12.3: Δq = −Δd · velocity / kp. Other features resemble it on sines, so the corrections are compared."""
    rollout = make_rollout(PhysicsSettings(damping_of={"shoulder": 1.0}), 4, 50, 0)
    model = DeltaActionModel(profile, 0.5)
    features = transition_features(model, rollout, rollout.transitions())[:, :, : len(OWN_FEATURES)]
    fitted = (features * _refined(profile, rollout, 10, 2)).sum(axis=-1)
    shoulder = np.array(["shoulder" in name for name in profile.joint_names])
    exact = -1.0 * features[:, shoulder, OWN_FEATURES.index("velocity")]
    size = np.sqrt((exact**2).mean())
    assert np.sqrt(((fitted[:, shoulder] - exact) ** 2).mean()) < 0.4 * size
    assert np.sqrt((fitted[:, ~shoulder] ** 2).mean()) < 0.1 * size


@pytest.mark.slow
def test_a_delay_is_met_by_the_change_of_the_target(profile: RobotProfile, make_rollout: MakeRollout) -> None:
    """Δq = q_target of before − q_target, which leaves nothing of the gap."""
    late = make_rollout(PhysicsSettings(action_delay=1), 4, 50, 0)
    linear = _refined(profile, late, 10, 3)
    shoulder = profile.joint_names.index("left_shoulder_pitch_joint")
    assert linear[shoulder, OWN_FEATURES.index("target_change")] == pytest.approx(-1.0, abs=0.1)


def _set(profile: RobotProfile, weights: dict[str, float], joints: str = "") -> DeltaCorrection:
    """A model with these weights of own features, for joints whose name contains `joints`."""
    model = DeltaActionModel(profile, 0.5)
    with torch.no_grad():
        for row, name in zip(model.linear, profile.joint_names, strict=True):
            for feature, weight in weights.items():
                row[OWN_FEATURES.index(feature)] = weight if joints in name else 0.0
    return DeltaCorrection(model.predict, 0.02)


@pytest.mark.parametrize("beta", [0.8, 1.2])
def test_the_analytic_delta_of_a_stiffness_leaves_nothing_of_the_gap(
    profile: RobotProfile, make_rollout: MakeRollout, beta: float
) -> None:
    """§12.3: kp → β kp is met by Δq = (β − 1)(q_target − q), exactly, as it acts at each physics step."""
    segments = cut_segments(make_rollout(PhysicsSettings(kp_factor={"knee": beta}), 2, 40, 1), profile, 40)
    knee = profile.joint_names.index("left_knee_joint")
    share = beta - 1.0
    exact = _set(profile, {"torque": share, "velocity": share * profile.kd[knee]}, "knee")
    nominal = MujocoSimulator(profile, NOMINAL, 2)
    assert replay_distance(nominal, profile, segments, exact).max() < 1e-6
    assert replay_distance(nominal, profile, segments).max() > 1e-4


def test_the_analytic_delta_of_a_damping_in_explicit_physics(profile: RobotProfile, make_rollout: MakeRollout) -> None:
    """§12.3: kd → γ kd is met by Δq = −(γ − 1) kd/kp · velocity, exactly where torques are explicit."""
    explicit = PhysicsSettings(drive="explicit", armature=0.03)
    segments = cut_segments(
        make_rollout(explicit.model_copy(update={"kd_factor": {"shoulder_pitch": 1.5}}), 2, 40, 1), profile, 40
    )
    kd = profile.kd[profile.joint_names.index("left_shoulder_pitch_joint")]
    exact = _set(profile, {"velocity": -0.5 * kd}, "shoulder_pitch")
    nominal = MujocoSimulator(profile, explicit, 2)
    assert replay_distance(nominal, profile, segments, exact).max() < 1e-6
    assert replay_distance(nominal, profile, segments).max() > 1e-4


def test_the_exact_delay_leaves_nothing_of_the_gap(profile: RobotProfile, make_rollout: MakeRollout) -> None:
    """Also at the start of an episode, where a delayed simulator holds the joints where they are."""
    segments = cut_segments(make_rollout(PhysicsSettings(action_delay=1), 2, 40, 1), profile, 20)
    exact = _set(profile, {"target_change": -1.0})
    assert replay_distance(MujocoSimulator(profile, NOMINAL, 4), profile, segments, exact).max() < 1e-6
