"""`ingest`: from a log to control steps that alignment can use, with the evidence for every choice on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from asap_core.errors import InputFileError, StageError
from asap_core.files import content_key
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.ingest import findings as find
from asap_core.rollouts.ingest.actions import ActionRule
from asap_core.rollouts.ingest.base_velocity import BaseMotion, mocap_base
from asap_core.rollouts.ingest.clock import Clocked, clocked, in_line
from asap_core.rollouts.ingest.findings import Finding
from asap_core.rollouts.ingest.floor import on_floor
from asap_core.rollouts.ingest.foot_contact import feel_feet
from asap_core.rollouts.ingest.fused_velocity import ImuSamples, fused_base
from asap_core.rollouts.ingest.gap import JointGap, joint_gaps
from asap_core.rollouts.ingest.health import saturated
from asap_core.rollouts.ingest.invariant_ekf import estimate_base
from asap_core.rollouts.ingest.lag import Lag, command_lag
from asap_core.rollouts.ingest.mocap_file import MOCAP
from asap_core.rollouts.ingest.quality import Quality, QualitySettings, judge
from asap_core.rollouts.ingest.robot_dataset import Entry
from asap_core.rollouts.ingest.steps import ControlSteps, at_times, control_steps
from asap_core.rollouts.ingest.stream_table import stream_table
from asap_core.rollouts.ingest.streams import Kind, Log, Stream
from asap_core.rollouts.ingest.summary import StreamSummary, summarise
from asap_core.rollouts.ingest.sync import Sync, synchronise
from asap_core.rollouts.ingest.understand import UnderstandOptions, Understood, understood
from asap_core.rollouts.record import Rollout
from asap_core.rotations import rotate, slerp
from asap_core.settings import Settings
from asap_core.simulators.protocol import RobotState

FORMAT_VERSION = 2
"""Of what ingest makes of a log; a change makes every log be read anew."""


_NEEDED: Mapping[Kind, tuple[str, ...]] = {
    "joint_state": ("joint_pos", "joint_vel"),
    "joint_command": ("joint_target",),
    "imu": ("ang_vel",),
}


class IngestSettings(Settings):
    """How logs are read."""

    control_dt: float = Field(default=0.02, gt=0, le=0.2)
    """s between the policy's actions."""
    search_s: float = Field(default=2.0, gt=0)
    """How far the mocap's clock may be from the robot's."""
    body: str | None = None
    """Rigid body of the mocap that is on the pelvis; needed where a log has several."""
    quality: QualitySettings = QualitySettings()


@dataclass(frozen=True)
class RunLabels:
    """What a log does not say of itself."""

    motion: str = "unknown"
    policy: str = "unknown"
    policy_sha256: str = "unknown"


@dataclass(frozen=True)
class Ingested:
    """A log after ingest. What could not be had is None, and `why_no_rollout` or a finding says why."""

    raw: Log
    """As read."""
    understood: Understood
    streams: Mapping[str, Clocked]
    findings: tuple[Finding, ...]
    table: Mapping[str, NDArray[Any]]
    """Column → (N,): the streams on one clock at the state's rate."""
    why_no_rollout: str | None
    sync: Sync | None = None
    lag: Lag | None = None
    steps: ControlSteps | None = None
    root: BaseMotion | None = None
    quality: Quality | None = None
    gaps: tuple[JointGap, ...] = ()
    rollout: Rollout | None = None

    def summaries(self) -> tuple[StreamSummary, ...]:
        """Every stream that the log holds, used or not."""
        return summarise(self.raw, self.streams, self.understood.stamp_s)


