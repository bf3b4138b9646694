"""LeRobot datasets v2.1 (one Parquet file per episode) and v3.0 (many episodes per file), read without lerobot.

`observation.state` is taken apart by its names where they say what they are (`knee.pos`, `knee.vel`, `root_pos.x`);
a state of bare joint names is joint angles. `timestamp` is nominal (frame / fps), from 0 in each episode, and
`action` is whatever the recorder commanded: joint targets where the names equal the state's joints.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.files import read_object, sha256_tree
from asap_core.rollouts.ingest.readers.assembly import Field, make_streams, table_fields, unread
from asap_core.rollouts.ingest.readers.field_names import group_columns
from asap_core.rollouts.ingest.streams import Log

FORMAT = "lerobot"
_VERSIONS = ("v2.0", "v2.1", "v3.0")
_INDEX = ("timestamp", "frame_index", "episode_index", "index", "task_index")
_VECTORS: Mapping[str, str] = {"joint_target": "joint_target", "joint_torque": "joint_torque"}
"""Features of this product's own export beside the two that every data set has."""


def sniff(path: Path) -> bool:
    """A folder with meta/info.json and data/."""
    return path.is_dir() and (path / "meta" / "info.json").is_file() and (path / "data").is_dir()


def read(path: Path) -> Log:
    """All episodes, in order; scalar `episode` tells them apart. A damaged file of episodes is left out and said.

    Raises:
        InputFileError: another version, no readable episode, or columns that do not fit the features.
    """
    info = read_object(path / "meta" / "info.json", ("features",))
    if info.get("codebase_version") not in _VERSIONS:
        found = info.get("codebase_version")
        raise InputFileError(
            path / "meta" / "info.json", f"field codebase_version: found {found!r}, expected {_VERSIONS}"
        )
    features: dict[str, Any] = info["features"]
    wanted = [name for name in ("observation.state", "action", *_VECTORS) if _is_vector(features.get(name))]
    if not wanted:
        raise InputFileError(path, f"features: found {', '.join(features)[:200]}, expected observation.state or action")
    columns, notes = _columns(path, [*wanted, "timestamp", "frame_index", "episode_index"])
    episodes = _whole_numbers(path, "episode_index", columns["episode_index"])
    fields, rest = _fields(path, {name: (columns[name], _names(features[name])) for name in wanted})
    skipped = [name for name in features if name not in (*wanted, *_INDEX)]
    streams = make_streams(
        path.name,
        fields,
        {"episode": episodes, "frame": _whole_numbers(path, "frame_index", columns["frame_index"])},
        source_time=columns["timestamp"],
        declared={"time_unit": "s"},
    )
    metadata = {"fps": info.get("fps"), "robot_type": info.get("robot_type"), "version": info["codebase_version"]}
    said = tuple(notes) + unread("features", skipped) + unread("dimensions of observation.state", rest)
    return Log(path, FORMAT, _digest(path), streams, said, metadata)


def _is_vector(feature: Any) -> bool:
    if not isinstance(feature, dict) or not str(feature.get("dtype", "")).startswith(("float", "int")):
        return False
    shape = feature.get("shape")
    return isinstance(shape, list) and len(shape) == 1


