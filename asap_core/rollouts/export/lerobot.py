"""LeRobot v3.0: `meta/` and one `data/chunk-000/file-000.parquet`, one LeRobot episode per unbroken run.

`observation.state` holds joint angles and velocities and the root's pose and velocities (world, wxyz), `action` the raw
action, and the features `joint_target` and `joint_torque` the rest of a step, all float64 so that nothing is rounded;
`timestamp` is nominal. Not held are the state after a run's last step (it has no action), invalid rows, masks, frame
numbers of the reference motion, start phases and policies. The motion's name is the task.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.files import atomic_dir, write_json
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.export.runs import runs
from asap_core.rollouts.record import Rollout

VERSION = "v3.0"
_DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_CHUNK_SIZE = 1000
_ROOT = {"root_pos": "xyz", "root_quat": "wxyz", "root_lin_vel": "xyz", "root_ang_vel": "xyz"}
_QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
_INDEX = {"timestamp": "float32"} | dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), "int64")


def write(rollout: Rollout, profile: RobotProfile, path: Path) -> None:
    """The data set's folder.

    Raises:
        StageError: no usable transition, or the place cannot be written.
    """
    parts = runs(rollout)
    rows = np.concatenate(parts)
    tasks = sorted({str(rollout.motion[part[0]]) for part in parts})
    vectors = _vectors(rollout, rows)
    columns = _index_columns(rollout, parts, tasks)
    with atomic_dir(path) as partial:
        _write_data(partial / _DATA.format(chunk_index=0, file_index=0), vectors, columns)
        _write_episodes(partial, rollout, parts)
        _write_tasks(partial, tasks)
        write_json(partial / "meta" / "info.json", _info(rollout, vectors, len(parts), len(rows), len(tasks)))
        stats = {name: values for name, (values, _) in vectors.items()} | columns
        write_json(partial / "meta" / "stats.json", {name: _stats(values) for name, values in stats.items()})


def _vectors(rollout: Rollout, rows: NDArray[np.int64]) -> dict[str, tuple[NDArray[np.floating], list[str]]]:
    """Each vector feature with the names of its dimensions."""
    state = rollout.state.take(rows)
    joints = rollout.joint_names
    parts = [state.joint_pos, state.joint_vel, *(getattr(state, name) for name in _ROOT)]
    names = [f"{field}.{joint}" for field in ("joint_pos", "joint_vel") for joint in joints]
    names += [f"{name}.{axis}" for name, axes in _ROOT.items() for axis in axes]
    vectors: dict[str, tuple[NDArray[np.floating], list[str]]] = {
        "observation.state": (np.concatenate(parts, axis=1), names)
    }
    for feature in ("action", "joint_target", "joint_torque"):
        vectors[feature] = getattr(rollout, feature)[rows], list(joints)
    return vectors


def _index_columns(rollout: Rollout, parts: list[NDArray[np.int64]], tasks: list[str]) -> dict[str, NDArray]:
    lengths = [len(part) for part in parts]
    frame = np.concatenate([np.arange(length) for length in lengths])
    task = [tasks.index(str(rollout.motion[part[0]])) for part in parts]
    return {
        "timestamp": (frame * rollout.control_dt).astype(np.float32),
        "frame_index": frame,
        "episode_index": np.repeat(np.arange(len(parts)), lengths),
        "index": np.arange(sum(lengths)),
        "task_index": np.repeat(task, lengths),
    }


def _write_data(
    path: Path, vectors: dict[str, tuple[NDArray[np.floating], list[str]]], columns: dict[str, NDArray]
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays: dict[str, Any] = {
        name: pa.FixedSizeListArray.from_arrays(np.ascontiguousarray(values, np.float64).reshape(-1), values.shape[1])
        for name, (values, _) in vectors.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(arrays | columns), path)


def _write_episodes(folder: Path, rollout: Rollout, parts: list[NDArray[np.int64]]) -> None:
    import pandas as pd

    ends = np.cumsum([len(part) for part in parts])
    table = pd.DataFrame(
        {
            "episode_index": np.arange(len(parts)),
            "tasks": [[str(rollout.motion[part[0]])] for part in parts],
            "length": [len(part) for part in parts],
            "data/chunk_index": 0,
            "data/file_index": 0,
            "dataset_from_index": ends - [len(part) for part in parts],
            "dataset_to_index": ends,
            "meta/episodes/chunk_index": 0,
            "meta/episodes/file_index": 0,
        }
    )
    path = folder / "meta" / "episodes" / "chunk-000" / "file-000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_parquet(path, index=False)


def _write_tasks(folder: Path, tasks: list[str]) -> None:
    import pandas as pd

    table = pd.DataFrame({"task_index": range(len(tasks))}, index=pd.Index(tasks, name="task"))
    table.to_parquet(folder / "meta" / "tasks.parquet")


def _info(
    rollout: Rollout,
    vectors: dict[str, tuple[NDArray[np.floating], list[str]]],
    episodes: int,
    frames: int,
    tasks: int,
) -> dict[str, Any]:
    features: dict[str, Any] = {
        name: {"dtype": "float64", "shape": [values.shape[1]], "names": names}
        for name, (values, names) in vectors.items()
    }
    features |= {name: {"dtype": dtype, "shape": [1], "names": None} for name, dtype in _INDEX.items()}
    fps = rollout.fps
    return {
        "codebase_version": VERSION,
        "robot_type": rollout.robot,
        "total_episodes": episodes,
        "total_frames": frames,
        "total_tasks": tasks,
        "chunks_size": _CHUNK_SIZE,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": round(fps) if abs(fps - round(fps)) < 1e-6 else fps,
        "splits": {"train": f"0:{episodes}"},
        "data_path": _DATA,
        "video_path": None,
        "features": features,
        "asap_source": json.dumps(rollout.source, sort_keys=True, default=str),
    }


def _stats(values: NDArray) -> dict[str, list[float]]:
    """What LeRobot normalises with, per dimension."""
    table = np.asarray(values, np.float64).reshape(len(values), -1)
    stats = {"min": table.min(0), "max": table.max(0), "mean": table.mean(0), "std": table.std(0)}
    stats |= {name: np.quantile(table, q, axis=0) for name, q in _QUANTILES.items()}
    return {name: array.tolist() for name, array in stats.items()} | {"count": [float(len(table))]}
