"""Measurements of ingest: speed and memory of reading, clocks, base velocity, faults named."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

_STATE_HZ, _COMMAND_HZ, _MOCAP_HZ = 500, 50, 120
_SPEED_S = 60.0
_MEMORY_S = 600.0
_REPEATS = 3
_JOINTS = 29
_TAKES = 100
_WALKS, _WALK_S = 3, 12.0
_FAULT_SEEDS, _CLEAN_SEEDS = 2, 5
_SHORT_S, _LONG_S = 20.0, 80.0


def bench() -> Mapping[str, float]:
    """All of the figures below; takes minutes."""
    return {**decode_bench(), **sync_bench(), **velocity_bench(), **fault_bench()}


def sync_bench() -> Mapping[str, float]:
    """The mocap's clock on seeded takes of 20 s: rms and largest error at the take's start, ms, and takes refused."""
    from asap_core.rollouts.ingest.clock import clocked
    from asap_core.rollouts.ingest.generator import make_take
    from asap_core.rollouts.ingest.sync import synchronise

    errors, refused = [], 0
    for seed in range(_TAKES):
        take = make_take(seed)
        mocap = clocked(take.mocap)
        assert take.imu.source_time is not None
        found = synchronise(take.imu.source_time, take.imu.values["ang_vel"], mocap.time, mocap.stream.values["quat"])
        refused += bool(found.refused)
        errors.append(1e3 * (float(found.clock.to_mocap(np.zeros(1))[0]) - take.truth.offset_s))
    size = np.abs(errors)
    return {
        "offset_takes": _TAKES,
        "offset_rms_ms": float(np.sqrt((size**2).mean())),
        "offset_max_ms": float(size.max()),
        "offset_refused": refused,
    }


def velocity_bench() -> Mapping[str, float]:
    """Base velocity of a walking twin with footfalls, 120 Hz mocap with 0.3 mm noise: rms per axis, mm/s.

    With the IMU, as ingest does it, clock, mount and bias found from the same data; and from mocap alone by
    Savitzky–Golay. The walks differ from those of the tests.
    """
    from asap_core.robots import get_profile
    from asap_core.rollouts.ingest.base_velocity import mocap_base
    from asap_core.rollouts.ingest.fused_velocity import ImuSamples, fused_base
    from asap_core.rollouts.ingest.sync import synchronise
    from asap_core.rollouts.ingest.walking_twin import walk
    from asap_core.rotations import quat_mul, rotate, rotvec_to_quat, slerp

    squares: dict[str, list[float]] = {"": [], "_mocap_alone": []}
    for seed in range(100, 100 + _WALKS):
        rng, truth = np.random.default_rng(seed), walk(get_profile("g1_23dof"), _WALK_S, seed)
        mount, lever, bias = (rng.normal(0.0, size, 3) for size in (0.3, 0.05, 0.02))
        frames = np.arange(0.1, truth.time[-1] - 0.1, 1 / _MOCAP_HZ)
        quat = slerp(truth.root_quat, truth.time, frames)
        pos = np.stack([np.interp(frames, truth.time, column) for column in truth.root_pos.T], axis=1)
        pos = pos + rotate(quat, lever) + rng.normal(0.0, 3e-4, pos.shape)
        quat = quat_mul(quat_mul(quat, rotvec_to_quat(mount)), rotvec_to_quat(rng.normal(0.0, 1.9e-3, pos.shape)))
        rates = truth.ang_vel + rng.normal(0.0, 5e-3, truth.ang_vel.shape) + bias
        force = truth.lin_acc + rng.normal(0.0, 0.1, rates.shape) + rng.normal(0.0, 0.05, 3)
        sync = synchronise(truth.time, rates, frames, quat)
        at = np.arange(0.5, truth.time[-1] - 0.5, 0.02)
        there = np.asarray(sync.clock.to_imu(frames))
        fused = fused_base(there, pos, quat, ImuSamples(truth.time, rates, force), at, sync.mount_quat, sync.gyro_bias)
        alone = mocap_base(there, pos, quat, at, sync.mount_quat, lever)
        speed = np.stack([np.interp(at, truth.time, column) for column in truth.root_lin_vel.T], axis=1)
        for name, base in (("", fused), ("_mocap_alone", alone)):
            squares[name].append(float(np.nanmean((base.lin_vel - speed) ** 2)))
    return {f"base_velocity_rms_mm_s{name}": 1e3 * float(np.sqrt(np.mean(v))) for name, v in squares.items()}


def fault_bench() -> Mapping[str, float]:
    """Faults put into logs of a twin that stands and moves, and sound logs: how many are named, how many false alarms.

    Every fault that a layout can have, in MCAP and npz; drift on a take of 80 s.
    """
    from asap_core.robots import get_profile
    from asap_core.rollouts.ingest.fault_check import check_faults, twin_logs
    from asap_core.rollouts.ingest.standing_twin import Stand, stand

    profile = get_profile("g1_23dof")
    checks = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(_CLEAN_SEEDS):
            record = stand(profile, _SHORT_S, movement=Stand(seed=seed))
            for log in twin_logs(record, Path(folder), seed).values():
                checks.append(check_faults(log, profile, seed, None if seed < _FAULT_SEEDS else ()))
        long = twin_logs(stand(profile, _LONG_S), Path(folder), 0)["mcap"]
        checks.append(check_faults(long, profile, 0, ("drift", "latency")))
    named = [done for check in checks for done in check.named.values()]
    return {
        "faults_injected": len(named),
        "faults_named": sum(named),
        "clean_logs": len(checks),
        "false_alarms": sum(len(check.alarms) for check in checks),
    }


def decode_bench() -> Mapping[str, float]:
    """Reading of a MCAP that a G1's recorder would write, file and checksum of the file included.

    Returns:
        `lowstate_x_real_time`: LowState alone at 500 Hz without checksums, as simulators leave them;
        `lowstate_crc_x_real_time`: with checksums, which are verified; `log_x_real_time`: with LowCmd at 50 Hz and a
        mocap pose at 120 Hz; each the best of three. `ten_minutes_peak_mb`: memory of a process that does nothing but
        read ten minutes of the last.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.mcap"
        figures = {}
        for name, crc, others in (("lowstate", False, False), ("lowstate_crc", True, False), ("log", True, True)):
            write_plain_log(path, _SPEED_S, with_crc=crc, with_others=others)
            figures[f"{name}_x_real_time"] = _SPEED_S / min(_seconds(path) for _ in range(_REPEATS))
        alone = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, alone, max_tasks_per_child=1) as pool:
            pool.submit(write_plain_log, path, _MEMORY_S).result()
            figures["ten_minutes_peak_mb"] = pool.submit(_peak_mb, path).result()
    return figures