def _names(feature: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The dimensions' names from a list, a list of lists or `{"motors": […]}`; None if there are none."""
    flat = tuple(_flat(feature.get("names")))
    return flat if len(flat) == feature["shape"][0] else None


def _flat(names: Any) -> Iterable[str]:
    if isinstance(names, dict):
        names = list(names.values())
    if isinstance(names, list):
        for item in names:
            yield from _flat(item)
    elif isinstance(names, str):
        yield names


def _columns(path: Path, names: list[str]) -> tuple[dict[str, NDArray[np.float64]], list[str]]:
    """The columns of all data files in one, sorted by episode and frame, and what was left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts: list[dict[str, NDArray[np.float64]]] = []
    notes = []
    for file in sorted((path / "data").glob("chunk-*/*.parquet")):
        try:
            table = pq.read_table(file, columns=names)
            missing = [name for name in names if name not in table.column_names]
            if missing:
                raise InputFileError(file, f"missing {', '.join(missing)}")
            parts.append({name: _array(file, name, table.column(name)) for name in names})
        except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
            notes.append(
                f"{file.relative_to(path)} left out: not readable Parquet ({str(error).splitlines()[0][:120]})"
            )
        except InputFileError as error:
            notes.append(f"{file.relative_to(path)} left out: {error.reason}")
    shapes = {name: {part[name].shape[1:] for part in parts} for name in names}
    odd = [name for name, found in shapes.items() if len(found) > 1]
    if not parts or odd:
        said = f"files of different widths in {odd[0]}" if odd else (notes[0] if notes else "no data/chunk-*/*.parquet")
        raise InputFileError(path, said)
    joined = {name: np.concatenate([part[name] for part in parts]) for name in names}
    if not len(joined["timestamp"]):
        raise InputFileError(path, "no rows")
    order = np.lexsort((joined["frame_index"], joined["episode_index"]))
    return {name: values[order] for name, values in joined.items()}, notes


def _array(file: Path, name: str, column: Any) -> NDArray[np.float64]:
    """A column as (N,) or (N, C)."""
    import pyarrow as pa

    column = column.combine_chunks()
    if column.null_count:
        raise InputFileError(file, f"column {name}: {column.null_count} empty values")
    if not isinstance(column, pa.FixedSizeListArray | pa.ListArray | pa.LargeListArray):
        return column.to_numpy(zero_copy_only=False).astype(np.float64)
    flat = column.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
    width = len(flat) // max(len(column), 1)
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    if (lengths != width).any():
        raise InputFileError(file, f"column {name}: rows of {int(lengths.min())} to {int(lengths.max())} numbers")
    return flat.reshape(len(column), width)


def _whole_numbers(path: Path, name: str, values: NDArray[np.float64]) -> NDArray[np.int64]:
    if values.ndim != 1 or not np.isfinite(values).all() or (values != np.floor(values)).any():
        raise InputFileError(path, f"column {name}: found values that are no whole numbers")
    return values.astype(np.int64)


def _fields(
    path: Path, vectors: Mapping[str, tuple[NDArray[np.float64], tuple[str, ...] | None]]
) -> tuple[list[Field], list[str]]:
    """The fields of all vectors, and the dimensions of the state that none took."""
    fields: list[Field] = []
    rest: list[str] = []
    joints: tuple[str, ...] | None = None
    if "observation.state" in vectors:
        values, names = vectors["observation.state"]
        fields, rest = _state(path, values, names)
        joints = next((item.labels for item in fields if item.name == "joint_pos"), None)
    for name, (values, names) in vectors.items():
        if name == "observation.state":
            continue
        if values.ndim != 2:
            raise InputFileError(path, f"column {name}: found one number per row, expected a list")
        field_name = _VECTORS.get(name, "action")
        plain = tuple(_joint(label) for label in names) if names else None
        if name == "action" and plain is not None and plain == joints and "joint_target" not in vectors:
            field_name = "joint_target"
        kind = "joint_state" if field_name == "joint_torque" else "joint_command"
        fields.append(Field(kind, field_name, values, plain))  # type: ignore[arg-type]
    return fields, rest


def _state(path: Path, values: NDArray[np.float64], names: tuple[str, ...] | None) -> tuple[list[Field], list[str]]:
    """The state by its dimensions' names; bare joint names are joint angles."""
    if values.ndim != 2:
        raise InputFileError(path, "column observation.state: found one number per row, expected a list")
    if names is None or len(names) != values.shape[1] or len(set(names)) != len(names):
        return [Field("joint_state", "joint_pos", values)], []
    if all(name.endswith(".pos") for name in names):
        return [Field("joint_state", "joint_pos", values, tuple(map(_joint, names)))], []
    try:
        groups, rest = group_columns(names)
    except ValueError as error:
        raise InputFileError(path, f"observation.state: {error}") from None
    if not groups:
        return [Field("joint_state", "joint_pos", values, names)], []
    return table_fields(path, groups, dict(zip(names, values.T, strict=True))), rest


def _joint(label: str) -> str:
    return label.removesuffix(".pos").removesuffix(".q")


def _digest(path: Path) -> str:
    """Of meta and data; videos are not read."""
    digest = hashlib.sha256()
    for folder in ("meta", "data"):
        digest.update(sha256_tree(path / folder).encode())
    return digest.hexdigest()
