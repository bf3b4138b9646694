"""How well clock and base velocity are recovered, on takes and walks whose truth is known."""

from __future__ import annotations

import time

import numpy as np

from asap_core.robots import get_profile
from asap_core.rollouts.ingest.base_velocity import mocap_base
from asap_core.rollouts.ingest.clock import clocked
from asap_core.rollouts.ingest.foot_contact import feel_feet
from asap_core.rollouts.ingest.fused_velocity import ImuSamples, fused_base
from asap_core.rollouts.ingest.generator import TakeSettings, make_take
from asap_core.rollouts.ingest.invariant_ekf import estimate_base
from asap_core.rollouts.ingest.streams import Stream
from asap_core.rollouts.ingest.sync import synchronise
from asap_core.rollouts.ingest.walking_twin import Walk, walk
from asap_core.rotations import Array, quat_mul, rotate, rotate_inverse, rotvec_to_quat, slerp

_MOCAP_HZ = 120.0
_LEVER = np.array([0.05, -0.02, 0.1])
_OFFSET_S = 0.37
_SETTLED_S = 2.0


def offset_figures(duration_s: float = 20.0, seeds: int = 100) -> dict[str, float]:
    """Errors of the mocap's clock over takes of the generator, arrival jitter included.

    Returns:
        offset_rms_ms and offset_max_ms in the middle of the take, start_rms_ms at its start (where an unfitted drift
        adds), drift_rms_ppm, sigma_ratio (rms of error over reported sigma; 1 is honest), refused (share of takes),
        seconds_per_take.
    """
    middle, start, drift, ratio, refused, spent = [], [], [], [], 0, 0.0
    for seed in range(seeds):
        take = make_take(seed, TakeSettings(duration_s=duration_s))
        truth, stamps = take.truth, take.imu.source_time
        assert stamps is not None
        begin = time.perf_counter()
        mocap = clocked(take.mocap)
        found = synchronise(stamps, take.imu.values["ang_vel"], mocap.time, mocap.stream.values["quat"])
        spent += time.perf_counter() - begin
        at = found.clock.reference_s
        middle.append(found.clock.offset_s - truth.offset_s - truth.drift * at)
        start.append(float(found.clock.to_mocap(np.zeros(1))[0]) - truth.offset_s)
        drift.append(found.clock.drift - truth.drift)
        ratio.append(middle[-1] / found.offset_sigma_s)
        refused += bool(found.refused)
    return {
        "offset_rms_ms": _rms(middle) * 1e3,
        "offset_max_ms": float(np.abs(middle).max()) * 1e3,
        "start_rms_ms": _rms(start) * 1e3,
        "drift_rms_ppm": _rms(drift) * 1e6,
        "sigma_ratio": _rms(ratio),
        "refused": refused / seeds,
        "seconds_per_take": spent / seeds,
    }


def velocity_figures(seconds: float = 15.0, seeds: int = 4) -> dict[str, float]:
    """Base velocity of a walking twin with footfalls, mm/s rms over axes, clocks and mounts estimated as in a log.

    Returns:
        velocity_mm_s of mocap with IMU, savgol_mm_s of mocap alone with the same lever, estimated_mm_s without mocap
        (in the base's frame, since its heading is free), peak_acc (m/s², the hardest footfall).
    """
    fused, alone, estimated, peak = [], [], [], 0.0
    profile = get_profile("g1_23dof")
    for seed in range(seeds):
        walked, rng = walk(profile, seconds, seed), np.random.default_rng(seed)
        gyro = walked.ang_vel + rng.normal(0.0, 5e-3, walked.ang_vel.shape) + rng.normal(0.0, 0.01, 3)
        acc = walked.lin_acc + rng.normal(0.0, 0.1, walked.ang_vel.shape) + rng.normal(0.0, 0.05, 3)
        mocap = clocked(_mocap_of(walked, rng))
        pos, quat = mocap.stream.values["pos"], mocap.stream.values["quat"]
        sync = synchronise(walked.time, gyro, mocap.time, quat)
        frames = sync.clock.to_imu(mocap.time)
        at = walked.time[(walked.time > 0.5) & (walked.time < seconds - 0.5)]
        truth = np.stack([np.interp(at, walked.time, column) for column in walked.root_lin_vel.T], axis=1)
        imu = ImuSamples(walked.time, gyro, acc)
        joined = fused_base(frames, pos, quat, imu, at, sync.mount_quat, sync.gyro_bias)
        fused.append(joined.lin_vel - truth)
        alone.append(mocap_base(frames, pos, quat, at, sync.mount_quat, joined.lever).lin_vel - truth)
        estimated.append(_estimate_error(walked, gyro, acc, rng))
        peak = max(peak, float(np.abs(walked.lin_acc).max()))
    return {
        "velocity_mm_s": _rms(np.concatenate(fused)) * 1e3,
        "savgol_mm_s": _rms(np.concatenate(alone)) * 1e3,
        "estimated_mm_s": _rms(np.concatenate(estimated)) * 1e3,
        "peak_acc": peak,
    }


def _mocap_of(walked: Walk, rng: np.random.Generator) -> Stream:
    """120 Hz frames of a body on the pelvis with 0.3 mm and 0.11° of noise, numbered, on a clock of its own."""
    taken = np.arange(0.1, walked.time[-1] - 0.1, 1 / _MOCAP_HZ)
    quat = slerp(walked.root_quat, walked.time, taken)
    pos = np.stack([np.interp(taken, walked.time, column) for column in walked.root_pos.T], axis=1)
    pos = pos + rotate(quat, np.tile(_LEVER, (len(taken), 1))) + rng.normal(0.0, 3e-4, pos.shape)
    mount = np.broadcast_to(rotvec_to_quat(rng.normal(0.0, 0.3, 3)), quat.shape)
    wobble = rotvec_to_quat(rng.normal(0.0, np.radians(0.11), pos.shape))
    arrival = np.maximum.accumulate(taken + _OFFSET_S + rng.exponential(2e-3, len(taken)))
    values = {"pos": pos, "quat": quat_mul(quat_mul(quat, mount), wobble)}
    return Stream("mocap/pelvis", "pose", values, receive_time=arrival, sequence=np.arange(len(taken), dtype=np.int64))


def _estimate_error(walked: Walk, gyro: Array, acc: Array, rng: np.random.Generator) -> Array:
    profile = get_profile("g1_23dof")
    joint_pos = walked.joint_pos + rng.normal(0.0, 1e-3, walked.joint_pos.shape)
    feet = feel_feet(profile, walked.time, walked.root_quat, joint_pos, walked.joint_torque)
    base = estimate_base(walked.time, gyro, acc, walked.root_quat[0], feet)
    away = rotate_inverse(base.quat, base.lin_vel) - rotate_inverse(walked.root_quat, walked.root_lin_vel)
    return away[walked.time > _SETTLED_S]


def _rms(values: list[float] | Array) -> float:
    known = np.asarray(values, float)
    return float(np.sqrt(np.nanmean(known**2)))
