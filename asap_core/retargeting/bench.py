"""Score of the retargeting on the clips that ASAP published, beside the retargets that it published."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.motions.formats.amass import read_amass
from asap_core.motions.formats.asap_pkl import read_asap_pkl
from asap_core.motions.human import HumanMotion
from asap_core.motions.robot import RobotMotion
from asap_core.retargeting.retarget import retarget, retarget_figures
from asap_core.retargeting.scorer import Reference, reference, score
from asap_core.retargeting.settings import RetargetSettings
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array

_PREFIX = "0-motions_raw_tairantestbed_smpl_"
_OFFSETS = Path("prototypes") / "retarget" / "off_g1shape.npy"
_SMPL_JOINTS = (24, 3)
_ANKLE_HEIGHT = 0.035
"""m above the ground at which the ankle stands of the person, whose shape was fitted to a robot's links."""
Rows = dict[str, dict[str, float]]


def bench(shared: Path, settings: RetargetSettings, every: int = 1) -> dict[str, float]:
    """Means over the clips of `bench_rows`.

    Returns:
        The scorer's figures; worst_penetration_mm, worst_joint_speed; frames_per_second of processor time, on one core;
        clips. The same figures of the published retargets as `published_...`, and those of our retargets with the
        settings as they are, against the person that these follow, as `own_body_...`.

    Raises:
        InputFileError: there are no clips, or no offsets.
    """
    rows = bench_rows(shared, settings, every)
    names = next(iter(rows.values()))
    result = {key: float(np.mean([row[key] for row in rows.values()])) for key in names}
    for key, worst in (("penetration_mm", "worst_penetration_mm"), ("max_joint_speed", "worst_joint_speed")):
        result[worst] = max(row[key] for row in rows.values())
    frames, seconds = (sum(row[key] for row in rows.values()) for key in ("frames", "seconds"))
    del result["frames"], result["seconds"]
    return result | {"frames_per_second": frames / seconds, "clips": float(len(rows))}


def bench_rows(shared: Path, settings: RetargetSettings, every: int = 1) -> Rows:
    """Figures of each `every`-th clip of `<shared>/data/asap`, by its name.

    The person scored has the offsets of the shape that ASAP fitted to its robot. Ours and the published retargets were
    both given this very person to follow: ours with `body: person`, its path as it is, and the release's links.
    """
    profile = get_profile("g1_23dof")
    folder, offsets = shared / "data" / "asap", _offsets(shared / _OFFSETS)
    paths = sorted((folder / "smpl").glob("*.npz"))[::every]
    if not paths:
        raise InputFileError(folder / "smpl", "found no npz clip, expected those that ASAP published")
    given = settings.model_copy(update={"body": "person", "path_scale": 1.0, "correspondences": "released"})
    rows: Rows = {}
    for path in paths:
        human = read_amass(path)
        person = replace(human, skeleton=offsets)
        published = read_asap_pkl(folder / "g1" / f"{_PREFIX}{path.stem}.pkl", profile.name, profile.joint_names)
        against = reference(person, profile, _ANKLE_HEIGHT)
        rows[path.stem] = _timed(person, profile, given, against) | _published(published, profile, against)
        own = retarget_figures(human, retarget(human, profile, settings), profile, settings)
        rows[path.stem] |= {f"own_body_{key}": value for key, value in own.items()}
    return rows


def _offsets(path: Path) -> Array:
    try:
        offsets = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputFileError(path, f"cannot be read: {error}") from None
    if offsets.shape != _SMPL_JOINTS:
        raise InputFileError(path, f"found shape {offsets.shape}, expected {_SMPL_JOINTS}")
    return np.asarray(offsets, dtype=float)


def _timed(
    person: HumanMotion, profile: RobotProfile, settings: RetargetSettings, against: Reference
) -> dict[str, float]:
    begin = time.process_time()
    motion = retarget(person, profile, settings)
    seconds = time.process_time() - begin
    return score(motion, Kinematics(profile), against) | {"frames": float(motion.num_frames), "seconds": seconds}


def _published(motion: RobotMotion, profile: RobotProfile, against: Reference) -> dict[str, float]:
    """Figures of a published retarget, moved level to where the person is, since its world has another origin.

    Its link error is given twice: on the scorer's ground, over which it floats, and, as
    `published_link_error_lifted_mm`, with the person at the height that suits it best.
    """
    kinematics = Kinematics(profile)
    count = min(motion.num_frames, len(against.positions))
    poses = kinematics.forward(motion.root_pos[:count], motion.root_quat[:count], motion.joint_pos[:count])
    away = np.median(poses.pos[:, against.links] - against.positions[:count], axis=(0, 1))
    level, lift = away * (1.0, 1.0, 0.0), away * (0.0, 0.0, 1.0)
    there = replace(motion, root_pos=motion.root_pos - level)
    figures = {f"published_{key}": value for key, value in score(there, kinematics, against).items()}
    lifted = score(there, kinematics, replace(against, positions=against.positions + lift))
    return figures | {"published_link_error_lifted_mm": lifted["link_error_mm"]}
