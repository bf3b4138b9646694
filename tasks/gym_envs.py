"""What the registered tasks of Isaac Lab are made of: the project in the present folder, or in `ASAP_ROOT`.

Its params.yaml, its retargeted motion, its rollouts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asap_core.alignment.delta_action_env import EPISODE_S, DeltaActionEnv, Recorded, delta_settings
from asap_core.config import Params
from asap_core.environments.motion_set import motions_of
from asap_core.environments.settings import TrackingSettings
from asap_core.environments.tracking import TrackingEnv
from asap_core.robots import get_profile
from asap_core.rollouts import kind_folder, load_split
from asap_core.training.settings import PpoSettings
from tasks._training import pretraining_reference
from tasks.stages import read_params

if TYPE_CHECKING:
    from asap_core.environments.isaaclab_env import SceneRobots, Task, TaskCfg, TaskEnv

ROOT_VARIABLE = "ASAP_ROOT"


def tracking_cfg() -> TaskCfg:
    """Isaac Lab's configuration of the tracking task."""
    params = _params()
    reference = pretraining_reference(params, _root())
    longest = max(motion.length_s for motion in motions_of(reference))
    return _task_cfg(params, params.tracking, longest, params.pretrain.physics_dt)


def delta_action_cfg() -> TaskCfg:
    """Isaac Lab's configuration of the delta action task."""
    params = _params()
    return _task_cfg(params, _delta_settings(params), EPISODE_S, params.simulation.physics.physics_dt)


def make_tracking(cfg: TaskCfg, render_mode: str | None = None, **_: Any) -> TaskEnv:
    """Robots that track the motions of `pretrain`, in its physics."""
    params = _params()
    profile, reference = get_profile(params.robot), pretraining_reference(params, _root())
    settings = _pushed_by_isaaclab(params.tracking)

    def task(robots: SceneRobots) -> TrackingEnv:
        return TrackingEnv(robots, profile, reference, settings, _seed(cfg))

    return _make(cfg, params, params.pretrain.physics_dt, task, render_mode)


def make_delta_action(cfg: TaskCfg, render_mode: str | None = None, **_: Any) -> TaskEnv:
    """Robots that replay split `fit` of the project's rollouts, and are to be corrected."""
    params = _params()
    profile, physics = get_profile(params.robot), params.simulation.physics
    kind = params.rollouts.kind
    rollout = load_split(kind_folder(_root(), kind), "fit", profile, physics.control_dt, kind)
    recorded, settings = Recorded(rollout, profile), _pushed_by_isaaclab(_delta_settings(params))

    def task(robots: SceneRobots) -> TrackingEnv:
        return DeltaActionEnv(robots, profile, recorded, settings, _seed(cfg))

    return _make(cfg, params, physics.physics_dt, task, render_mode)


def tracking_agent_cfg() -> Any:
    """rsl-rl's runner for the tracking task: section `ppo`."""
    params = _params()
    return agent_cfg(params.ppo, params.pretrain.iterations, params.pretrain.evaluate_every, "asap_tracking")


def delta_action_agent_cfg() -> Any:
    """rsl-rl's runner for the delta action task: section `ppo`."""
    params = _params()
    return agent_cfg(params.ppo, params.pretrain.iterations, params.pretrain.evaluate_every, "asap_delta_action")


def agent_cfg(ppo: PpoSettings, iterations: int, save_every: int, name: str) -> Any:
    """Isaac Lab's configuration of an rsl-rl runner with the settings of `ppo`."""
    from isaaclab_rl.rsl_rl import RslRlMLPModelCfg, RslRlOnPolicyRunnerCfg, RslRlPpoAlgorithmCfg

    from asap_core.simulators.isaaclab.runtime import device

    network = {"hidden_dims": list(ppo.hidden), "activation": "elu", "obs_normalization": ppo.normalise_observations}
    gaussian = RslRlMLPModelCfg.GaussianDistributionCfg(init_std=ppo.init_std, std_type="log")
    return RslRlOnPolicyRunnerCfg(
        device=device(),
        num_steps_per_env=ppo.steps_per_env,
        max_iterations=iterations,
        save_interval=save_every,
        experiment_name=name,
        init_at_random_ep_len=False,
        obs_groups={"actor": ["policy"], "critic": ["critic"]},
        actor=RslRlMLPModelCfg(distribution_cfg=gaussian, **network),
        critic=RslRlMLPModelCfg(**network),
        algorithm=RslRlPpoAlgorithmCfg(
            num_learning_epochs=ppo.epochs,
            num_mini_batches=ppo.mini_batches,
            learning_rate=ppo.learning_rate,
            schedule="adaptive",
            gamma=ppo.gamma,
            lam=ppo.lam,
            entropy_coef=ppo.entropy,
            desired_kl=ppo.desired_kl,
            max_grad_norm=ppo.max_grad_norm,
            value_loss_coef=ppo.value_loss,
            use_clipped_value_loss=ppo.clip_value,
            clip_param=ppo.clip,
        ),
    )


def _root() -> Path:
    return Path(os.environ.get(ROOT_VARIABLE, "."))


def _params() -> Params:
    return read_params(_root())


def _seed(cfg: TaskCfg) -> int:
    return 0 if cfg.seed is None else int(cfg.seed)


def _delta_settings(params: Params) -> TrackingSettings:
    return delta_settings(params.tracking, params.align.delta_limit)


def _pushed_by_isaaclab(settings: TrackingSettings) -> TrackingSettings:
    """The settings without our own pushes."""
    still = settings.disturbances.model_copy(
        update={"push": settings.disturbances.push.model_copy(update={"speed": 0.0})}
    )
    return settings.model_copy(update={"disturbances": still})


def _task_cfg(params: Params, settings: TrackingSettings, length_s: float, physics_dt: float) -> TaskCfg:
    from asap_core.environments.isaaclab_env import task_cfg

    physics = params.simulation.physics.at_step(physics_dt)
    return task_cfg(get_profile(params.robot), physics, settings, params.ppo.num_envs, length_s)


def _make(cfg: TaskCfg, params: Params, physics_dt: float, task: Task, render_mode: str | None) -> TaskEnv:
    from asap_core.environments.isaaclab_env import TaskEnv

    return TaskEnv(cfg, get_profile(params.robot), params.simulation.physics.at_step(physics_dt), task, render_mode)
