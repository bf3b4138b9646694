"""A plain tracking environment as a user of `mujoco` and `rsl-rl` would write it: the peer of the bench.

Public functions only: `mujoco.rollout` on threads, numpy, torch, `OnPolicyRunner`. The same robots, physics, networks,
batch and epochs as the environment beside it, and observations of the same widths; less in them than in ours: joint and
root tracking for a reward, no link states, no noise, no curricula.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import mujoco
import numpy as np
import torch
from mujoco import rollout
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

from asap_core.environments.reference import ReferenceMotion
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.training.settings import PpoSettings

_FRAMES, _FUTURE = 5, 7
_FAR_M = 0.5


class PlainEnv(VecEnv):
    """N robots that track a reference; `step` takes raw actions of 0.25 rad about the default pose."""

    def __init__(
        self, profile: RobotProfile, reference: ReferenceMotion, physics: PhysicsSettings, num_envs: int, threads: int
    ) -> None:
        self.num_envs, self.num_actions, self.device = num_envs, profile.num_joints, "cpu"
        self.cfg: dict[str, Any] = {}
        self.max_episode_length = reference.num_frames
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        model = build_model(profile, physics)
        self._substeps, self._default = physics.substeps, profile.default_joint_pos
        self._rollout = rollout.Rollout(nthread=threads if threads > 1 else 0)
        self._models = [model] * num_envs
        self._datas = [mujoco.MjData(model) for _ in range(max(1, threads))]
        size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self._state = np.zeros((num_envs, size))
        self._qpos = self._state[:, 1 : 1 + model.nq]
        self._qvel = self._state[:, 1 + model.nq : 1 + model.nq + model.nv]
        s = reference.state
        self._ref_qpos = np.hstack([s.root_pos, s.root_quat, s.joint_pos])
        self._ref_qvel = np.hstack([s.root_lin_vel, s.root_ang_vel, s.joint_vel])
        self._rng = np.random.default_rng(0)
        self._frame = np.zeros(num_envs, int)
        self._action = np.zeros((num_envs, self.num_actions))
        self._history = np.zeros((num_envs, _FRAMES, 3 * self.num_actions + 7), np.float32)
        self._reset(np.arange(num_envs))

    def _reset(self, ids: np.ndarray) -> None:
        self._frame[ids] = self._rng.integers(0, len(self._ref_qpos) - 1, len(ids))
        self._qpos[ids] = self._ref_qpos[self._frame[ids]]
        self._qvel[ids] = self._ref_qvel[self._frame[ids]]
        self._action[ids] = 0.0
        self._history[ids] = 0.0

    def _gravity(self) -> np.ndarray:
        w, x, y, z = self._qpos[:, 3:7].T
        return np.stack([2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1], axis=1)

    def get_observations(self) -> TensorDict:
        """`actor` 380 wide, five frames of proprioception; `critic` 557, with velocities and the reference ahead."""
        last = len(self._ref_qpos) - 1
        joints, rates = self._qpos[:, 7:] - self._default, 0.05 * self._qvel[:, 6:]
        parts = [self._action, 0.25 * self._qvel[:, 3:6], joints, rates, self._gravity(), self._frame[:, None] / last]
        self._history = np.roll(self._history, 1, axis=1)
        self._history[:, 0] = np.concatenate(parts, axis=1)
        actor = self._history.reshape(self.num_envs, -1)
        ahead = np.minimum(self._frame[:, None] + np.arange(1, _FUTURE + 1), last)
        future = (self._ref_qpos[ahead][..., 7:] - self._default).reshape(self.num_envs, -1)
        root = self._qpos[:, :7] - self._ref_qpos[self._frame, :7]
        speed = self._qvel[:, :6] - self._ref_qvel[self._frame, :6]
        critic = np.concatenate([actor, future, root, speed, self._qvel[:, :3]], axis=1, dtype=np.float32)
        values = {"actor": torch.from_numpy(actor.copy()), "critic": torch.from_numpy(critic)}
        return TensorDict(values, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """One control step; robots whose episodes end start anew."""
        action = np.clip(actions.numpy().astype(float), -100.0, 100.0)
        target = self._default + 0.25 * action
        control = np.repeat(target[:, None], self._substeps, axis=1)
        states, _ = self._rollout.rollout(self._models, self._datas, self._state, control)
        self._state[:] = states[:, -1]
        self._frame += 1
        joint = np.mean((self._qpos[:, 7:] - self._ref_qpos[self._frame, 7:]) ** 2, axis=1)
        away = np.linalg.norm(self._qpos[:, :3] - self._ref_qpos[self._frame, :3], axis=1)
        rate = np.sum((action - self._action) ** 2, axis=1)
        reward = 0.02 * (np.exp(-joint / 0.1) + np.exp(-(away**2) / 0.1) - 0.01 * rate)
        failed = (away > _FAR_M) | (np.abs(self._gravity()[:, :2]).max(axis=1) > 0.8) | ~np.isfinite(away)
        timed_out = ~failed & (self._frame >= len(self._ref_qpos) - 1)
        self._action[:] = action
        self._reset(np.nonzero(failed | timed_out)[0])
        extras = {"time_outs": torch.from_numpy(timed_out)}
        reward = np.nan_to_num(reward).astype(np.float32)
        return self.get_observations(), torch.from_numpy(reward), torch.from_numpy(failed | timed_out), extras


def plain_runner(env: PlainEnv, ppo: PpoSettings) -> OnPolicyRunner:
    """rsl-rl's runner with the networks, batch and epochs of `ppo`."""
    model = {
        "class_name": "MLPModel",
        "hidden_dims": list(ppo.hidden),
        "activation": "elu",
        "obs_normalization": ppo.normalise_observations,
    }
    gaussian = {"class_name": "GaussianDistribution", "init_std": ppo.init_std, "std_type": "log"}
    algorithm = {
        "class_name": "PPO",
        "num_learning_epochs": ppo.epochs,
        "num_mini_batches": ppo.mini_batches,
        "learning_rate": ppo.learning_rate,
        "gamma": ppo.gamma,
        "lam": ppo.lam,
        "entropy_coef": ppo.entropy,
        "desired_kl": ppo.desired_kl,
        "schedule": "adaptive",
    }
    config = {
        "num_steps_per_env": ppo.steps_per_env,
        "save_interval": 10**9,
        "obs_groups": {"actor": ["actor"], "critic": ["critic"]},
        "algorithm": algorithm,
        "actor": {**model, "distribution_cfg": gaussian},
        "critic": model,
    }
    with contextlib.redirect_stdout(io.StringIO()):
        return OnPolicyRunner(env, config, log_dir=None, device="cpu")
