"""Open and closed loop on the simulator: no gap, no error; a correct delta closes the gap; equal starts for all."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.environments.observations import ObservationSettings
from asap_core.environments.playback import ActingRule
from asap_core.evaluation.closed_loop import ClosedLoopResult, Contestant, closed_loop
from asap_core.evaluation.open_loop import OPEN_LOOP_METRICS, open_loop
from asap_core.evaluation.settings import EvaluateSettings
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.rollouts import Rollout
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.simulators.protocol import RobotState
from tests.alignment.conftest import assemble, standing_state
from tests.robot_motions import knee_bend_reference

PROFILE = get_profile("g1_23dof")
SHIFT = 0.03


class ConstantShift:
    """The exact correction of a target whose commands are all shifted by `SHIFT` rad."""

    def reset(self, ids: np.ndarray) -> None:
        """Nothing to forget."""

    def recall(self, state: RobotState, joint_target: np.ndarray) -> None:
        """Nothing to remember."""

    def __call__(self, state: RobotState, joint_target: np.ndarray, time_s: float) -> np.ndarray:
        """Constant (N, J)."""
        return np.full_like(joint_target, SHIFT)


@pytest.fixture(scope="module")
def shifted() -> Rollout:
    """Three episodes of one second on a robot that adds `SHIFT` to every command."""
    physics, num = PhysicsSettings(), 3
    simulator = MujocoSimulator(PROFILE, physics, num)
    simulator.set_state(np.arange(num), standing_state(PROFILE, num, 0))
    states, target = [simulator.state], np.tile(PROFILE.default_joint_pos, (num, 1))
    for _ in range(50):
        simulator.step(target + SHIFT)
        states.append(simulator.state)
    return assemble(PROFILE, physics, states, np.tile(target[:, None], (1, 50, 1)), 0)


def test_the_exact_delta_leaves_no_open_loop_error(shifted: Rollout) -> None:
    simulator = MujocoSimulator(PROFILE, PhysicsSettings(), 4)
    result = open_loop(shifted, PROFILE, simulator, {"zero": None, "delta": ConstantShift()})
    assert result.row("delta", 1.0).figures["E_g_mpjpe"].mean < 1e-3
    assert result.row("zero", 0.25).figures["E_g_mpjpe"].mean > 1.0
    assert result.ratio(1.0) < 1e-3
    assert {(r.model, r.horizon_s) for r in result.rows} == {
        (m, h) for m in ("zero", "delta") for h in (0.25, 0.5, 1.0)
    }
    row = result.row("zero", 1.0)
    assert tuple(row.figures) == OPEN_LOOP_METRICS
    assert row.figures["E_g_mpjpe"].n == 3
    assert row.figures["E_end"].mean == pytest.approx(result.growth["zero"][-1])
    assert row.figures["E_g_mpjpe"].mean == pytest.approx(result.growth["zero"].mean())


def _closed(scale: float) -> ClosedLoopResult:
    rule = ActingRule(ObservationSettings(terms=("dof_pos",), history_terms=()), "reference", np.full(23, 0.25))
    contestants = [
        Contestant("vanilla", 0, lambda o: np.zeros((len(o), 23)), rule),
        Contestant("asap", 0, lambda o: np.zeros((len(o), 23)), rule),
        Contestant("asap", 1, lambda o: np.full((len(o), 23), scale), rule),
    ]
    worlds = {name: MujocoSimulator(PROFILE, PhysicsSettings(), 4) for name in ("target", "nominal")}
    notes: list[str] = []
    result = closed_loop(
        contestants, worlds, knee_bend_reference(), PROFILE, EvaluateSettings(starts=4), 3, notes.append
    )
    assert len(notes) == 6
    return result


def test_equal_policies_score_equally_on_the_same_starts() -> None:
    result = _closed(scale=0.0)
    vanilla = result.values("target", "vanilla", "E_g_mpjpe")
    both = result.values("target", "asap", "E_g_mpjpe")
    np.testing.assert_array_equal(both, np.tile(vanilla, 2))
    np.testing.assert_array_equal(vanilla, result.values("nominal", "vanilla", "E_g_mpjpe"))
    assert len(set(vanilla)) == 4
    assert result.seeds("target", "asap") == [0] * 4 + [1] * 4


def test_a_policy_that_throws_itself_down_fails() -> None:
    result = _closed(scale=8.0)
    assert result.values("target", "asap", "success")[4:].tolist() == [0.0] * 4
    gap = result.gap[("target", "asap")]
    assert len(gap) == knee_bend_reference().num_frames
    assert np.nanmax(gap) < 500.0
