"""Does ingest lead alignment to the truth? A twin with known altered physics is logged, ingested and aligned.

Beside it stands the alignment on the twin's own states, which no sensor, clock or filter has touched: what the log
costs is the difference. The twin's controller is `standing_twin`; its actions are targets about the default pose.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from asap_core.alignment.corrected import Corrected, Rival
from asap_core.alignment.physics_fit import SysIdSettings
from asap_core.alignment.replay import HORIZONS_S, cut_segments, horizon_errors, horizon_steps, replay_distance
from asap_core.alignment.sysid import SysIdRival
from asap_core.alignment.sysid_parameters import Parameter, sysid_parameters
from asap_core.errors import StageError
from asap_core.robots import get_profile
from asap_core.robots.mjcf import per_joint
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.ingest.actions import ActionRule
from asap_core.rollouts.ingest.findings import worst
from asap_core.rollouts.ingest.ingest import Ingested, ingest
from asap_core.rollouts.ingest.readers import read_log
from asap_core.rollouts.ingest.standing_twin import Stand, fell, stand
from asap_core.rollouts.ingest.sync import Sync
from asap_core.rollouts.ingest.twin_log import TWIN, SensorSettings, TwinRecord, write_twin_log
from asap_core.rollouts.record import Rollout, concatenate
from asap_core.rollouts.settings import TwinSettings
from asap_core.simulators.settings import SimulationSettings

Array = NDArray[np.floating]
Source = Literal["logged", "exact"]
NOMINAL = SimulationSettings(physics=PhysicsSettings(physics_dt=0.002))
_SCALE = 0.25
_WIDE = {"knee": 0.45, "turn": 0.2, "waist": 0.6, "arms": 0.9}
FIT = (Stand(seed=0), Stand(seed=0, **_WIDE))
VALIDATION = (Stand(seed=3),)
HELDOUT = (Stand(seed=1),)
_MOST_ROBOTS = 64
_SOURCES: tuple[Source, ...] = ("logged", "exact")


@dataclass(frozen=True)
class Trial:
    """What is altered in the twin, what lies between it and its log, and how long each log is."""

    altered: PhysicsSettings
    delay_s: float = 0.0
    """A multiple of 2 ms."""
    sensors: SensorSettings = field(default_factory=lambda: SensorSettings(mocap_drift=40e-6))
    fit_s: float = 20.0
    """Of each log of `FIT`."""
    other_s: float = 10.0

    @property
    def truth(self) -> PhysicsSettings:
        """The twin's physics in the terms of SysID."""
        delay = {"physics_dt": NOMINAL.physics.physics_dt, "action_delay_s": self.delay_s}
        return PhysicsSettings.model_validate(self.altered.model_dump() | delay)


@dataclass(frozen=True)
class Run:
    """A log and the twin's own states."""

    record: TwinRecord
    ingested: Ingested
    logged: Rollout
    exact: Rollout


@dataclass(frozen=True)
class Runs:
    """The logs of one trial."""

    fit: tuple[Run, ...]
    validation: tuple[Run, ...]
    heldout: tuple[Run, ...]

    def align(self, rival: Rival, source: Source, cache: Path) -> Corrected:
        """Fit on the logs as ingested, or on the twin's own states."""
        fit, validation = (concatenate([getattr(r, source) for r in split]) for split in (self.fit, self.validation))
        return rival.fit(fit, validation, 0, cache)


def bench() -> dict[str, float]:
    """The twin of `params.yaml` behind 6 and 20 ms and a drifting clock; SysID on its logs and on its own states.

    Returns:
        worst errors of lag and offset; for each altered parameter its truth, and value and standard deviation from the
        log and from the twin's own states; held-out open-loop errors in mm at 0.25, 0.5 and 1 s, nominal and aligned
        on either, on ingested logs and on the twin's own states.
    """
    figures: dict[str, float] = {}
    for delay_s in (0.006, 0.02):
        trial = Trial(TwinSettings().physics(PhysicsSettings()), delay_s)
        with tempfile.TemporaryDirectory() as folder:
            runs = record(trial, Path(folder))
            aligned = {source: runs.align(sysid(), source, Path(folder) / source) for source in _SOURCES}
        found = {**_clock_figures(runs, trial), **_values(trial, aligned), **_open_loop_figures(runs, aligned)}
        figures |= {f"delay_{1e3 * delay_s:.0f}ms_{key}": value for key, value in found.items()}
    return figures


def sysid(seconds: float = 6.0) -> SysIdRival:
    """SysID on `seconds` of each iteration's replay, from `NOMINAL`."""
    return SysIdRival(get_profile("g1_23dof"), NOMINAL, SysIdSettings(seconds=seconds))


def record(trial: Trial, folder: Path) -> Runs:
    """Record, log and ingest; logs are written to `folder`.

    Raises:
        StageError: the twin fell, ingest gave no rollout by mocap, or found an error in the log.
    """
    profile = get_profile("g1_23dof")
    fit = tuple(run(profile, trial, movement, trial.fit_s, folder) for movement in FIT)
    validation, heldout = (
        tuple(run(profile, trial, movement, trial.other_s, folder) for movement in split)
        for split in (VALIDATION, HELDOUT)
    )
    return Runs(fit, validation, heldout)


