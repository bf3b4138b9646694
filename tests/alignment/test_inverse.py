"""The training-free uses of a delta against closed forms: Δq = c (q_target − q) of joints at rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from asap_core.alignment.corrected import Corrected
from asap_core.alignment.corrected_file import load_corrected, save_corrected
from asap_core.alignment.delta_model import DeltaActionModel, DeltaCorrection
from asap_core.alignment.features import OWN_FEATURES
from asap_core.alignment.inverse import (
    FIXED_POINT_STEPS,
    GRADIENT_RATE,
    GRADIENT_STEPS,
    InvertedSimulator,
    fixed_point,
    gradient_search,
)
from asap_core.errors import InputFileError
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.mujoco import MujocoSimulator
from tests.alignment.conftest import standing_state

PROFILE = get_profile("g1_23dof")
SHARE = -0.2
"""c: a drive with 0.8 of the nominal stiffness."""
REST = replace(standing_state(PROFILE, 3, 0), joint_vel=np.zeros((3, 23)))
WANTED = REST.joint_pos + 0.1


def stiffness_model(share: float, limit: float = 1.0) -> DeltaActionModel:
    """Δq = share · PD torque / kp, within the torque limits."""
    model = DeltaActionModel(PROFILE, limit)
    with torch.no_grad():
        model.linear[:, OWN_FEATURES.index("torque")] = share
    return model


def solved(solve: object, model: DeltaActionModel) -> np.ndarray:
    memory = DeltaCorrection(model.predict, 0.02)
    memory.recall(REST, WANTED)
    return solve(model, lambda target: memory.inputs(REST, target), WANTED)  # type: ignore[operator,no-any-return]


def test_the_model_is_the_linear_one_here() -> None:
    memory = DeltaCorrection(stiffness_model(SHARE).predict, 0.02)
    np.testing.assert_allclose(memory(REST, WANTED, 0.0), SHARE * 0.1, atol=1e-9)


def test_fixed_point_goes_to_the_command_that_is_carried_to_the_wanted_target() -> None:
    exact = REST.joint_pos + 0.1 / (1.0 + SHARE)
    left = np.abs(SHARE) ** (FIXED_POINT_STEPS + 1) * 0.1 / (1.0 + SHARE)
    np.testing.assert_allclose(np.abs(solved(fixed_point, stiffness_model(SHARE)) - exact), left, atol=1e-9)


def test_gradient_search_descends_as_its_closed_form() -> None:
    exact = REST.joint_pos + 0.1 / (1.0 + SHARE)
    shrink = (1.0 - 2.0 * GRADIENT_RATE * (1.0 + SHARE) ** 2) ** GRADIENT_STEPS
    expected = exact + shrink * (WANTED - exact)
    np.testing.assert_allclose(solved(gradient_search, stiffness_model(SHARE)), expected, atol=1e-9)


@pytest.mark.parametrize("solve", [fixed_point, gradient_search])
def test_without_a_delta_the_target_is_itself(solve: object) -> None:
    physics = PhysicsSettings()
    plain = MujocoSimulator(PROFILE, physics, 3)
    inverted = InvertedSimulator(MujocoSimulator(PROFILE, physics, 3), stiffness_model(0.0), solve)  # type: ignore[arg-type]
    for simulator in (plain, inverted):
        simulator.set_state(np.arange(3), REST)
        for _ in range(3):
            simulator.step(WANTED)
    np.testing.assert_allclose(inverted.state.joint_pos, plain.state.joint_pos, atol=1e-12)


def test_an_inverted_stiffness_makes_a_weak_robot_act_as_the_nominal_one() -> None:
    """The delta of a weak robot, inverted before it, cancels: exact where it acts, held over a control step nearly."""
    weak = PhysicsSettings(kp_factor={"": 1.0 + SHARE})
    nominal = MujocoSimulator(PROFILE, PhysicsSettings(), 3)
    plain = MujocoSimulator(PROFILE, weak, 3)
    inverted = InvertedSimulator(MujocoSimulator(PROFILE, weak, 3), stiffness_model(SHARE), fixed_point)
    for simulator in (nominal, plain, inverted):
        simulator.set_state(np.arange(3), REST)
        simulator.step(WANTED)
    gap = [np.abs(s.state.joint_pos - nominal.state.joint_pos).mean() for s in (plain, inverted)]
    assert gap[1] < 0.5 * gap[0]


def test_memory_holds_the_commands_that_were_given() -> None:
    model = DeltaActionModel(PROFILE, 1.0)
    memory = DeltaCorrection(model.predict, 0.02)
    for target in (1.0, 2.0):
        memory.recall(REST, np.full((3, 23), target))
        memory.amend(np.full((3, 23), 10.0 * target))
    memory.recall(REST, WANTED)
    last, earlier = memory.inputs(REST, WANTED)[4:6]
    assert (last == 20.0).all()
    assert (earlier == 10.0).all()


def test_a_finished_alignment_comes_back_as_it_was(tmp_path: Path) -> None:
    physics = PhysicsSettings(added_mass={"torso_link": 1.0}, action_delay_s=0.0123456789)
    made = Corrected("two", physics, stiffness_model(SHARE, limit=0.3), report={"gain": 1.5})
    save_corrected(made, tmp_path / "fit.pt")
    back = load_corrected(tmp_path / "fit.pt", PROFILE)
    assert (back.name, back.physics, back.report) == (made.name, made.physics, made.report)
    assert made.correction is not None
    assert back.correction is not None
    np.testing.assert_array_equal(back.correction(REST, WANTED, 0.0), made.correction(REST, WANTED, 0.0))
    (tmp_path / "fit.pt").write_bytes(b"cut")
    with pytest.raises(InputFileError, match="not a finished alignment"):
        load_corrected(tmp_path / "fit.pt", PROFILE)
    with pytest.raises(ValueError, match="state residual"):
        save_corrected(Corrected("moved", physics, residual=lambda a, b, c: c), tmp_path / "fit.pt")
