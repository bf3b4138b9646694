"""Does ingest lead alignment to the truth? A twin with known altered physics is logged, ingested and aligned.

Beside it stands the alignment on the twin's own states, which no sensor, clock or filter has touched: what the log
costs is the difference. The twin's controller is `standing_twin`; its actions are targets about the default pose.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.alignment.delta_model import DeltaActionModel, DeltaCorrection
from asap_core.alignment.fit import DeltaFitter
from asap_core.alignment.replay import HORIZONS_S, cut_segments, horizon_errors, horizon_steps, replay_distance
from asap_core.alignment.settings import AlignSettings, RefineSettings
from asap_core.environments.correction import NoCorrection
from asap_core.errors import StageError
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.ingest.actions import ActionRule
from asap_core.rollouts.ingest.ingest import Ingested, ingest
from asap_core.rollouts.ingest.readers import read_log
from asap_core.rollouts.ingest.standing_twin import Stand, fell, stand
from asap_core.rollouts.ingest.twin_log import TWIN, SensorSettings, TwinRecord, write_twin_log
from asap_core.rollouts.record import Rollout
from asap_core.rollouts.settings import SPLITS, Split, TwinSettings
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.settings import SimulationSettings

Array = NDArray[np.floating]
NOMINAL = SimulationSettings(physics=PhysicsSettings(physics_dt=0.002))
LINEAR = AlignSettings(ridge=(1.0, 10.0), residual_epochs=0, refine=RefineSettings(iterations=0))
"""Linear candidates only: a fit of a minute."""
_SCALE = 0.25


@dataclass(frozen=True)
class Trial:
    """What is altered in the twin, what lies between it and its log, and how long it is recorded."""

    altered: PhysicsSettings
    delay_s: float = 0.0
    sensors: SensorSettings = field(default_factory=SensorSettings)
    fit_s: float = 40.0
    other_s: float = 15.0


@dataclass(frozen=True)
class Aligned:
    """Open-loop errors by horizon in s, mm, on held-out pieces of the twin's own states, and the model."""

    zero: dict[float, float]
    delta: dict[float, float]
    model: DeltaActionModel

    @property
    def ratio(self) -> float:
        """At the longest horizon, corrected over uncorrected."""
        return self.delta[HORIZONS_S[-1]] / self.zero[HORIZONS_S[-1]]


@dataclass(frozen=True)
class TruthResult:
    """One trial."""

    ingested: Mapping[Split, Ingested]
    records: Mapping[Split, TwinRecord]
    from_log: Aligned
    from_states: Aligned


def bench() -> dict[str, float]:
    """The twin of `params.yaml` behind 6 ms and a drifting clock, and one whose leg gains are 0.8 times the nominal.

    Returns:
        errors of lag and offset in ms, the share of the open-loop error that is left at 1 s by alignment on the
        log and on the twin's own states, and by group of joints the slope of Δq, −0.2 in truth.
    """
    profile, figures = get_profile("g1_23dof"), {}
    sensors = SensorSettings(mocap_drift=40e-6)
    legs = PhysicsSettings(strength={"hip": 0.8, "knee": 0.8, "ankle": 0.8})
    trials = {
        "altered": Trial(TwinSettings().physics(PhysicsSettings()), 0.006, sensors),
        "gains": Trial(legs, 0.0, sensors),
    }
    for name, trial in trials.items():
        result = run_trial(trial)
        fit = result.ingested["fit"]
        if fit.lag is not None and fit.lag.lag_s is not None:
            figures[f"{name}_lag_error_ms"] = 1e3 * (fit.lag.lag_s - trial.delay_s)
        if fit.sync is not None:
            truth = sensors.mocap_offset_s + sensors.mocap_drift * fit.sync.clock.reference_s
            figures[f"{name}_offset_error_ms"] = 1e3 * (fit.sync.clock.offset_s - truth)
        for source, aligned in (("log", result.from_log), ("states", result.from_states)):
            figures[f"{name}_open_loop_1s_mm_zero"] = aligned.zero[HORIZONS_S[-1]]
            figures[f"{name}_ratio_{source}"] = aligned.ratio
    for source, aligned in (("log", result.from_log), ("states", result.from_states)):
        slopes = stiffness_slopes(aligned, result.records["heldout"], profile, ("hip", "knee", "ankle"))
        for part, (slope, correlation) in zip(("hip", "knee", "ankle"), slopes.tolist(), strict=True):
            figures |= {f"{part}_slope_{source}": slope, f"{part}_correlation_{source}": correlation}
    return figures


