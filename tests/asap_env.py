"""The paper's environment on a short motion, for tests of several rooms."""

from __future__ import annotations

import shutil
from pathlib import Path

from asap_core.config import Params, load_params
from asap_core.environments.tracking import TrackingEnv
from asap_core.presets import apply_preset
from asap_core.robots import get_profile
from asap_core.simulators.mujoco import MujocoSimulator
from tests.robot_motions import knee_bend_reference

PROFILE = get_profile("g1_23dof")


def asap_params_in(folder: Path, root: Path) -> Params:
    """The project's params.yaml with preset `asap`, written into `folder`."""
    shutil.copy(root / "params.yaml", folder / "params.yaml")
    apply_preset(folder / "params.yaml", "asap", root / "presets")
    return load_params(folder / "params.yaml")


def make_asap_env(params: Params, num_envs: int = 4, **changes: object) -> TrackingEnv:
    """N robots of the nominal physics; `changes` are fields of the tracking section."""
    sim = MujocoSimulator(PROFILE, params.simulation.physics, num_envs)
    return TrackingEnv(sim, PROFILE, knee_bend_reference(), params.tracking.model_copy(update=changes), seed=0)
