"""Recording: a playback becomes a rollout whose rows follow the simulator step by step."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.environments.observations import ObservationSettings
from asap_core.environments.playback import ActingRule, Playback, perturbed_starts, play
from asap_core.environments.reference import ReferenceMotion
from asap_core.errors import StageError
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import Source
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.rollouts.recorder import PolicyIdentity, to_rollout
from asap_core.rollouts.settings import TwinSettings
from asap_core.simulators.mujoco import MujocoSimulator

PROFILE = get_profile("g1_23dof")
SOURCE = {"kind": "twin"}


@pytest.fixture(scope="module")
def standing() -> ReferenceMotion:
    frames = 16
    motion = RobotMotion(
        name="stand",
        robot=PROFILE.name,
        fps=50.0,
        root_pos=np.tile([0.0, 0.0, 0.79], (frames, 1)),
        root_quat=np.tile([1.0, 0.0, 0.0, 0.0], (frames, 1)),
        joint_names=tuple(PROFILE.joint_names),
        joint_pos=np.tile(PROFILE.default_joint_pos, (frames, 1)),
        source=Source(path="made", sha256="0" * 64, tool="test"),
    )
    return ReferenceMotion.from_motion(motion, PROFILE, 0.02)


def _run(reference: ReferenceMotion, physics: PhysicsSettings) -> Playback:
    rule = ActingRule(ObservationSettings(terms=("dof_pos",), history_terms=()), "default", np.full(23, 0.25))
    frames = np.zeros(3, np.intp)
    return play(
        lambda observation: 0.3 * np.sin(10 * observation[:, :23]),
        rule,
        reference,
        PROFILE,
        MujocoSimulator(PROFILE, physics, 3),
        perturbed_starts(reference, frames, seed=5),
        frames,
    )


def test_each_row_steps_to_the_next(standing: ReferenceMotion) -> None:
    physics = TwinSettings().physics(PhysicsSettings())
    rollout = to_rollout(_run(standing, physics), standing, PROFILE, PolicyIdentity("p", "s"), SOURCE)
    rows = rollout.transitions()
    assert len(rows) == 3 * 15
    twin = MujocoSimulator(PROFILE, physics, len(rows))
    twin.set_state(np.arange(len(rows)), rollout.state.take(rows))
    twin.step(rollout.joint_target[rows])
    np.testing.assert_allclose(twin.state.joint_pos, rollout.state.joint_pos[rows + 1], atol=1e-12)
    np.testing.assert_allclose(twin.state.root_ang_vel, rollout.state.root_ang_vel[rows + 1], atol=1e-9)
    np.testing.assert_allclose(twin.joint_torque(), rollout.joint_torque[rows], atol=1e-7)


def test_target_is_base_plus_scale_times_action(standing: ReferenceMotion) -> None:
    rollout = to_rollout(_run(standing, PhysicsSettings()), standing, PROFILE, PolicyIdentity("p", "s"), SOURCE)
    rows = rollout.transitions()
    expected = PROFILE.default_joint_pos + 0.25 * rollout.action[rows]
    np.testing.assert_allclose(rollout.joint_target[rows], expected, atol=1e-12)
    assert np.isnan(rollout.action[~rollout.valid]).all()


def test_failed_rows_are_cut(standing: ReferenceMotion) -> None:
    run = _run(standing, PhysicsSettings())
    run.alive[4:, 1] = False
    run.alive[1:, 2] = False
    rollout = to_rollout(run, standing, PROFILE, PolicyIdentity("p", "s"), SOURCE)
    assert np.bincount(rollout.episode).tolist() == [16, 4]
    np.testing.assert_array_equal(rollout.state.joint_pos[16:20], np.stack([s.joint_pos[1] for s in run.states[:4]]))


def test_nothing_alive_is_an_error(standing: ReferenceMotion) -> None:
    run = _run(standing, PhysicsSettings())
    run.alive[1:] = False
    with pytest.raises(StageError, match="policy p on stand"):
        to_rollout(run, standing, PROFILE, PolicyIdentity("p", "s"), SOURCE)


def test_the_twin_alters_only_what_it_says() -> None:
    nominal = PhysicsSettings(friction=0.7)
    twin = TwinSettings().physics(nominal)
    assert (twin.friction, twin.physics_dt, twin.control_dt) == (0.7, nominal.physics_dt, nominal.control_dt)
    assert (twin.armature, twin.frictionloss, twin.added_mass) == (0.03, 0.5, {"torso_link": 2.0})