def ingest(
    log: Log,
    profile: RobotProfile,
    rule: ActionRule | None,
    settings: IngestSettings | None = None,
    options: UnderstandOptions | None = None,
    labels: RunLabels | None = None,
) -> Ingested:
    """Read a log's meaning, put it on one clock, cut it into control steps and judge them.

    Args:
        log: as a reader gave it.
        profile: the robot; its joints are taken from the log by name.
        rule: how raw actions are recovered from targets; without it there are gaps and quality, but no rollout.
        settings: rates and thresholds.
        options: what the user says of the log's meaning.
        labels: motion and policy of the run.

    Raises:
        UnknownNameError, ConfigError: an option is not among the valid answers.
    """
    settings, labels = settings or IngestSettings(), labels or RunLabels()
    meaning = understood(replace(log, streams=tuple(map(in_line, log.streams))), options)
    notes = [*find.of_log(log), *find.of_understanding(meaning)]
    streams = _clocked(meaning.log, notes)
    state, command, imu = (
        _first(streams, kind, profile.joint_names) for kind in ("joint_state", "joint_command", "imu")
    )
    if state is None or command is None:
        other = _other_robot(streams)
        if other is not None:
            return _of_other_robot(log, meaning, streams, notes, *other, profile, settings)
        kind: Kind = "joint_state" if state is None else "joint_command"
        reason = _what_is_missing(kind, meaning, streams, profile)
        table = {} if state is None else stream_table(state, None, imu, None)
        return Ingested(log, meaning, streams, _sorted(notes), table, reason)
    return _with_steps(log, meaning, streams, notes, state, command, imu, profile, rule, settings, labels)


def _with_steps(
    log: Log,
    meaning: Understood,
    streams: Mapping[str, Clocked],
    notes: list[Finding],
    state: Clocked,
    command: Clocked,
    imu: Clocked | None,
    profile: RobotProfile,
    rule: ActionRule | None,
    settings: IngestSettings,
    labels: RunLabels,
) -> Ingested:
    lag = command_lag(state, command)
    notes += find.of_lag(lag)
    sync, pose = _mocap(meaning.log, streams, imu, settings, notes)
    try:
        steps = control_steps(state, command, imu, rule or ActionRule.of_targets(profile), settings.control_dt)
    except StageError as error:
        notes.append(Finding("error", "no_steps", str(error)))
        table = stream_table(state, command, imu, pose)
        return Ingested(log, meaning, streams, _sorted(notes), table, str(error), sync, lag)
    notes += find.of_rate(steps.control_dt, settings.control_dt)
    root, why = _root(steps, state, imu, pose, sync, profile, notes)
    place = None if root is None else np.where(root.valid[:, None], root.pos, np.nan)
    quality = judge(steps, state, imu, profile, settings.quality, place)
    notes += find.of_quality(quality)
    full = saturated(steps, profile, settings.quality.saturation)
    gaps = joint_gaps(steps, quality.usable, state, lag, full)
    rollout = None
    if rule is None:
        why = "the raw actions are unknown: give --policy, or --action-default and --action-scale"
    elif meaning.contradictions:
        why = f"the data speak against what the log says: {meaning.contradictions[0]}"
    elif root is not None:
        if quality.runs:
            rollout = _rollout(meaning.log, steps, settings.control_dt, root, quality, profile, labels)
        else:
            why = f"no run of {settings.quality.min_run_s:g} s without a fault"
    table = stream_table(state, command, imu, pose)
    return Ingested(log, meaning, streams, _sorted(notes), table, why, sync, lag, steps, root, quality, gaps, rollout)


def _clocked(log: Log, notes: list[Finding]) -> dict[str, Clocked]:
    """Every stream with stamps on a clock of its own."""
    out = {}
    for stream in log.streams:
        if stream.kind == "event":
            continue
        try:
            out[stream.name] = clocked(stream)
        except StageError as error:
            notes.append(Finding("warning", "left_out", str(error)))
            continue
        notes += find.of_packets(stream.name, out[stream.name].packets, stream.num_samples)
    return out


def _other_robot(streams: Mapping[str, Clocked]) -> tuple[Clocked, Clocked, tuple[str, ...]] | None:
    """States and commands of named joints of some other robot, and the joints that both have."""
    for state in streams.values():
        for command in streams.values():
            shared = tuple(n for n in state.stream.labels or () if n in (command.stream.labels or ()))
            kinds = (state.stream.kind, command.stream.kind)
            if kinds == ("joint_state", "joint_command") and shared and _has_what_it_needs(state.stream):
                return state, command, shared
    return None


