"""The clips of the bench: as published, to score against, and with the feet on the ground, to train on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.ndimage import gaussian_filter1d

from asap_core.environments.reference import JointVelocity, ReferenceMotion
from asap_core.errors import InputFileError
from asap_core.motions.formats.asap_pkl import read_asap_pkl
from asap_core.motions.robot import RobotMotion
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile

_SMOOTHING_FRAMES = 2.0
Ground = Literal["always", "at_start"]
"""Whether a foot is on the ground in every frame, or only the start is known to stand on it."""


@dataclass(frozen=True)
class Clip:
    """A published clip twice, at the control rate."""

    published: ReferenceMotion
    """What is scored against: unmodified, so that the squat floats by up to 86 mm."""
    trained: ReferenceMotion
    """Lowered onto the ground, but for the start of an episode at its first frame, which is the published one."""


def load_clip(
    shared: Path, name: str, ground: Ground, profile: RobotProfile, control_dt: float, velocity: JointVelocity
) -> Clip:
    """Read the published retarget `name`.

    Args:
        shared: folder that holds data/asap/g1.

    Raises:
        InputFileError: not exactly one file of that name, or a damaged one.
    """
    folder = shared / "data" / "asap" / "g1"
    found = sorted(folder.glob(f"*_{name}_*.pkl"))
    if len(found) != 1:
        raise InputFileError(folder, f"found {len(found)} files *_{name}_*.pkl, expected one")
    motion = read_asap_pkl(found[0], profile.name, profile.joint_names)
    published = ReferenceMotion.from_motion(motion, profile, control_dt, velocity)
    lowered = ReferenceMotion.from_motion(_lowered(motion, ground, profile), profile, control_dt, velocity)
    lowered.state.root_pos[0] = published.state.root_pos[0]
    return Clip(published, lowered)


def _lowered(motion: RobotMotion, ground: Ground, profile: RobotProfile) -> RobotMotion:
    kinematics = Kinematics(profile)
    poses = kinematics.forward(motion.root_pos, motion.root_quat, motion.joint_pos)
    height = kinematics.sole_heights(poses).reshape(len(motion.root_pos), -1).min(axis=1)
    if ground == "at_start":
        height = np.full(len(height), height[0])
    height = gaussian_filter1d(height, _SMOOTHING_FRAMES, mode="nearest")
    return replace(motion, root_pos=motion.root_pos - height[:, None] * np.array([0.0, 0.0, 1.0]))
