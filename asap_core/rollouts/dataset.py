"""Rollouts on disk, partitioned by split: `split=fit/<policy>.parquet` and so on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout, concatenate
from asap_core.rollouts.settings import SPLITS, Split


def split_folder(folder: Path | str, split: Split) -> Path:
    """Where the files of `split` lie; pandas and pyarrow read the partition as a column."""
    return Path(folder) / f"split={split}"


def load_split(folder: Path | str, split: Split, profile: RobotProfile | None = None) -> Rollout:
    """All rollouts of one split, file after file in the order of their names.

    Raises:
        InputFileError: the split has no files, or a file is bad.
    """
    place = split_folder(folder, split)
    files = sorted(place.glob("*.parquet"))
    if not files:
        raise InputFileError(place, "no rollouts (*.parquet); run `asap run collect`")
    return concatenate([Rollout.load(file, profile) for file in files])


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