def _of_other_robot(
    log: Log,
    meaning: Understood,
    streams: Mapping[str, Clocked],
    notes: list[Finding],
    state: Clocked,
    command: Clocked,
    joints: tuple[str, ...],
    profile: RobotProfile,
    settings: IngestSettings,
) -> Ingested:
    """An arm, say: its joints' gaps, but no rollout, since its body is unknown."""
    lag = command_lag(state, command)
    notes += find.of_lag(lag)
    why = f"its joints ({', '.join(joints)}) are not those of {profile.name}"
    table = stream_table(state, command, None, None)
    try:
        steps = control_steps(state, command, None, ActionRule.of_joints(joints), settings.control_dt)
    except StageError as error:
        notes.append(Finding("error", "no_steps", str(error)))
        return Ingested(log, meaning, streams, _sorted(notes), table, why, lag=lag)
    gaps = joint_gaps(steps, steps.valid_state, state, lag, None)
    return Ingested(log, meaning, streams, _sorted(notes), table, why, lag=lag, steps=steps, gaps=gaps)


def _first(streams: Mapping[str, Clocked], kind: Kind, joints: tuple[str, ...]) -> Clocked | None:
    """The first stream of a kind; of joint streams, the first that has all of `joints`."""
    for item in streams.values():
        named = item.stream.labels is not None and set(joints) <= set(item.stream.labels)
        if item.stream.kind == kind and (named or kind == "imu") and _has_what_it_needs(item.stream):
            return item
    return None


def _has_what_it_needs(stream: Stream) -> bool:
    return all(name in stream.values for name in _NEEDED[stream.kind])


def _what_is_missing(kind: Kind, meaning: Understood, streams: Mapping[str, Clocked], profile: RobotProfile) -> str:
    """Why there is no stream of `kind` with all of the robot's joints."""
    reasons = [f"{name}: {why}" for name, why in meaning.left_out.items()]
    for name, item in streams.items():
        if item.stream.kind == kind:
            fields = [field for field in _NEEDED[kind] if field not in item.stream.values]
            joints = [joint for joint in profile.joint_names if joint not in (item.stream.labels or ())]
            lacks = ", ".join([*fields, *joints[:3], *([f"{len(joints) - 3} more joints"] if len(joints) > 3 else [])])
            reasons.append(f"{name}: it has no {lacks}")
    what = "joint states" if kind == "joint_state" else "joint commands"
    return f"no {what} of {profile.name}'s joints could be read" + (f" ({'; '.join(reasons)})" if reasons else "")


def _mocap(
    log: Log, streams: Mapping[str, Clocked], imu: Clocked | None, settings: IngestSettings, notes: list[Finding]
) -> tuple[Sync | None, Clocked | None]:
    """The pelvis's body on the robot's clock, if there is one and its clock can be found.

    Raises:
        InputFileError: the log has several bodies and none is named, or not the one that is.
    """
    bodies = {n: s for n, s in streams.items() if s.stream.kind in ("pose", "odometry") and "quat" in s.stream.values}
    if not bodies:
        return None, None
    name = settings.body
    if name is None and len(bodies) > 1:
        pelvis = [body for body in bodies if "pelvis" in body.lower()]
        name = pelvis[0] if len(pelvis) == 1 else None
        if name is None:
            raise InputFileError(log.path, f"several bodies: {', '.join(bodies)}; name the pelvis's with --body")
    name = name or next(iter(bodies))
    if name not in bodies:
        raise InputFileError(log.path, f"--body {name}: unknown; found {', '.join(bodies)}")
    pose = bodies[name]
    if imu is None:
        notes.append(Finding("note", "clock_unchecked", f"{name}: no gyro to find its clock with; stamps are believed"))
        return None, pose
    if np.array_equal(pose.time, imu.time):
        notes.append(Finding("note", "clock_shared", f"{name} has the robot's own stamps, row by row"))
        return None, pose
    try:
        sync = synchronise(imu.time, np.asarray(imu.stream.values["ang_vel"], float), pose.time,
                           np.asarray(pose.stream.values["quat"], float), settings.search_s)  # fmt: skip
    except StageError as error:
        notes.append(Finding("error", "clock_refused", f"mocap and IMU: {error}"))
        return None, None
    notes += find.of_sync(sync)
    if sync.refused:
        return sync, None
    return sync, Clocked(pose.stream, np.asarray(sync.clock.to_imu(pose.time), np.float64), pose.packets)