def run_trial(trial: Trial, settings: AlignSettings = LINEAR, seed: int = 0) -> TruthResult:
    """Record, log, ingest and align; the alignment on the twin's own states beside it.

    Raises:
        StageError: the twin fell, or ingest gave no rollout.
    """
    profile = get_profile("g1_23dof")
    records, done = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for k, split in enumerate(SPLITS):
            seconds = trial.fit_s if split == "fit" else trial.other_s
            records[split] = stand(profile, seconds, trial.altered, trial.delay_s, Stand(seed=3 * seed + k))
            if fell(records[split]):
                raise StageError(f"the twin of split {split} fell")
            path = Path(folder) / f"{split}.mcap"
            write_twin_log(path, records[split], 3 * seed + k, trial.sensors)
            done[split] = ingest(read_log(path), profile, _rule(profile))
        exact = {split: exact_rollout(record, profile) for split, record in records.items()}
        logged = {split: _of_log(split, item) for split, item in done.items()}
        fits = [
            _align(profile, rollouts, exact["heldout"], settings, seed, Path(folder) / name)
            for name, rollouts in (("log", logged), ("states", exact))
        ]
    return TruthResult(done, records, *fits)


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


def stiffness_slopes(aligned: Aligned, record: TwinRecord, profile: RobotProfile, parts: tuple[str, ...]) -> Array:
    """(parts, 2) slope and correlation of the model's Δq on (target − angle) − kd / kp · speed, by part of joint names.

    A drive whose gains are β times the nominal ones is the nominal drive with Δq = (β − 1) times that.
    """
    rollout = exact_rollout(record, profile)
    rows = rollout.transitions()
    correction = DeltaCorrection(aligned.model.predict)
    steps = (correction(rollout.state.take(np.array([k])), rollout.joint_target[[k]]) for k in rows)
    delta = np.concatenate(list(steps))
    damping = np.asarray(profile.kd) / np.asarray(profile.kp)
    asked = rollout.joint_target[rows] - rollout.state.joint_pos[rows] - damping * rollout.state.joint_vel[rows]
    out = []
    for part in parts:
        joints = [k for k, name in enumerate(profile.joint_names) if part in name]
        x, y = (values[:, joints] - values[:, joints].mean(axis=0) for values in (asked, delta))
        out.append(
            [float((x * y).sum() / (x * x).sum()), float((x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()))]
        )
    return np.array(out)


def _rule(profile: RobotProfile) -> ActionRule:
    pose = dict(zip(profile.joint_names, np.asarray(profile.default_joint_pos).tolist(), strict=True))
    return ActionRule.from_values(profile, pose, _SCALE)


def _of_log(split: Split, done: Ingested) -> Rollout:
    if done.rollout is None:
        raise StageError(f"ingest made no rollout of split {split}: {done.why_no_rollout}")
    return done.rollout


def _align(
    profile: RobotProfile,
    rollouts: dict[Split, Rollout],
    judge: Rollout,
    settings: AlignSettings,
    seed: int,
    cache: Path,
) -> Aligned:
    """Fit on `rollouts`, replay `judge`."""
    fit = DeltaFitter(profile, NOMINAL, rollouts, settings, seed, cache).run()
    steps = horizon_steps(HORIZONS_S[-1], NOMINAL.physics.control_dt)
    segments = cut_segments(judge, profile, steps, steps // 2)
    simulator = make_simulator(profile, NOMINAL, segments.num)
    errors = [
        horizon_errors(replay_distance(simulator, profile, segments, correction), NOMINAL.physics.control_dt)
        for correction in (NoCorrection(), DeltaCorrection(fit.chosen.model.predict))
    ]
    return Aligned(errors[0], errors[1], fit.chosen.model)
