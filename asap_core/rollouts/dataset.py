"""Rollouts on disk, partitioned by split: `split=fit/<policy>.parquet` and so on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout, concatenate
from asap_core.rollouts.settings import SPLITS, Split

_RATE_TOLERANCE_S = 1e-6


def split_folder(folder: Path | str, split: Split) -> Path:
    """Where the files of `split` lie; pandas and pyarrow read the partition as a column."""
    return Path(folder) / f"split={split}"


def load_split(
    folder: Path | str, split: Split, profile: RobotProfile | None = None, control_dt: float | None = None
) -> Rollout:
    """All rollouts of one split, file after file in the order of their names.

    Args:
        folder: holds `split=<split>`.
        split: which one.
        profile: when given, the files must be of this robot.
        control_dt: when given, s between their rows.

    Raises:
        InputFileError: the split has no files, or a file is bad or does not fit the others.
    """
    place = split_folder(folder, split)
    files = sorted(place.glob("*.parquet"))
    if not files:
        raise InputFileError(place, "no rollouts (*.parquet); run `asap run collect`")
    rollouts = [Rollout.load(file, profile) for file in files]
    for file, rollout in zip(files, rollouts, strict=True):
        if control_dt is not None and abs(rollout.control_dt - control_dt) > _RATE_TOLERANCE_S:
            raise InputFileError(file, f"field control_dt: found {rollout.control_dt:g} s, expected {control_dt:g} s")
    try:
        return concatenate(rollouts)
    except ValueError as error:
        raise InputFileError(place, str(error)) from None


def check_disjoint(rollouts: dict[Split, Rollout], folder: Path | str) -> None:
    """Splits must share neither a policy nor a start state.

    Raises:
        InputFileError: two splits overlap.
    """
    for i, first in enumerate(SPLITS):
        for second in SPLITS[i + 1 :]:
            shared = set(rollouts[first].policy_sha256) & set(rollouts[second].policy_sha256)
            if shared:
                raise InputFileError(
                    folder, f"field policy_sha256: splits {first} and {second} share policy {sorted(shared)[0][:12]}"
                )
            if _starts(rollouts[first]) & _starts(rollouts[second]):
                raise InputFileError(folder, f"field joint_pos: splits {first} and {second} share a start state")


def _starts(rollout: Rollout) -> set[bytes]:
    rows = np.unique(rollout.episode, return_index=True)[1]
    return {rollout.state.joint_pos[row].tobytes() for row in rows}