def _root(
    steps: ControlSteps,
    state: Clocked,
    imu: Clocked | None,
    pose: Clocked | None,
    sync: Sync | None,
    profile: RobotProfile,
    notes: list[Finding],
) -> tuple[BaseMotion | None, str | None]:
    """Base motion by mocap, with the IMU where both are there, else estimated from IMU and legs, else the reason."""
    if pose is not None:
        root, moved = on_floor(_measured_root(steps, imu, pose, sync), steps, profile)
        notes.append(find.of_floor(moved))
        return root, None
    if imu is None or not {"quat", "lin_acc"} <= set(imu.stream.values) or "joint_torque" not in state.stream.values:
        return None, "no mocap, and no IMU with orientation or no torques to estimate the base's motion from"
    notes.append(Finding("note", "velocity_estimated", "no mocap: the base's motion is estimated from IMU and legs"))
    return _estimated_root(steps, state, imu, profile), None


def _estimated_root(steps: ControlSteps, state: Clocked, imu: Clocked, profile: RobotProfile) -> BaseMotion:
    """By the legs and the IMU at the state's rate, then at the ticks; the world stands on the feet's lowest place."""
    labels = state.stream.labels or ()
    columns = [labels.index(name) for name in profile.joint_names]
    pos, torque = (np.asarray(state.stream.values[name], float)[:, columns] for name in ("joint_pos", "joint_torque"))
    rates, force = (
        at_times(state.time, imu.time, np.asarray(imu.stream.values[n], float)) for n in ("ang_vel", "lin_acc")
    )
    quat = slerp(np.asarray(imu.stream.values["quat"], float), imu.time, state.time)
    feet = feel_feet(profile, state.time, quat, pos, torque)
    base = estimate_base(state.time, rates, force, quat[0], feet)
    soles = base.pos[:, None] + rotate(base.quat[:, None], feet.place)
    ground = float(np.median(soles[..., 2][feet.contact])) if feet.contact.any() else float(soles[..., 2].min())
    lift = np.array([0.0, 0.0, -ground])
    return BaseMotion(
        kind=base.kind,
        pos=at_times(steps.time, state.time, base.pos + lift),
        quat=slerp(base.quat, state.time, steps.time),
        lin_vel=at_times(steps.time, state.time, base.lin_vel),
        ang_vel=at_times(steps.time, state.time, base.ang_vel),
        valid=steps.valid_state,
        lever=base.lever,
    )


def _measured_root(steps: ControlSteps, imu: Clocked | None, pose: Clocked, sync: Sync | None) -> BaseMotion:
    pos, quat = (np.asarray(pose.stream.values[name], float) for name in ("pos", "quat"))
    mount = np.array([1.0, 0.0, 0.0, 0.0]) if sync is None else sync.mount_quat
    if sync is not None and imu is not None and "lin_acc" in imu.stream.values:
        rates, force = (np.asarray(imu.stream.values[name], float) for name in ("ang_vel", "lin_acc"))
        samples = ImuSamples(imu.time, rates, force)
        return fused_base(pose.time, pos, quat, samples, steps.time, mount, sync.gyro_bias)
    return mocap_base(pose.time, pos, quat, steps.time, mount, np.zeros(3))


