"""PACE recordings: per run a `.pt` of `time` (T,) from 0, `dof_pos` and `des_dof_pos` (T, J) in the profile's order.

Held are the states' joint angles and the joint targets applied from them. Not held are the base, velocities, torques,
actions, joint names, the last state of a run, masks and everything about where the data come from.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asap_core.files import atomic_dir, write_tensors
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.export.runs import run_names, runs
from asap_core.rollouts.record import Rollout


def write(rollout: Rollout, profile: RobotProfile, path: Path) -> None:
    """A folder of `<motion>_<n>.pt`, float64.

    Raises:
        StageError: no usable transition, or the place cannot be written.
    """
    import torch

    parts = runs(rollout)
    with atomic_dir(path) as partial:
        for name, rows in zip(run_names(rollout, parts), parts, strict=True):
            arrays = {
                "time": np.arange(len(rows)) * rollout.control_dt,
                "dof_pos": rollout.state.joint_pos[rows],
                "des_dof_pos": rollout.joint_target[rows],
            }
            content = {key: torch.from_numpy(np.array(values, np.float64)) for key, values in arrays.items()}
            write_tensors(partial / f"{name}.pt", content)
