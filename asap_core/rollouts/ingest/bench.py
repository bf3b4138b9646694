"""Measurements of ingest: how fast a log is read, and how much memory it takes."""

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
