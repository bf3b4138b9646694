"""Rollouts on disk, partitioned by what acted and by split: `kind=twin/split=fit/<policy>.parquet` and so on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout, concatenate
from asap_core.rollouts.settings import SPLITS, Kind, Split

_RATE_TOLERANCE_S = 1e-6


def kind_folder(root: Path | str, kind: Kind) -> Path:
    """Where the rollouts of `kind` lie in the project at `root`; a twin's and a robot's never share a folder."""
    return Path(root) / "data" / "rollouts" / f"kind={kind}"


def split_folder(folder: Path | str, split: Split) -> Path:
    """Where the files of `split` lie; pandas and pyarrow read the partition as a column."""
    return Path(folder) / f"split={split}"


def load_split(
    folder: Path | str,
    split: Split,
    profile: RobotProfile | None = None,
    control_dt: float | None = None,
    kind: Kind | None = None,
) -> Rollout:
    """All rollouts of one split, file after file in the order of their paths.

    Args:
        folder: holds `split=<split>`.
        split: which one.
        profile: when given, the files must be of this robot.
        control_dt: when given, s between their rows.
        kind: when given, what the files must say that they are.

    Raises:
        InputFileError: the split has no files, or a file is bad or does not fit the others.
    """
    place = split_folder(folder, split)
    files = sorted(place.rglob("*.parquet"))
    if not files:
        raise InputFileError(
            place, "no rollouts (*.parquet); `asap run collect` makes a twin's, `asap ingest` a robot's"
        )
    rollouts = [Rollout.load(file, profile) for file in files]
    for file, rollout in zip(files, rollouts, strict=True):
        if control_dt is not None and abs(rollout.control_dt - control_dt) > _RATE_TOLERANCE_S:
            raise InputFileError(file, f"field control_dt: found {rollout.control_dt:g} s, expected {control_dt:g} s")
        found = rollout.source.get("kind")
        if kind is not None and found != kind:
            raise InputFileError(file, f"field source.kind: found {found!r}, expected {kind!r}; they are never mixed")
    try:
        return concatenate(rollouts)
    except ValueError as error:
        raise InputFileError(place, str(error)) from None


def check_disjoint(rollouts: dict[Split, Rollout], folder: Path | str) -> None:
    """Splits must share no start state, and those of a twin no policy either: there, another policy costs nothing.

    Raises:
        InputFileError: two splits overlap.
    """
    for i, first in enumerate(SPLITS):
        for second in SPLITS[i + 1 :]:
            shared = set(rollouts[first].policy_sha256) & set(rollouts[second].policy_sha256)
            if shared and rollouts[first].source.get("kind") != "robot":
                raise InputFileError(
                    folder, f"field policy_sha256: splits {first} and {second} share policy {sorted(shared)[0][:12]}"
                )
            if _starts(rollouts[first]) & _starts(rollouts[second]):
                raise InputFileError(folder, f"field joint_pos: splits {first} and {second} share a start state")


def _starts(rollout: Rollout) -> set[bytes]:
    rows = np.unique(rollout.episode, return_index=True)[1]
    return {rollout.state.joint_pos[row].tobytes() for row in rows}
