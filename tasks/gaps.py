"""The gap table of a data set of logged runs: joint by joint from the logs, and against the nominal simulator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from asap_core.errors import InputFileError
from asap_core.evaluation.replay_gap import ReplayGapRow, errors_of, replay_gap
from asap_core.files import read_object
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.dataset import load_split
from asap_core.rollouts.ingest.gap import JointGap, gap_of_logs
from asap_core.rollouts.settings import Split
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.settings import SimulationSettings

_MOST_ROBOTS = 64


@dataclass(frozen=True)
class Gaps:
    """What stands between the commands of a split's logs and the robot, and between the simulator and the robot."""

    logs: int
    kind: str
    """robot or twin."""
    joints: tuple[JointGap, ...]
    replay: tuple[ReplayGapRow, ...]


def gaps_of(folder: Path, split: Split, profile: RobotProfile, simulation: SimulationSettings) -> Gaps:
    """The table of one split of a data set that `asap ingest` made.

    Raises:
        InputFileError: no such data set, no rollouts in the split, or another robot's.
        StageError: no episode lasts 1 s.
    """
    reports = [read_object(path) for path in sorted((folder / "reports").glob("*.json"))]
    reports = [report for report in reports if report.get("split") == split]
    if not reports:
        raise InputFileError(folder, f"no report of a log in split {split}; asap ingest -o makes such a data set")
    rollout = load_split(folder, split, profile, simulation.physics.control_dt)
    simulator = make_simulator(profile, simulation, _MOST_ROBOTS)
    bases = {str(report["base_velocity"]) for report in reports if report.get("base_velocity") is not None}
    rows = replay_gap(rollout, profile, simulator, errors_of(bases))
    return Gaps(len(reports), str(rollout.source.get("kind")), gap_of_logs(reports), rows)
