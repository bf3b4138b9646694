"""A user's own words on a table: which columns are the time and which make each field (`--columns map.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from asap_core.errors import ConfigError, unknown_name
from asap_core.rollouts.ingest.readers.field_names import ColumnGroup, seconds_per
from asap_core.rollouts.ingest.streams import FIELDS, Kind

_PLACES: Mapping[str, tuple[Kind, str]] = {
    f"{kind}.{name}": (kind, name) for kind, names in FIELDS.items() for name in names if name not in ("text",)
}
_DECLARED = ("quat_order", "up_axis", "length_unit", "angle_unit", "twist_frame", "joint_order")


@dataclass(frozen=True)
class ColumnMap:
    """What `map.yaml` says; what it leaves out is found by the columns' names."""

    fields: Mapping[tuple[Kind, str], str | tuple[str, ...]] = field(default_factory=dict)
    """Column names in order, or one pattern with a `*` that runs over the joints in the table's order."""
    time: str | None = None
    time_unit: str | None = None
    """s, ms, us or ns; None leaves it open."""
    joint_names: tuple[str, ...] | None = None
    declared: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path | str) -> ColumnMap:
        """Read a map such as

            time: {column: t, unit: ms}
            joint_state.joint_pos: motor_*_pos
            imu.quat: [qw, qx, qy, qz]
            joint_names: [left_hip_pitch_joint, …]
            quat_order: wxyz

        Raises:
            ConfigError: not YAML, an unknown key (the valid ones are named), or a value of another shape.
        """
        import yaml

        try:
            content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise ConfigError(f"{path}: not a readable column map: {error}") from None
        if not isinstance(content, dict):
            raise ConfigError(f"{path}: found {type(content).__name__}, expected keys with column names")
        return cls(**_parse(Path(path), content))

    def groups(self, names: Sequence[str]) -> list[ColumnGroup]:
        """The groups that the map spells out of a table's columns.

        Raises:
            ValueError: a column does not exist, or the joint names do not fit.
        """
        found = []
        for (kind, name), columns in self.fields.items():
            wanted = tuple(n for n in names if fnmatchcase(n, columns)) if isinstance(columns, str) else columns
            missing = [column for column in wanted if column not in names]
            if missing or not wanted:
                raise ValueError(f"column map: no column {missing[0] if missing else columns!r}; {_list(names)}")
            joints = self.joint_names if kind in ("joint_state", "joint_command") else None
            if joints is not None and len(joints) != len(wanted):
                raise ValueError(f"column map: {kind}.{name} has {len(wanted)} columns for {len(joints)} joint_names")
            found.append(ColumnGroup(kind, name, f"{kind}.{name}", wanted, joints))
        return found


def _list(names: Sequence[str]) -> str:
    return "the table has " + ", ".join(names[:20]) + (", …" if len(names) > 20 else "")


def _parse(path: Path, content: Mapping[Any, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"fields": {}, "declared": {}}
    for key, value in content.items():
        if key == "time":
            out |= _time(path, value)
        elif key == "joint_names":
            out["joint_names"] = _names(path, key, value)
        elif key in _DECLARED:
            out["declared"][key] = str(value)
        elif key in _PLACES:
            out["fields"][_PLACES[key]] = value if isinstance(value, str) else _names(path, key, value)
        else:
            error = unknown_name("column map key", str(key), ["time", "joint_names", *_DECLARED, *_PLACES])
            raise ConfigError(f"{path}: {error}")
    return out


def _time(path: Path, value: Any) -> dict[str, str]:
    if isinstance(value, str):
        return {"time": value}
    if not isinstance(value, dict) or "column" not in value or not set(value) <= {"column", "unit"}:
        raise ConfigError(f"{path}: time: found {value!r}, expected a column name or {{column: …, unit: s|ms|us|ns}}")
    if "unit" in value and seconds_per(str(value["unit"])) is None:
        raise ConfigError(f"{path}: time.unit: found {value['unit']!r}, expected s, ms, us or ns")
    return {"time": str(value["column"])} | ({"time_unit": str(value["unit"])} if "unit" in value else {})


def _names(path: Path, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{path}: {key}: found {value!r}, expected a list of names or one pattern with *")
    return tuple(value)
