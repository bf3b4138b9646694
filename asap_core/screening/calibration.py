"""The published ASAP clips, split once: thresholds are set on the first list, figures are reported on the second.

Skills and levels are spread over both: each list has turning, forward and side jumps, walks, steps, kicks, balances,
squats, shots and mimicry. The names are those of the files less `video_` and what follows the level.
"""

from __future__ import annotations

from pathlib import Path

from asap_core.errors import InputFileError
from asap_core.motions.formats.amass import read_amass
from asap_core.motions.human import HumanMotion

CALIBRATION: tuple[str, ...] = (
    "APT_level1", "Bolt_level1", "SpiderMan_level2", "jump_degree_level1", "jump_degree_level5", "jump_forward_level2",
    "jump_forward_level3", "kick_level2", "lebron1", "shoot_level1", "shoot_level3", "side_jump_level2",
    "single_foot_balance_level1", "single_foot_balance_level4", "squat_level3", "step_forward_back_level1",
    "step_forward_back_level4", "step_forward_forward_level2", "step_forward_forward_level3", "walk_level2",
)  # fmt: skip
SCORED: tuple[str, ...] = (
    "APT_level2", "CR7_level1", "TigerWoods_level1", "jump_degree_level2", "jump_degree_level4", "jump_forward_level1",
    "jump_forward_level4", "kick_level1", "shoot_level2", "side_jump_level1", "side_jump_level4",
    "single_foot_balance_level3", "single_foot_jump_level1", "squat_level1", "step_forward_back_level2",
    "step_forward_forward_level1", "step_forward_forward_level4", "walk_level1", "walk_level3",
)  # fmt: skip
_WALKS_AND_JUMPS = ("walk", "step_forward", "jump")


def is_walk_or_jump(name: str) -> bool:
    """Whether a clip travels or jumps: those are the ones that a speed-up is scored on."""
    return any(word in name for word in _WALKS_AND_JUMPS)


def read_clips(shared: Path, names: tuple[str, ...]) -> dict[str, HumanMotion]:
    """The named clips of `<shared>/data/asap/smpl`.

    Raises:
        InputFileError: a clip is missing or damaged.
    """
    folder = shared / "data" / "asap" / "smpl"
    clips = {}
    for name in names:
        paths = sorted(folder.glob(f"video_{name}_*.npz"))
        if len(paths) != 1:
            raise InputFileError(folder, f"video_{name}_*.npz: found {len(paths)} files, expected one")
        clips[name] = read_amass(paths[0], name)
    return clips