def run(profile: RobotProfile, trial: Trial, movement: Stand, seconds: float, folder: Path) -> Run:
    """One log, written to `folder`, and what ingest makes of it.

    Raises:
        StageError: the twin fell, ingest gave no rollout by mocap, or found an error in the log.
    """
    truth = stand(profile, seconds, trial.altered, trial.delay_s, movement)
    if fell(truth):
        raise StageError(f"the twin fell: {movement}")
    path = folder / "run.mcap"
    write_twin_log(path, truth, movement.seed, trial.sensors)
    done = ingest(read_log(path), profile, _rule(profile))
    if done.rollout is None or done.root is None or done.root.kind != "mocap+imu" or worst(done.findings) == "error":
        raise StageError(f"ingest made no sound rollout by mocap: {[f.text for f in done.findings]}")
    return Run(truth, done, done.rollout, exact_rollout(truth, profile))


def exact_rollout(record: TwinRecord, profile: RobotProfile) -> Rollout:
    """The twin's own states at its control steps, one episode."""
    every = round(float(record.command_time[1] - record.command_time[0]) / float(record.time[1] - record.time[0]))
    total = len(record.joint_target) + 1
    rows = every * np.arange(total)
    last = np.arange(total) == total - 1

    def acting(values: Array) -> Array:
        return np.vstack([values, np.full_like(values[:1], np.nan)])

    return Rollout(
        robot=profile.name,
        joint_names=profile.joint_names,
        control_dt=float(record.command_time[1] - record.command_time[0]),
        source=TWIN,
        state=record.state.take(rows),
        action=acting((record.joint_target - profile.default_joint_pos) / _SCALE),
        joint_target=acting(record.joint_target),
        joint_torque=acting(record.torque[rows[1:]]),
        valid=~last,
        episode=np.zeros(total, np.int64),
        frame=np.arange(total),
        start_phase=np.zeros(total),
        motion=np.full(total, "stand"),
        policy=np.full(total, "stand"),
        policy_sha256=np.full(total, "none"),
    )


def true_values(profile: RobotProfile, trial: Trial) -> dict[str, float]:
    """What SysID should find, by parameter, for those in which the twin differs from `NOMINAL`."""
    values = {p.name: _value(profile, trial.truth, p) for p in sysid_parameters(profile, NOMINAL.physics)}
    nominal = {p.name: p.nominal for p in sysid_parameters(profile, NOMINAL.physics)}
    return {name: value for name, value in values.items() if value != nominal[name]}


def open_loop(profile: RobotProfile, corrected: Corrected, rollout: Rollout) -> dict[float, float]:
    """mm by horizon in s, of a simulator that replays a rollout's targets."""
    steps = horizon_steps(HORIZONS_S[-1], NOMINAL.physics.control_dt)
    segments = cut_segments(rollout, profile, steps, steps // 2)
    simulator = corrected.simulator(profile, NOMINAL, min(segments.num, _MOST_ROBOTS))
    distance = replay_distance(simulator, profile, segments, corrected.correction)
    return horizon_errors(distance, NOMINAL.physics.control_dt)


def _clock_figures(runs: Runs, trial: Trial) -> dict[str, float]:
    errors: dict[str, list[float]] = {"lag_error_ms": [], "offset_error_ms": [], "offset_error_sigmas": []}
    for item in (*runs.fit, *runs.validation, *runs.heldout):
        lag, sync = item.ingested.lag, item.ingested.sync
        if lag is not None and lag.lag_s is not None:
            errors["lag_error_ms"].append(1e3 * (lag.lag_s - trial.delay_s))
        if sync is not None:
            away = offset_error(sync, trial.sensors)
            errors["offset_error_ms"].append(1e3 * away)
            errors["offset_error_sigmas"].append(away / sync.offset_sigma_s)
    return {f"worst_{name}": max(values, key=abs) for name, values in errors.items() if values}


def _values(trial: Trial, aligned: dict[Source, Corrected]) -> dict[str, float]:
    figures = {}
    for name, truth in true_values(get_profile("g1_23dof"), trial).items():
        figures[f"{name}_truth"] = truth
        for source, corrected in aligned.items():
            estimate = corrected.report["parameters"][name]
            figures |= {f"{name}_{source}": estimate["value"], f"{name}_{source}_std": estimate["std"]}
    return figures


def _open_loop_figures(runs: Runs, aligned: dict[Source, Corrected]) -> dict[str, float]:
    profile = get_profile("g1_23dof")
    rivals = {"nominal": Corrected("zero", NOMINAL.physics), **{f"by_{s}": c for s, c in aligned.items()}}
    judges = {source: concatenate([getattr(r, source) for r in runs.heldout]) for source in _SOURCES}
    return {
        f"{name}_on_{judge}_{horizon:g}s_mm": error
        for name, corrected in rivals.items()
        for judge, rollout in judges.items()
        for horizon, error in open_loop(profile, corrected, rollout).items()
    }


def _value(profile: RobotProfile, physics: PhysicsSettings, p: Parameter) -> float:
    """The parameter's value in `physics`."""
    if p.field.endswith("_of"):
        kind = p.field.removesuffix("_of")
        at = next(i for i, name in enumerate(profile.joint_names) if p.key in name)
        return float(per_joint(profile, kind, getattr(physics, kind), getattr(physics, p.field))[at])
    stored = getattr(physics, p.field)
    if not p.key:
        return float(stored)
    return p.nominal if p.key not in stored else float(stored[p.key] if p.axis < 0 else stored[p.key][p.axis])


def offset_error(sync: Sync, sensors: SensorSettings) -> float:
    """s by which the mocap's clock was misjudged, in the middle of the take."""
    clock = sync.clock
    return clock.offset_s - sensors.mocap_offset_s - sensors.mocap_drift * clock.reference_s


def _rule(profile: RobotProfile) -> ActionRule:
    pose = dict(zip(profile.joint_names, np.asarray(profile.default_joint_pos).tolist(), strict=True))
    return ActionRule.from_values(profile, pose, _SCALE)
