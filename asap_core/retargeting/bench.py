"""Score of the retargeting on the clips that ASAP published, beside the retargets that it published."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.motions.formats.amass import read_amass
from asap_core.motions.formats.asap_pkl import read_asap_pkl
from asap_core.motions.human import HumanMotion
from asap_core.retargeting.figures import retarget_figures
from asap_core.retargeting.proportions import robot_skeleton
from asap_core.retargeting.retarget import proportioned_joints, retarget
from asap_core.retargeting.settings import RetargetSettings
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile

_PREFIX = "0-motions_raw_tairantestbed_smpl_"
_COMPARED = ("skate_mm_per_frame", "sole_height_mm", "penetration_mm", "max_joint_speed", "jerk")


def bench(shared: Path, settings: RetargetSettings, every: int = 1) -> dict[str, float]:
    """Means over the clips of `<shared>/data/asap`, of which every `every`-th is taken.

    Returns:
        The keys of `retarget_figures`, worst_joint_speed (rad/s), frames_per_second and clips; and for the published
        retargets the same figures, as far as they do not depend on a body's shape, with the prefix `published_`.

    Raises:
        InputFileError: there are no clips.
    """
    folder = shared / "data" / "asap"
    paths = sorted((folder / "smpl").glob("*.npz"))[::every]
    if not paths:
        raise InputFileError(folder / "smpl", "found no npz clip, expected those that ASAP published")
    profile = get_profile("g1_23dof")
    ours, published, frames, seconds = [], [], 0, 0.0
    for path in paths:
        human = read_amass(path)
        begin = time.perf_counter()
        _, figures = retarget(human, profile, settings)
        seconds += time.perf_counter() - begin
        frames += human.num_frames
        ours.append(figures)
        published.append(_published(folder / "g1" / f"{_PREFIX}{path.stem}.pkl", human, profile))
    result = {key: float(np.mean([figures[key] for figures in ours])) for key in ours[0]}
    result |= {f"published_{key}": float(np.mean([figures[key] for figures in published])) for key in _COMPARED}
    result["worst_joint_speed"] = max(figures["max_joint_speed"] for figures in ours)
    return result | {"frames_per_second": frames / seconds, "clips": float(len(paths))}


def _published(path: Path, human: HumanMotion, profile: RobotProfile) -> dict[str, float]:
    """Figures of a published retarget, its feet judged while the same person stands."""
    motion = read_asap_pkl(path, profile.name, profile.joint_names)
    joints = proportioned_joints(human, human.global_rotations(), robot_skeleton(profile))
    count = min(len(joints), motion.num_frames)
    root_pos, root_quat, joint_pos = motion.root_pos[:count], motion.root_quat[:count], motion.joint_pos[:count]
    links = profile.foot_index
    targets = np.zeros((count, len(links), 3))
    kinematics = Kinematics(profile)
    return retarget_figures(kinematics, root_pos, root_quat, joint_pos, joints[:count], links, targets, motion.fps)
