"""Logs of real runs into the data set: what `asap ingest` and the ingest flow do, log by log."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from asap_core.errors import AsapError, ConfigError
from asap_core.files import sha256_file
from asap_core.progress import track
from asap_core.reporting.log_page import write_log_page
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.ingest.actions import ActionRule
from asap_core.rollouts.ingest.find import find_logs
from asap_core.rollouts.ingest.ingest import Ingested, IngestSettings, RunLabels, entry_of, ingest
from asap_core.rollouts.ingest.mocap_file import with_mocap
from asap_core.rollouts.ingest.readers import read_log, table_csv
from asap_core.rollouts.ingest.readers.column_map import ColumnMap
from asap_core.rollouts.ingest.robot_dataset import append
from asap_core.rollouts.ingest.streams import Log
from asap_core.rollouts.ingest.understand import UnderstandOptions
from asap_core.rollouts.settings import Split
from asap_core.training.policy import OnnxPolicy


@dataclass(frozen=True)
class ActionSource:
    """Where base and scale of the actions come from: a policy with a contract, or numbers."""

    policy: Path | None = None
    start_frame: int | None = None
    """Reference frame of the first control step, for policies that act about their reference."""
    default: str | None = None
    """`profile` for the robot's default pose."""
    scale: float | None = None
    """rad per unit action."""

    def rule(self, profile: RobotProfile) -> ActionRule:
        """The rule.

        Raises:
            ConfigError: neither a policy nor both numbers are given, or the policy is of another robot.
        """
        if self.policy is not None:
            contract = OnnxPolicy(self.policy).contract
            return ActionRule.from_contract(contract, profile, self.start_frame)
        if self.default not in (None, "profile"):
            raise ConfigError(f"--action-default {self.default!r}: expected profile (the robot's default pose)")
        pose = None
        if self.default == "profile":
            pose = dict(zip(profile.joint_names, profile.default_joint_pos.tolist(), strict=True))
        return ActionRule.from_values(profile, pose, self.scale)

    def labels(self, motion: str | None) -> RunLabels:
        """Motion and policy of the run, as far as they are known."""
        if self.policy is None:
            return RunLabels(motion=motion or "unknown")
        contract = OnnxPolicy(self.policy).contract
        return RunLabels(motion or contract.motion, self.policy.stem, sha256_file(self.policy))


@dataclass(frozen=True)
class LogResult:
    """What became of one log."""

    path: Path
    outcome: str
    """added, replaced, already there, looked at, or left out."""
    ingested: Ingested | None = None
    problem: str | None = None
    """Why it was left out."""


@dataclass(frozen=True)
class Request:
    """One call of `asap ingest`."""

    paths: tuple[Path, ...]
    output: Path | None
    """Folder of the data set; None looks only."""
    split: Split
    profile: RobotProfile
    actions: ActionSource
    motion: str | None = None
    replace: bool = False
    mocap: Path | None = None
    """The motion capture of the run, where it is a file of its own; for one log."""
    columns: Path | None = None
    """A column map (YAML) for CSV files."""
    settings: IngestSettings = field(default_factory=IngestSettings)
    options: UnderstandOptions = field(default_factory=UnderstandOptions)


def ingest_logs(request: Request) -> list[LogResult]:
    """Ingest every log under the paths; a log that fails is listed with the reason, the others go on.

    Raises:
        ConfigError: no action rule can be had, or one file of motion capture is given for several logs.
        InputFileError: a path is missing or holds no log.
    """
    nothing = request.actions == ActionSource()
    rule = None if request.output is None and nothing else request.actions.rule(request.profile)
    labels = request.actions.labels(request.motion)
    logs = [log for path in request.paths for log in find_logs(path)]
    if request.mocap is not None and len(logs) != 1:
        raise ConfigError(f"--mocap is of one run; found {len(logs)} logs, expected 1")
    results = []
    with track("ingest", len(logs)) as tracker:
        for path in logs:
            try:
                results.append(_one(path, request, rule, labels))
            except AsapError as error:
                results.append(LogResult(path, "left out", problem=str(error)))
            tracker.advance(note=path.name)
    return results


def _one(path: Path, request: Request, rule: ActionRule | None, labels: RunLabels) -> LogResult:
    log = _read(path, request.columns)
    if request.mocap is not None:
        log = with_mocap(log, read_log(request.mocap))
    done = ingest(log, request.profile, rule, request.settings, request.options, labels)
    if request.output is None or rule is None:
        return LogResult(path, "looked at", done)
    if not done.table:
        return LogResult(path, "left out", done, done.why_no_rollout)
    entry = entry_of(done, request.profile, rule, request.settings, request.options, labels)
    outcome = append(request.output, request.split, entry, request.replace)
    page = request.output / "reports" / f"{entry.stem}.png"
    if outcome != "already there" or not page.exists():
        write_log_page(page, done)
    return LogResult(path, outcome, done)


def _read(path: Path, columns: Path | None) -> Log:
    if columns is not None and path.suffix.lower() == ".csv":
        return table_csv.read(path, ColumnMap.load(columns))
    return read_log(path)


def to_json(result: LogResult) -> dict[str, Any]:
    """For `--json`."""
    out: dict[str, Any] = {"path": str(result.path), "outcome": result.outcome, "problem": result.problem}
    done = result.ingested
    if done is not None:
        out |= {
            "format": done.understood.log.format,
            "streams": {
                item.name: {name: value for name, value in asdict(item).items() if name != "name"}
                for item in done.summaries()
            },
            "decisions": [decision.text for decision in done.understood.decisions],
            "findings": [finding.to_json() for finding in done.findings],
            "usable_s": None if done.quality is None else done.quality.usable_s,
            "recorded_s": None if done.quality is None else done.quality.recorded_s,
            "why_no_rollout": done.why_no_rollout,
        }
    return out
