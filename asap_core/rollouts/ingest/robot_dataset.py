"""The data set of real runs: rollouts by split, the 500 Hz streams and a report beside, appended log by log.

```
kind=robot/split=fit/<log>.parquet   control steps, the record that alignment reads
kind=robot/streams/<log>.parquet     what it was made from, on one clock
kind=robot/reports/<log>.json        evidence, findings, gaps      (.png: the page of plots)
kind=robot/manifest.json             one line a log
```
`<log>` is the beginning of the source's digest, so a log can be in the set once only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import StageError
from asap_core.files import atomic_file, read_object, write_json
from asap_core.rollouts.dataset import split_folder
from asap_core.rollouts.record import Rollout
from asap_core.rollouts.settings import SPLITS, Split

MANIFEST = "manifest.json"
_FORMAT = "asap.robot_dataset"
_LISTED = (
    *("path", "kind", "sha256", "split", "format", "robot", "motion", "policy"),
    *("base_velocity", "usable_s", "recorded_s", "episodes"),
)
"""What the manifest says of a log."""
_STEM = 16
Outcome = Literal["added", "replaced", "already there"]


@dataclass(frozen=True)
class Entry:
    """What is written for one log."""

    source_sha256: str
    key: str
    """Digest of the source and of all that decided how it was read."""
    rollout: Rollout | None
    """None where the log holds no control steps that a rollout can be made of."""
    streams: Mapping[str, NDArray[Any]]
    """Column → (N,)."""
    report: Mapping[str, Any]

    @property
    def stem(self) -> str:
        """Name of its files."""
        return self.source_sha256[:_STEM]


def append(folder: Path | str, split: Split, entry: Entry, replace: bool = False) -> Outcome:
    """Add a log to the data set; the rollout, which makes it count, is put in place last.

    Raises:
        StageError: the same log is there, read with other settings or in another split, and `replace` is not given; or
            what is there is a simulator's and this is a robot's, or its base velocities are estimated and this one's
            measured, or the other way round.
    """
    folder = Path(folder)
    _check_kind(folder, entry)
    report_path = folder / "reports" / f"{entry.stem}.json"
    before = read_object(report_path) if report_path.exists() else None
    if before is not None:
        if (before.get("key"), before.get("split")) == (entry.key, split) and _is_whole(folder, split, entry):
            return "already there"
        if before.get("key") is not None and not replace and (before["key"], before.get("split")) != (entry.key, split):
            raise StageError(
                f"{folder}: the log {before.get('path')} is already there, in split {before.get('split')} and read "
                "with other settings or there; give --replace to put this reading in its place"
            )
    _write_columns(folder / "streams" / f"{entry.stem}.parquet", entry.streams)
    write_json(report_path, {**entry.report, "key": entry.key, "split": split})
    for other in SPLITS:
        if other != split or entry.rollout is None:
            (split_folder(folder, other) / f"{entry.stem}.parquet").unlink(missing_ok=True)
    if entry.rollout is not None:
        entry.rollout.save(split_folder(folder, split) / f"{entry.stem}.parquet")
    write_manifest(folder)
    return "added" if before is None else "replaced"


def write_manifest(folder: Path | str) -> None:
    """Rebuild the list of logs from their reports."""
    folder = Path(folder)
    logs = []
    for path in sorted((folder / "reports").glob("*.json")):
        report = read_object(path)
        logs.append({"log": path.stem, **{name: report.get(name) for name in _LISTED}})
    write_json(folder / MANIFEST, {"format": _FORMAT, "version": 1, "logs": logs})


def _check_kind(folder: Path, entry: Entry) -> None:
    """Robots and simulators are never in one data set, nor base velocities measured and estimated."""
    path = folder / MANIFEST
    if not path.exists():
        return
    manifest = read_object(path)
    if manifest.get("format") != _FORMAT:
        raise StageError(f"{folder}: its {MANIFEST} is not of asap ingest; give another -o")
    listed = manifest.get("logs")
    logs = [log for log in listed if isinstance(log, dict)] if isinstance(listed, list) else []
    others = [log for log in logs if log.get("log") != entry.stem]
    never = "they are never mixed, give another -o"
    if {log.get("kind") for log in others} - {entry.report["kind"]}:
        found = "a simulator's" if entry.report["kind"] == "robot" else "robots'"
        raise StageError(f"{folder}: holds {found} runs and this log is a {entry.report['kind']}'s; {never}")
    base = entry.report.get("base_velocity")
    found_bases = {log["base_velocity"] for log in others if log.get("base_velocity") is not None}
    if base is not None and any((found == "estimated") != (base == "estimated") for found in found_bases):
        bases = ", ".join(sorted(found_bases))
        raise StageError(f"{folder}: its base velocities are {bases} and this log's would be {base}; {never}")


def _is_listed(folder: Path, entry: Entry, split: Split) -> bool:
    path = folder / MANIFEST
    logs = read_object(path).get("logs") if path.exists() else None
    listed = logs if isinstance(logs, list) else []
    return any(isinstance(log, dict) and (log.get("log"), log.get("split")) == (entry.stem, split) for log in listed)


def _is_whole(folder: Path, split: Split, entry: Entry) -> bool:
    rollout = split_folder(folder, split) / f"{entry.stem}.parquet"
    streams = folder / "streams" / f"{entry.stem}.parquet"
    listed = _is_listed(folder, entry, split)
    return listed and streams.exists() and (rollout.exists() or entry.rollout is None)


def _write_columns(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Single-precision columns, split by byte and compressed: half of what plain columns take; times stay double."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kept = {
        name: values if values.dtype.kind != "f" or name == "time" else values.astype(np.float32)
        for name, values in columns.items()
    }
    floats = [name for name, values in kept.items() if values.dtype.kind == "f"]
    with atomic_file(path) as partial:
        pq.write_table(
            pa.table(kept),
            partial,
            compression="zstd",
            use_dictionary=[name for name in kept if name not in floats],
            use_byte_stream_split=floats,
        )
