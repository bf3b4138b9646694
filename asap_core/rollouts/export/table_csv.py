"""CSV with one named column per number, every row of the rollout, floats in the shortest text that reads back the same.

Held is everything but the source and the robot's name. The log reader takes the states, actions, targets, torques,
episodes, frames and `valid` from it and lists the names of motions and policies, start phases and masks as not read.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.files import atomic_file
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout

_ROOT = {"root_pos": "xyz", "root_quat": "wxyz", "root_lin_vel": "xyz", "root_ang_vel": "xyz"}


def write(rollout: Rollout, profile: RobotProfile, path: Path) -> None:
    """All rows; `time_s` counts from 0 in each episode, cells of the last row's missing action are empty.

    Raises:
        StageError: the place cannot be written.
    """
    import pandas as pd

    first = np.maximum.accumulate(np.where(_starts(rollout.episode), np.arange(rollout.num_rows), 0))
    columns: dict[str, NDArray] = {
        "time_s": (np.arange(rollout.num_rows) - first) * rollout.control_dt,
        "episode": rollout.episode,
        "frame": rollout.frame,
        "valid": rollout.valid.astype(np.int64),
        "start_phase": rollout.start_phase,
        "motion": rollout.motion,
        "policy": rollout.policy,
        "policy_sha256": rollout.policy_sha256,
    }
    columns |= {f"mask.{name}": values.astype(np.int64) for name, values in rollout.masks.items()}
    for name, axes in _ROOT.items():
        columns |= {f"{name}.{axis}": getattr(rollout.state, name)[:, i] for i, axis in enumerate(axes)}
    joints = {"joint_pos": rollout.state.joint_pos, "joint_vel": rollout.state.joint_vel}
    joints |= {name: getattr(rollout, name) for name in ("action", "joint_target", "joint_torque")}
    for name, values in joints.items():
        columns |= {f"{name}.{joint}": values[:, i] for i, joint in enumerate(rollout.joint_names)}
    with atomic_file(path) as partial:
        pd.DataFrame(columns).to_csv(partial, index=False)


def _starts(episode: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.append(True, episode[1:] != episode[:-1])
