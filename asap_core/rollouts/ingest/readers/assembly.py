"""From named fields to the streams of a log: fields of one kind that share a clock make one stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.readers.field_names import SYNONYMS, ColumnGroup
from asap_core.rollouts.ingest.streams import Kind, Stream

Float = NDArray[np.float64]
_LAST_AXIS: Mapping[str, int] = {"quat": 4, "ang_vel": 3, "lin_acc": 3, "rpy": 3, "pos": 3, "lin_vel": 3}


@dataclass(frozen=True)
class Field:
    """One field and what is known of it."""

    kind: Kind
    name: str
    """In `FIELDS[kind]`."""
    values: NDArray[Any]
    """(N, …)."""
    labels: tuple[str, ...] | None = None
    declared: Mapping[str, str] = field(default_factory=dict)


def table_fields(path: Path, groups: Iterable[ColumnGroup], columns: Mapping[str, Float]) -> list[Field]:
    """The fields that groups of columns make; named joints of all groups in the order of the first.

    Raises:
        InputFileError: two groups name different joints.
    """
    fields = []
    order: dict[Kind, tuple[str, ...]] = {}
    for group in groups:
        places = list(range(len(group.columns)))
        if group.labels is not None:
            first = order.setdefault(group.kind, group.labels)
            if set(first) != set(group.labels):
                odd = sorted(set(first) ^ set(group.labels))
                raise InputFileError(path, f"columns {group.stem}: other joints than the rest: {', '.join(odd[:4])}")
            places = [group.labels.index(label) for label in first]
        values = np.stack([columns[group.columns[i]] for i in places], axis=1)
        declared = {} if group.quat_order is None else {"quat_order": group.quat_order}
        fields.append(Field(group.kind, group.field, values, order.get(group.kind) if group.labels else None, declared))
    return fields


def make_streams(
    name: str,
    fields: Iterable[Field],
    scalars: Mapping[str, NDArray[Any]] | None = None,
    *,
    receive_time: Float | None = None,
    source_time: Float | None = None,
    sequence: NDArray[np.int64] | None = None,
    declared: Mapping[str, str] | None = None,
) -> tuple[Stream, ...]:
    """One stream per kind, called `name/kind`, all on the same clock."""
    kinds: dict[Kind, list[Field]] = {}
    for item in fields:
        kinds.setdefault(item.kind, []).append(item)
    streams = []
    for kind, items in kinds.items():
        known = dict(declared or {})
        for item in items:
            known |= item.declared
        streams.append(
            Stream(
                name=f"{name}/{kind}",
                kind=kind,
                values={item.name: item.values for item in items} | dict(scalars or {}),
                receive_time=receive_time,
                source_time=source_time,
                sequence=sequence,
                labels=next((item.labels for item in items if item.labels), None),
                declared=known,
            )
        )
    return tuple(streams)


def array_fields(arrays: Mapping[str, NDArray[Any]]) -> tuple[list[Field], list[str]]:
    """The fields that whole arrays are by their names, and the names that are none.

    Arrays are (N, …); of two names for one field the more specific is read. Prefixes up to the last '/' and a
    leading `ref_` or `robot_` do not count.
    """
    fields: dict[tuple[Kind, str], tuple[int, str, Field]] = {}
    rest = []
    for name, values in arrays.items():
        found = _array_field(name, values)
        if found is None:
            rest.append(name)
            continue
        rank, item = found
        key = item.kind, item.name
        if key not in fields or rank < fields[key][0]:
            rest += [fields[key][1]] if key in fields else []
            fields[key] = rank, name, item
        else:
            rest.append(name)
    return [item for _, _, item in fields.values()], rest


def _array_field(name: str, values: NDArray[Any]) -> tuple[int, Field] | None:
    plain = name.rsplit("/", 1)[-1].strip().lower()
    for prefix in ("ref_", "robot_", "obs_"):
        plain = plain.removeprefix(prefix)
    if plain not in SYNONYMS or values.dtype.kind not in "fiu":
        return None
    kind, field_name, rank = SYNONYMS[plain]
    if field_name in ("joint_pos", "joint_vel") and plain[:3] in ("pos", "vel") and values.shape[1:] == (3,):
        kind, field_name = "odometry", {"joint_pos": "pos", "joint_vel": "lin_vel"}[field_name]
    if field_name == "quat" and values.shape[1:] == (3, 3):
        return rank, Field(kind, field_name, matrices_to_quat(values), declared={"quat_order": "wxyz"})
    if kind in ("imu", "odometry", "pose") and values.shape[1:] != (_LAST_AXIS[field_name],):
        return None
    if values.ndim == 1:
        values = values[:, None]
    return (rank, Field(kind, field_name, np.asarray(values, np.float64))) if values.ndim == 2 else None


def matrices_to_quat(matrices: NDArray[Any]) -> Float:
    """Rotation matrices (N, 3, 3) as quaternions wxyz (N, 4); NaN where a matrix is not a rotation."""
    from scipy.spatial.transform import Rotation

    out = np.full((len(matrices), 4), np.nan)
    with np.errstate(all="ignore"):
        identity = np.einsum("nji,njk->nik", matrices, matrices)
        proper = np.abs(identity - np.eye(3)).max(axis=(1, 2)) < 1e-2
        proper &= np.linalg.det(np.where(np.isfinite(matrices), matrices, 0.0)) > 0
    if proper.any():
        out[proper] = Rotation.from_matrix(matrices[proper]).as_quat(scalar_first=True)
    return out


def rotvec_to_quat(vectors: Float) -> Float:
    """Rotation vectors (N, 3) rad as quaternions wxyz (N, 4), NaN where the vector is NaN."""
    from asap_core.rotations import rotvec_to_quat as convert

    out = np.full((len(vectors), 4), np.nan)
    seen = np.isfinite(vectors).all(axis=1)
    out[seen] = convert(vectors[seen])
    return out


def unread(what: str, names: Iterable[str]) -> tuple[str, ...]:
    """A note that lists what no field took."""
    names = list(names)
    if not names:
        return ()
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    return (f"not read, no known meaning or a second name for a field: {what} {shown}",)