def write_plain_log(path: Path, seconds: float, *, with_crc: bool = True, with_others: bool = True) -> None:
    """A log of sine waves with noise that does not compress, without jitter or faults.

    Args:
        path: the `.mcap` to write.
        seconds: its length.
        with_crc: whether LowState and LowCmd carry checksums.
        with_others: whether there are commands, but for one, and mocap.
    """
    from asap_core.rollouts.ingest.lowstate_log import write_g1_log

    rng = np.random.default_rng(0)
    stamp = 1.7e9 + np.arange(round(seconds * _STATE_HZ)) / _STATE_HZ
    command = 1.7e9 + np.arange(round(seconds * _COMMAND_HZ) if with_others else 1) / _COMMAND_HZ
    mocap = 1.7e9 + np.arange(round(seconds * _MOCAP_HZ)) / _MOCAP_HZ if with_others else None
    joint_pos = np.sin(stamp[:, None] + np.arange(_JOINTS)) + rng.normal(0, 1e-3, (len(stamp), _JOINTS))
    yaw = 0.5 * np.sin(stamp if mocap is None else mocap)
    heading = np.stack([np.cos(yaw / 2), 0 * yaw, 0 * yaw, np.sin(yaw / 2)], axis=-1)
    write_g1_log(
        path,
        time=stamp,
        joint_pos=joint_pos,
        joint_vel=rng.normal(0, 1, joint_pos.shape),
        joint_torque=rng.normal(0, 10, joint_pos.shape),
        imu_quat=[[1.0, 0.0, 0.0, 0.0]],
        ang_vel=rng.normal(0, 0.1, (len(stamp), 3)),
        lin_acc=rng.normal([0, 0, 9.81], 0.1, (len(stamp), 3)),
        command_time=command,
        joint_target=np.sin(command[:, None] + np.arange(_JOINTS)),
        kp=np.full(_JOINTS, 100.0),
        kd=np.full(_JOINTS, 2.0),
        mocap_time=mocap,
        mocap_pos=None if mocap is None else np.stack([yaw, yaw, 0.8 + 0 * yaw], axis=-1),
        mocap_quat=heading,
        with_crc=with_crc,
    )


def _seconds(path: Path) -> float:
    from asap_core.rollouts.ingest.readers import read_log

    start = time.perf_counter()
    read_log(path)
    return time.perf_counter() - start


def _peak_mb(path: Path) -> float:
    """Largest resident memory of this process after reading `path`."""
    _seconds(path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3 / 1.024)
