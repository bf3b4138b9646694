"""The `Rollout` record: what a robot or a target simulator did, one row per control step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import InputFileError
from asap_core.files import atomic_file
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import RobotState

FORMAT = "asap.rollout"
FORMAT_VERSION = 1
_KEY = b"asap"
_AXES = {"root_pos": "xyz", "root_quat": "wxyz", "root_lin_vel": "xyz", "root_ang_vel": "xyz"}
_JOINT_FIELDS = ("joint_pos", "joint_vel", "action", "joint_target", "joint_torque")
_LABELS = ("motion", "policy", "policy_sha256")
_MASK = "mask."
_MAX_SPEED = 200.0


@dataclass(frozen=True)
class Rollout:
    """Episodes one after another, T rows in all.

    Row k holds the state s_k, the action a_k applied from it and the nominal target; row k + 1 is s_{k+1}, as long
    as `valid[k]`. The last row of an episode has no action: its action, target and torque are NaN.
    """

    robot: str
    joint_names: tuple[str, ...]
    control_dt: float
    """s between rows."""
    source: dict[str, Any]
    """Where it comes from; `kind` says what it is: `twin` is a simulator, not a robot."""
    state: RobotState
    """T rows; root (world frame, quaternion wxyz) and joints."""
    action: NDArray[np.floating]
    """(T, J) raw policy output, unscaled."""
    joint_target: NDArray[np.floating]
    """(T, J) rad, nominal: before any correction or delay."""
    joint_torque: NDArray[np.floating]
    """(T, J) Nm at the end of the control step that starts in this row."""
    valid: NDArray[np.bool_]
    """(T,) the transition to the next row may be used."""
    episode: NDArray[np.int64]
    """(T,) equal within an episode."""
    frame: NDArray[np.int64]
    """(T,) frame of the reference motion that this row's state is compared with."""
    start_phase: NDArray[np.floating]
    """(T,) share of the motion at which the episode started."""
    motion: NDArray[np.str_]
    """(T,)."""
    policy: NDArray[np.str_]
    """(T,) name of the policy file."""
    policy_sha256: NDArray[np.str_]
    """(T,) its digest."""
    masks: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    """Name → (T,): what speaks against a row of a real log, such as `torque_saturated`; `valid` already heeds it."""

    @property
    def num_rows(self) -> int:
        """T."""
        return len(self.valid)

    @property
    def fps(self) -> float:
        """Rows per second."""
        return 1.0 / self.control_dt

    def transitions(self) -> NDArray[np.int64]:
        """Rows k whose transition to row k + 1 may be used."""
        same = np.append(self.episode[1:] == self.episode[:-1], False)
        return np.flatnonzero(self.valid & same)

    def segment_starts(self, steps: int, stride: int | None = None) -> NDArray[np.int64]:
        """First rows of segments of `steps` usable transitions within one episode, `stride` (default `steps`) apart."""
        usable = np.zeros(self.num_rows, dtype=bool)
        usable[self.transitions()] = True
        starts = [
            row
            for number in np.unique(self.episode)
            for row in np.flatnonzero(self.episode == number)[:: stride or steps]
            if usable[row : row + steps].sum() == steps
        ]
        return np.array(starts, dtype=np.int64)

    def save(self, path: Path | str) -> None:
        """Write Parquet, one named column per number, header as JSON in the schema metadata. Atomic."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        header = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "robot": self.robot,
            "joint_names": list(self.joint_names),
            "control_dt": self.control_dt,
            "fps": self.fps,
            "source": self.source,
        }
        table = pa.table(self._columns()).replace_schema_metadata({_KEY: json.dumps(header, sort_keys=True)})
        with atomic_file(path) as partial:
            pq.write_table(table, partial)

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {name: getattr(self, name) for name in ("episode", "frame", "start_phase", "valid")}
        columns |= {name: [str(v) for v in getattr(self, name)] for name in _LABELS}
        columns |= {f"{_MASK}{name}": values for name, values in self.masks.items()}
        for name, axes in _AXES.items():
            values = getattr(self.state, name)
            columns |= {f"{name}.{axis}": values[:, i] for i, axis in enumerate(axes)}
        for name in _JOINT_FIELDS:
            values = getattr(self.state if name in ("joint_pos", "joint_vel") else self, name)
            columns |= {f"{name}.{joint}": values[:, i] for i, joint in enumerate(self.joint_names)}
        return columns

    @classmethod
    def load(cls, path: Path | str, profile: RobotProfile | None = None) -> Rollout:
        """Read and check a rollout.

        Args:
            path: Parquet file.
            profile: when given, the file must be of this robot, joints in this order.

        Raises:
            InputFileError: missing, truncated, of another format or robot, a column missing or an impossible value.
        """
        path = Path(path)
        header, columns = _read(path)
        if not isinstance(header["joint_names"], list):
            raise InputFileError(path, f"field joint_names: found {header['joint_names']!r}, expected a list")
        joints = tuple(str(j) for j in header["joint_names"])
        if profile is not None and (header["robot"], joints) != (profile.name, tuple(profile.joint_names)):
            raise InputFileError(
                path,
                f"field robot/joint_names: found {header['robot']!r} with {len(joints)} joints, expected "
                f"{profile.name!r} with {len(profile.joint_names)} joints in profile order",
            )
        try:
            rollout = _assemble(path, header, columns, joints)
        except (ValueError, TypeError) as error:
            raise InputFileError(path, f"a column or the header's control_dt is of a wrong type: {error}") from None
        _check(path, rollout)
        return rollout


def concatenate(rollouts: list[Rollout]) -> Rollout:
    """One record of all rows; episodes are renumbered so that they stay apart.

    Raises:
        ValueError: nothing to join, or records of different robots or rates.
    """
    if not rollouts:
        raise ValueError("no rollouts to join")
    first = rollouts[0]
    offset, episodes = 0, []
    for item in rollouts:
        if (item.robot, item.joint_names, item.control_dt) != (first.robot, first.joint_names, first.control_dt):
            raise ValueError(f"rollouts of different robots or rates: {first.robot} and {item.robot}")
        episodes.append(np.unique(item.episode, return_inverse=True)[1] + offset)
        offset = int(episodes[-1].max()) + 1
    state = RobotState(
        **{n: np.concatenate([getattr(r.state, n) for r in rollouts]) for n in RobotState.__dataclass_fields__}
    )
    names = ("action", "joint_target", "joint_torque", "valid", "frame", "start_phase", *_LABELS)
    joined = {name: np.concatenate([getattr(r, name) for r in rollouts]) for name in names}
    masks = {
        name: np.concatenate([r.masks.get(name, np.zeros(r.num_rows, bool)) for r in rollouts])
        for name in sorted({name for r in rollouts for name in r.masks})
    }
    return Rollout(
        robot=first.robot,
        joint_names=first.joint_names,
        control_dt=first.control_dt,
        source=first.source,
        state=state,
        episode=np.concatenate(episodes),
        masks=masks,
        **joined,
    )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path).read()
    except FileNotFoundError:
        raise InputFileError(path, "missing") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputFileError(path, f"not a readable Parquet file (half-written?): {error}") from None
    try:
        header = dict(json.loads((table.schema.metadata or {})[_KEY]))
    except (KeyError, ValueError, TypeError):
        raise InputFileError(path, f"field header: no JSON under {_KEY.decode()!r} in the schema metadata") from None
    found = (header.get("format"), header.get("version"))
    if found != (FORMAT, FORMAT_VERSION):
        raise InputFileError(path, f"field format/version: found {found}, expected {(FORMAT, FORMAT_VERSION)}")
    for name in ("robot", "joint_names", "control_dt", "source"):
        if name not in header:
            raise InputFileError(path, f"field {name}: missing from the header")
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    return header, columns


def _assemble(path: Path, header: dict[str, Any], columns: dict[str, NDArray[Any]], joints: tuple[str, ...]) -> Rollout:
    def column(name: str) -> NDArray[Any]:
        if name not in columns:
            raise InputFileError(path, f"field {name}: column missing")
        return columns[name]

    def stack(name: str, parts: tuple[str, ...]) -> NDArray[np.floating]:
        return np.stack([column(f"{name}.{part}").astype(np.float64) for part in parts], axis=1)

    joint = {name: stack(name, joints) for name in _JOINT_FIELDS}
    root = {name: stack(name, tuple(axes)) for name, axes in _AXES.items()}
    return Rollout(
        robot=header["robot"],
        joint_names=joints,
        control_dt=float(header["control_dt"]),
        source=header["source"],
        state=RobotState(**root, joint_pos=joint["joint_pos"], joint_vel=joint["joint_vel"]),
        action=joint["action"],
        joint_target=joint["joint_target"],
        joint_torque=joint["joint_torque"],
        valid=column("valid").astype(bool),
        episode=column("episode").astype(np.int64),
        frame=column("frame").astype(np.int64),
        start_phase=column("start_phase").astype(np.float64),
        masks={name[len(_MASK) :]: column(name).astype(bool) for name in columns if name.startswith(_MASK)},
        **{name: column(name).astype(str) for name in _LABELS},
    )


def _check(path: Path, rollout: Rollout) -> None:
    if not rollout.num_rows:
        raise InputFileError(path, "no rows")
    if not rollout.control_dt > 0:
        raise InputFileError(path, f"field control_dt: found {rollout.control_dt}, expected a positive number of s")
    for name in RobotState.__dataclass_fields__:
        _check_finite(path, name, getattr(rollout.state, name), np.ones(rollout.num_rows, bool))
    for name in ("action", "joint_target", "joint_torque"):
        _check_finite(path, name, getattr(rollout, name), rollout.valid)
    norm = np.linalg.norm(rollout.state.root_quat, axis=1)
    if np.abs(norm - 1).max() > 1e-3:
        row = int(np.abs(norm - 1).argmax())
        raise InputFileError(path, f"field root_quat: norm {norm[row]:.4f} in row {row}, expected 1 (wxyz)")
    speed = np.abs(rollout.state.joint_vel).max()
    if speed > _MAX_SPEED:
        raise InputFileError(path, f"field joint_vel: {speed:.0f} rad/s, expected below {_MAX_SPEED:.0f}; degrees?")


def _check_finite(path: Path, name: str, values: NDArray[np.floating], rows: NDArray[np.bool_]) -> None:
    bad = rows & ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise InputFileError(path, f"field {name}: not finite in row {int(np.argmax(bad))}")
