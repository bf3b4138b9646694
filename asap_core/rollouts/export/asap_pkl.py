"""ASAP's motion pkl with `action`, as its recorder writes it and its delta-action training reads it.

Row k holds the state that action k led to (post-step), one row later than in a `Rollout`, so a run of n transitions
gives n rows and its first state is not held. Held are root position, orientation (xyzw) and velocities (world), joint
angles and velocities, raw actions, rate, and per row the time of the reference motion. Not held are joint targets and
torques, invalid rows, masks, names of policies, start phases and the source.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.files import atomic_file
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.export.runs import run_names, runs
from asap_core.rollouts.record import Rollout
from asap_core.rotations import quat_to_rotvec

_EXTENDED_BODIES = 3
"""ASAP adds hands and head to the kinematic tree of `pose_aa`; their rotation is zero."""
_NEW_MODULE, _OLD_MODULE = b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"


def write(rollout: Rollout, profile: RobotProfile, path: Path) -> None:
    """One clip per run, `{<motion>_<n>: {…}}`.

    Raises:
        StageError: no usable transition, or the place cannot be written.
    """
    parts = runs(rollout)
    clips = {name: _clip(rollout, profile, rows) for name, rows in zip(run_names(rollout, parts), parts, strict=True)}
    with atomic_file(path) as partial:
        partial.write_bytes(_dump(clips))


def _clip(rollout: Rollout, profile: RobotProfile, rows: NDArray[np.int64]) -> dict[str, Any]:
    after = rollout.state.take(rows + 1)
    return {
        "root_trans_offset": after.root_pos,
        "pose_aa": _pose_aa(profile, after.root_quat, after.joint_pos),
        "dof": after.joint_pos,
        "root_rot": after.root_quat[:, [1, 2, 3, 0]],
        "dof_vel": after.joint_vel,
        "root_lin_vel": after.root_lin_vel,
        "root_ang_vel": after.root_ang_vel,
        "action": rollout.action[rows].astype(np.float64),
        "terminate": np.zeros(len(rows)),
        "motion_times": rollout.frame[rows + 1] * rollout.control_dt,
        "fps": rollout.fps,
    }


def _pose_aa(
    profile: RobotProfile, root_quat: NDArray[np.floating], joint_pos: NDArray[np.floating]
) -> NDArray[np.floating]:
    """(T, 1 + J + 3, 3) rad: rotation vectors of root and joints, zeros for the added bodies."""
    axes = np.array([link.axis for link in profile.links if link.joint is not None])
    joints = joint_pos[:, :, None] * axes
    added = np.zeros((len(joint_pos), _EXTENDED_BODIES, 3))
    return np.concatenate([quat_to_rotvec(root_quat)[:, None], joints, added], axis=1)


def _dump(content: Any) -> bytes:
    """A pickle that ASAP's numpy 1 opens too: numpy 2 would name a module that the older one lacks."""
    buffer = io.BytesIO()
    pickle.dump(content, buffer, protocol=3)
    return buffer.getvalue().replace(_NEW_MODULE, _OLD_MODULE)
