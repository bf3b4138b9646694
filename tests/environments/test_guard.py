"""The state guard: what it holds to be an explosion, what it keeps, and that it writes once."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from asap_core.environments.guard import FRAMES, exploded, read_dump
from asap_core.environments.settings import TrackingSettings
from asap_core.environments.tracking import TrackingEnv
from asap_core.errors import InputFileError
from asap_core.reporting.dump import dump_rows, worst_joints
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.mujoco import MujocoSimulator
from flows.cli import app
from tests.robot_motions import knee_bend_reference

PROFILE = get_profile("g1_23dof")
KNEE = PROFILE.joint_index("left_knee_joint")
TASK = TrackingSettings(rewards={"body_position": 1.0})


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """MuJoCo writes its warnings of unstable states to a file in the present folder."""
    monkeypatch.chdir(tmp_path)


def make_env(num_envs: int = 3) -> TrackingEnv:
    sim = MujocoSimulator(PROFILE, PhysicsSettings(), num_envs)
    return TrackingEnv(sim, PROFILE, knee_bend_reference(seconds=8.0), TASK, seed=0)


def break_robot(env: TrackingEnv, robot: int, **fields: float) -> None:
    state = env.simulator.state.take(np.array([robot]))
    for name, value in fields.items():
        getattr(state, name)[0, KNEE if name.startswith("joint") else 0] = value
    env.simulator.set_state(np.array([robot]), state)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("joint_pos", np.nan),
        ("joint_vel", np.inf),
        ("root_pos", np.nan),
        ("root_quat", np.nan),
        ("joint_vel", 1001.0),
        ("root_lin_vel", -101.0),
        ("root_ang_vel", 101.0),
    ],
)
def test_explosions_are_told_from_falls(field, value):
    state = make_env().simulator.state
    assert not exploded(state).any()
    getattr(state, field)[1, 0] = value
    assert exploded(state).tolist() == [False, True, False]


def test_a_state_that_is_no_number_ends_the_episode_and_is_dumped_once(tmp_path):
    env = make_env()
    env.guard.path = tmp_path / "exploded.npz"
    rng = np.random.default_rng(0)
    actions = [rng.normal(0, 0.05, (3, 23)) for _ in range(FRAMES + 20)]
    for action in actions:
        env.step(action)
    assert not env.guard.path.exists()
    break_robot(env, 1, joint_vel=np.nan)
    result = env.step(actions[0])
    assert result.failed[1]
    assert np.isfinite(result.reward).all()
    assert np.isfinite(env.simulator.state.joint_pos).all(), "the robot starts anew"
    dump = read_dump(env.guard.path)
    assert dump.robots == (1,)
    assert dump.action.shape == (FRAMES, 1, 23)
    np.testing.assert_array_equal(dump.action[-1, 0], actions[0][1])
    np.testing.assert_array_equal(dump.action[-2, 0], actions[-1][1])
    assert np.isfinite(dump.states["joint_vel"][-2]).all()
    assert not np.isfinite(dump.states["joint_vel"][-1]).all()
    assert dump.ref_frame[-1, 0] > 0
    written = env.guard.path.read_bytes()
    break_robot(env, 2, joint_vel=np.nan)
    assert env.step(actions[0]).failed[2]
    assert env.guard.path.read_bytes() == written


def test_the_simulator_does_not_replace_an_exploded_state_in_silence():
    """MuJoCo's own reaction is to put the robot back to its zero pose and go on."""
    sim = MujocoSimulator(PROFILE, PhysicsSettings(), 2)
    state = knee_bend_reference().state.take(np.zeros(2, np.intp))
    state.joint_vel[0, KNEE] = np.nan
    sim.set_state(np.arange(2), state)
    for _ in range(3):
        sim.step(np.tile(PROFILE.default_joint_pos, (2, 1)))
    assert exploded(sim.state).tolist() == [True, False]
    sim.set_state(np.arange(1), knee_bend_reference().state.take(np.zeros(1, np.intp)))
    for _ in range(3):
        sim.step(np.tile(PROFILE.default_joint_pos, (2, 1)))
    np.testing.assert_allclose(sim.state.joint_pos[0], sim.state.joint_pos[1], atol=0.2)
    assert not exploded(sim.state).any()


def test_show_dump_names_the_joint_and_draws_it(tmp_path):
    env = make_env()
    env.guard.path = tmp_path / "exploded.npz"
    for _ in range(4):
        env.step(np.zeros((3, 23)))
    break_robot(env, 2, joint_vel=5000.0)
    env.step(np.zeros((3, 23)))
    dump = read_dump(env.guard.path)
    assert 2 in dump.robots
    row = dump_rows(dump)[dump.robots.index(2)]
    assert row["steps kept"] == 5
    assert PROFILE.joint_names[worst_joints(dump, dump.robots.index(2))[0]] == row["fastest joint there"]
    out = CliRunner().invoke(app, ["show-dump", str(env.guard.path)])
    assert out.exit_code == 0, out.output
    assert str(row["fastest joint there"]) in out.output
    assert (tmp_path / "exploded.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_that_is_no_dump_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="missing"):
        read_dump(tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(InputFileError, match="no dump"):
        read_dump(tmp_path / "bad.npz")
    np.savez(tmp_path / "other.npz", action=np.zeros(3))
    with pytest.raises(InputFileError, match="no dump"):
        read_dump(tmp_path / "other.npz")