def _rollout(
    log: Log,
    steps: ControlSteps,
    control_dt: float,
    root: BaseMotion,
    quality: Quality,
    profile: RobotProfile,
    labels: RunLabels,
) -> Rollout:
    """One episode a run; its last row has the state alone, as the record wants it.

    `control_dt` is the policy's, not what this log's clock made of it, so that logs can be read together.
    """
    rows = np.concatenate([np.arange(first, end) for first, end in quality.runs])
    last = np.concatenate([np.arange(first, end) == end - 1 for first, end in quality.runs])
    episode = np.concatenate([np.full(end - first, k) for k, (first, end) in enumerate(quality.runs)])
    state = RobotState(
        root_pos=root.pos[rows],
        root_quat=root.quat[rows],
        root_lin_vel=root.lin_vel[rows],
        root_ang_vel=root.ang_vel[rows],
        joint_pos=steps.joint_pos[rows],
        joint_vel=steps.joint_vel[rows],
    )

    def acting(values: NDArray[np.floating]) -> NDArray[np.floating]:
        out = values[rows].copy()
        out[last] = np.nan
        return out

    torque = np.nan_to_num(steps.joint_torque)
    total = len(rows)
    return Rollout(
        robot=profile.name,
        joint_names=steps.joint_names,
        control_dt=control_dt,
        source={
            "kind": log.recorded,
            "label": "recorded run" if log.recorded == "robot" else "twin, not a robot",
            "tool": "asap ingest",
            "path": log.path.name,
            "sha256": log.sha256,
            "format": log.format,
            "base_velocity": root.kind,
        },
        state=state,
        action=acting(steps.action),
        joint_target=acting(steps.joint_target),
        joint_torque=acting(torque),
        valid=~last,
        episode=episode.astype(np.int64),
        frame=rows.astype(np.int64),
        start_phase=np.zeros(total),
        motion=np.full(total, labels.motion),
        policy=np.full(total, labels.policy),
        policy_sha256=np.full(total, labels.policy_sha256),
        masks={name: mask[rows] for name, mask in quality.masks.items()},
    )


def entry_of(
    ingested: Ingested, profile: RobotProfile, rule: ActionRule, settings: IngestSettings, options: UnderstandOptions,
    labels: RunLabels,
) -> Entry:  # fmt: skip
    """What the data set keeps of a log."""
    log = ingested.understood.log
    decided = [settings.model_dump(mode="json"), options.model_dump(mode="json"), asdict(labels), profile.name]
    decided += [log.metadata[MOCAP]] if MOCAP in log.metadata else []
    numbers = [np.asarray(rule.base).tolist(), rule.scale.tolist(), rule.clip]
    key = content_key(FORMAT_VERSION, log.sha256, decided, numbers)
    return Entry(log.sha256, key, ingested.rollout, ingested.table, report_of(ingested, profile, labels))


def report_of(ingested: Ingested, profile: RobotProfile, labels: RunLabels) -> dict[str, Any]:
    """Evidence, findings and gaps of a log as JSON."""
    log, quality, sync, lag = ingested.understood.log, ingested.quality, ingested.sync, ingested.lag
    return _finite(
        {
            "path": log.path.name,
            "sha256": log.sha256,
            "format": log.format,
            "kind": log.recorded,
            "mocap": log.metadata.get(MOCAP),
            "robot": profile.name,
            **asdict(labels),
            "usable_s": 0.0 if quality is None else quality.usable_s,
            "recorded_s": 0.0 if quality is None else quality.recorded_s,
            "episodes": 0 if quality is None else len(quality.runs),
            "why_no_rollout": ingested.why_no_rollout,
            "base_velocity": None if ingested.root is None else ingested.root.kind,
            "findings": [finding.to_json() for finding in ingested.findings],
            "decisions": [{**asdict(d), "text": d.text} for d in ingested.understood.decisions],
            "streams": {
                name: {**asdict(item.packets), "gaps": item.packets.gaps.tolist(), "samples": len(item.time)}
                for name, item in ingested.streams.items()
            },
            "sync": None if sync is None else _sync_json(sync),
            "lag_ms": None if lag is None or lag.lag_s is None else 1e3 * lag.lag_s,
            "gaps": [asdict(gap) for gap in ingested.gaps],
            "masks": {} if quality is None else {name: float(mask.mean()) for name, mask in quality.masks.items()},
        }
    )


def _sync_json(sync: Sync) -> dict[str, Any]:
    return {
        "offset_ms": 1e3 * sync.clock.offset_s,
        "offset_sigma_ms": 1e3 * sync.offset_sigma_s,
        "drift_ppm": 1e6 * sync.clock.drift,
        "drift_fitted": sync.drift_fitted,
        "vector_r2": sync.vector_r2,
        "excitation": sync.excitation,
        "mount_quat": sync.mount_quat.tolist(),
        "refused": list(sync.refused),
    }


def _finite(value: Any) -> Any:
    """With None for every number that JSON cannot hold."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def _sorted(notes: list[Finding]) -> tuple[Finding, ...]:
    """The gravest first, each once."""
    rank = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(dict.fromkeys(notes), key=lambda finding: rank[finding.severity]))
