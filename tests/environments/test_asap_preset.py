"""Preset `asap` against the figures of the paper and its released configuration, term by term."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import yaml

from asap_core.config import Params, load_params
from asap_core.environments.curricula import Ramp
from asap_core.environments.observations import ObservationLayout
from asap_core.environments.rewards import PENALTIES, TERMS
from asap_core.environments.terminations import TerminationCurriculum
from asap_core.errors import ConfigError, UnknownNameError
from asap_core.presets import apply_preset, preset_names
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.training.ppo import PpoTrainer
from asap_core.training.published import OBSERVATION
from asap_core.training.settings import PpoSettings
from tasks._training import make_env
from tests.asap_env import PROFILE, asap_params_in, make_asap_env
from tests.robot_motions import knee_bend_reference

TRACKING_TERMS = {
    "body_position": 1.0,
    "vr_3point": 1.6,
    "body_position_feet": 2.1,
    "body_rotation": 0.5,
    "body_velocity": 0.5,
    "body_ang_velocity": 0.5,
    "joint_position": 0.75,
    "joint_velocity": 0.5,
}
PENALTY_TERMS = {
    "torques": -1e-6,
    "action_rate": -0.5,
    "feet_orientation": -2.0,
    "feet_heading": -0.1,
    "slippage": -1.0,
    "limits_dof_pos": -10.0,
    "limits_dof_vel": -5.0,
    "limits_torque": -5.0,
}


@pytest.fixture
def params(repo_root, tmp_path) -> Params:
    return asap_params_in(tmp_path, repo_root)


def test_actor_is_that_of_the_published_policies(params):
    actor = params.tracking.actor
    assert actor.model_copy(update={"noise": {}}) == OBSERVATION
    assert actor.noise == {"base_ang_vel": 0.3, "dof_pos": 0.01, "dof_vel": 1.0, "projected_gravity": 0.2}


def test_critic_is_557_wide_with_the_published_slices(params):
    layout = ObservationLayout(params.tracking.critic, PROFILE)
    assert layout.width == 557
    assert {k: (v.start, v.stop) for k, v in layout.slices.items()} == {
        "actions": (0, 23),
        "base_ang_vel": (23, 26),
        "base_lin_vel": (26, 29),
        "dif_local_rigid_body_pos": (29, 110),
        "dof_pos": (110, 133),
        "dof_vel": (133, 156),
        "history": (156, 472),
        "local_ref_rigid_body_pos": (472, 553),
        "projected_gravity": (553, 556),
        "ref_motion_phase": (556, 557),
    }
    assert layout.history_width == 4 * 79
    assert params.tracking.critic.scales["base_lin_vel"] == 2.0
    assert params.tracking.critic.noise == params.tracking.actor.noise


def test_rewards_are_table_one(params):
    assert params.tracking.rewards == TRACKING_TERMS | PENALTY_TERMS
    assert set(PENALTY_TERMS) == PENALTIES
    assert params.tracking.termination_penalty == pytest.approx(-200 * params.simulation.physics.control_dt)


def test_perfect_tracking_earns_0_159_per_step_less_what_standing_costs(params):
    """On the reference of the next step, every kernel is 1; the penalties are added here by hand."""
    env = make_asap_env(params)
    everyone = np.arange(4)
    frame = np.full(4, 10)
    env.simulator.set_state(everyone, env.reference.state.take(frame + 1))
    env._frame[:] = frame
    context = env._reward_context(env._eyes.look(env.simulator.state), env._last_action)
    kernels = 0.02 * sum(w * TERMS[n](context) for n, w in TRACKING_TERMS.items())
    position_like = 0.02 * sum(w * TERMS[n](context) for n, w in TRACKING_TERMS.items() if not n.endswith("velocity"))
    assert position_like == pytest.approx((1.5 + 1.6 + 2.1 + 0.5 + 0.75) * 0.02)
    assert kernels == pytest.approx(0.159, abs=2e-5), "link velocities are smoothed, joint velocities are not"
    penalties = 0.02 * sum(w * TERMS[n](context) for n, w in PENALTY_TERMS.items())
    np.testing.assert_allclose(env._reward(context), kernels + 0.1 * penalties)


def test_the_reference_is_one_step_ahead_and_no_further_than_the_end(params):
    env = make_asap_env(params)
    last = env.reference.num_frames - 1
    env._frame[:] = [0, 5, last - 1, last]
    context = env._reward_context(env._eyes.look(env.simulator.state), env._last_action)
    shown = env.reference.state.joint_pos.astype(np.float32)
    np.testing.assert_array_equal(context.ref_joint_pos, shown[[1, 6, last, last]])
    now = make_asap_env(params, reference_lead=0)
    now._frame[:] = 5
    context = now._reward_context(now._eyes.look(now.simulator.state), now._last_action)
    np.testing.assert_array_equal(context.ref_joint_pos, shown[[5] * 4])


def test_termination_distance_takes_64377_updates_from_1_5_to_0_3(params):
    """Factor by factor: ln(0.2) / ln(1 − 2.5e-5) = 64376.6. The estimate ln(5) / 2.5e-5 = 64377.5 says 64378."""
    curriculum = TerminationCurriculum(params.tracking.termination)
    curriculum.mean_share = 1.0
    updates = 0
    while curriculum.distance > 0.3:
        assert curriculum.update(np.ones(1)) == 1
        updates += 1
    assert updates == 64377
    curriculum.distance, curriculum.mean_share = 2.0, 0.0
    assert curriculum.update(np.zeros(1)) == -1
    assert curriculum.distance == 2.0


@pytest.mark.parametrize(
    ("name", "long", "short", "lowest", "highest"),
    [
        ("penalty_scale", 0.1 * (1 + 1e-5), 0.1 * (1 - 1e-5), 0.0, 1.0),
        ("dof_pos", 1.15 * (1 - 2.5e-7), 1.15, 0.95, 1.15),
        ("dof_vel", 1.15 * (1 - 2.5e-7), 1.15 * (1 + 2.5e-7), 0.95, 1.25),
        ("torque", 1.15 * (1 - 2.5e-7), 1.15 * (1 + 2.5e-7), 0.85, 1.25),
    ],
)
def test_penalties_grow_and_soft_limits_close_while_episodes_are_long(params, name, long, short, lowest, highest):
    task = params.tracking
    settings = task.penalty_scale if name == "penalty_scale" else getattr(task.soft_limits, name)
    for level, want in ((1, long), (-1, short), (0, settings.start)):
        ramp = Ramp(settings)
        ramp.update(level)
        assert ramp.value == pytest.approx(want, rel=1e-12)
    assert (settings.lowest, settings.highest) == (lowest, highest)


def test_learner_is_the_papers(params):
    ppo = params.ppo
    assert (ppo.num_envs, ppo.steps_per_env, ppo.epochs, ppo.mini_batches) == (4096, 24, 5, 4)
    assert (ppo.gamma, ppo.lam, ppo.clip, ppo.entropy, ppo.desired_kl, ppo.init_std) == (
        0.99,
        0.95,
        0.2,
        0.01,
        0.01,
        0.8,
    )
    assert ppo.hidden == (512, 256, 128)
    assert ppo.learning_rate == 1e-3
    assert ppo.critic_learning_rate is None
    assert not ppo.normalise_observations


def test_preset_cpu_is_what_params_yaml_ships(repo_root):
    shipped = yaml.safe_load((repo_root / "params.yaml").read_text())
    preset = yaml.safe_load((repo_root / "presets" / "cpu.yaml").read_text())
    assert preset == {name: shipped[name] for name in preset}
    assert set(preset) == set(yaml.safe_load((repo_root / "presets" / "asap.yaml").read_text()))


def test_presets_of_isaac_lab_go_on_top_of_asap_and_of_what_ships(repo_root, tmp_path):
    file = tmp_path / "params.yaml"
    for first, preset in (("asap", "isaaclab"), ("cpu", "isaaclab-cpu")):
        shutil.copy(repo_root / "params.yaml", file)
        apply_preset(file, first, repo_root / "presets")
        before = load_params(file)
        apply_preset(file, preset, repo_root / "presets")
        params = load_params(file)
        assert params.simulation == before.simulation.model_copy(update={"backend": "isaaclab"})
        assert params.tracking == before.tracking
        if preset == "isaaclab":
            assert params.ppo == before.ppo.model_copy(update={"device": "cuda"})
            assert (params.ppo.num_envs, params.ppo.steps_per_env, params.ppo.hidden) == (4096, 24, (512, 256, 128))
        else:
            assert (params.ppo.num_envs, params.ppo.device, params.target.backend) == (16, "cpu", "isaaclab")


def test_there_and_back_restores_every_byte(repo_root, tmp_path):
    file = tmp_path / "params.yaml"
    shutil.copy(repo_root / "params.yaml", file)
    before = file.read_bytes()
    assert apply_preset(file, "cpu", repo_root / "presets") == []
    assert apply_preset(file, "asap", repo_root / "presets") == ["simulation", "tracking", "ppo", "pretrain"]
    assert load_params(file).tracking.action_base == "default"
    apply_preset(file, "cpu", repo_root / "presets")
    assert file.read_bytes() == before


def test_an_unknown_or_broken_preset_changes_nothing(repo_root, tmp_path):
    file = tmp_path / "params.yaml"
    shutil.copy(repo_root / "params.yaml", file)
    before = file.read_bytes()
    with pytest.raises(UnknownNameError, match="unknown preset 'assap'; valid: asap, cpu"):
        apply_preset(file, "assap", repo_root / "presets")
    (tmp_path / "bad.yaml").write_text("ppo:\n  gama: 0.9\n")
    assert preset_names(tmp_path) == ["bad", "params"]
    with pytest.raises(
        ConfigError, match=r"params\.yaml with preset bad: 1 problem.*\n.*did you mean 'gamma'.*\n.*nothing"
    ):
        apply_preset(file, "bad", tmp_path)
    assert file.read_bytes() == before


def test_training_gets_robots_of_the_randomised_physics(params):
    """Table VI: friction and P gains differ between robots, all else is alike; preset cpu has one physics."""
    reference = knee_bend_reference()
    env = make_env(params, reference, 0.005, 3, seed=0)
    assert isinstance(env.simulator, MujocoSimulator)
    ratio = env.simulator._kp / PROFILE.kp
    assert len(np.unique(ratio)) == 3 * 23
    assert 0.925 <= ratio.min() < ratio.max() <= 1.05
    np.testing.assert_array_equal(env.simulator._kd, np.tile(PROFILE.kd, (3, 1)))
    state = reference.state.take(np.zeros(3, np.intp))
    env.simulator.set_state(np.arange(3), state)
    for _ in range(10):
        env.simulator.step(np.tile(PROFILE.default_joint_pos + 0.1, (3, 1)))
    end = env.simulator.state.joint_pos
    assert np.abs(end[0] - end[1]).max() > 1e-4


def test_the_critics_rate_follows_the_actors_and_nothing_is_normalised(params):
    ppo = PpoSettings.model_validate(params.ppo.model_dump() | {"num_envs": 4, "hidden": (16,), "steps_per_env": 4})
    trainer = PpoTrainer(make_asap_env(params), ppo, seed=0)
    trainer.iterate()
    rates = [group["lr"] for group in trainer.algorithm.optimizer.param_groups]
    assert rates[0] == rates[1] == trainer.algorithm.learning_rate
    assert not any("normal" in name for name in trainer.actor.state_dict())
    apart = PpoTrainer(make_asap_env(params), ppo.model_copy(update={"critic_learning_rate": 7e-4}), seed=0)
    apart.iterate()
    assert apart.algorithm.optimizer.param_groups[1]["lr"] == 7e-4
