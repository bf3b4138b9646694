"""From the `Rollout` record to the files of other tools, one module per format."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path

from asap_core.errors import StageError, unknown_name
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout

FORMATS: Mapping[str, str] = {
    "asap_pkl": "ASAP motion pkl with action: one file",
    "pace": "PACE recordings (.pt): a folder, one file per run",
    "lerobot": "LeRobot v3.0 data set: a folder",
    "csv": "CSV: one file, one row per control step",
}
"""Name of an export to what it writes."""

_MODULES = {"csv": "table_csv"}


def export_rollout(rollout: Rollout, profile: RobotProfile, path: Path | str, format: str) -> None:
    """Write `rollout` in another tool's format, atomically.

    Args:
        rollout: what to write; formats of steps hold its usable transitions only.
        profile: the rollout's robot.
        path: file or folder to write, replaced if there.
        format: key of `FORMATS`.

    Raises:
        UnknownNameError: no such format.
        StageError: the profile is another robot's, or the rollout has no usable transition.
    """
    if format not in FORMATS:
        raise unknown_name("export format", format, FORMATS)
    if (profile.name, tuple(profile.joint_names)) != (rollout.robot, rollout.joint_names):
        raise StageError(
            f"the rollout is of {rollout.robot} with {len(rollout.joint_names)} joints, not {profile.name}"
        )
    module = importlib.import_module(f"{__name__}.{_MODULES.get(format, format)}")
    module.write(rollout, profile, Path(path))
