"""Damaged files of every layout through `asap ingest` into a data set: kept in part, or left out and said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from log_fixtures import file_log_fixtures
from ros_messages import robot_run, write_bag, write_mcap, write_mcap_json, write_mcap_ros1, write_ros1_bag

import tasks.ingest
from asap_core.reporting.log_page import write_log_page
from asap_core.robots import get_profile
from asap_core.rollouts.ingest.readers import c3d
from asap_core.rollouts.ingest.twin_log import TwinRecord, first_seconds, write_twin_log, write_twin_npz
from asap_core.rollouts.record import Rollout
from tasks.ingest import ActionSource, LogResult, Request, ingest_logs

PROFILE = get_profile("g1_23dof")
KINDS = ("cut", "flip", "empty", "foreign", "renamed")
MUTATIONS = 1000
PAGE_EVERY = 20
"""Drawing pages is what takes longest."""
FOREIGN = (b"\x7fELF\x02\x01\x01", b"%PDF-1.4\n", b"{}", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"SQLite format 3\x00")


@pytest.fixture(scope="module")
def layouts(twin: TwinRecord, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One log of each layout; those of the twin hold enough for a rollout."""
    folder = tmp_path_factory.mktemp("layouts")
    found = file_log_fixtures(folder / "files")
    record = first_seconds(twin, 4.0)
    write_twin_log(folder / "twin.mcap", record, 0)
    write_twin_npz(folder / "motion_0.npz", record, 0)
    run = robot_run(0.2)
    write_mcap(folder / "ros2.mcap", run)
    write_mcap_json(folder / "json.mcap", run)
    write_mcap_ros1(folder / "ros1.mcap", run)
    write_ros1_bag(folder / "ros1.bag", run)
    for path in folder.glob("*.*"):
        found[path.name] = path
    write_bag(folder / "bag", run)
    return found | {"bag": folder / "bag"}


def mutated(source: Path, folder: Path, rng: np.random.Generator) -> Path:
    """A copy of a log, one of its files spoilt."""
    kind = KINDS[int(rng.integers(len(KINDS)))]
    suffixes = (".mcap", ".npz", ".csv", ".bag", ".db3", ".pkl", ".h5", ".c3d", ".json", ".pt")
    suffix = str(rng.choice(suffixes)) if kind == "renamed" and source.is_file() else source.suffix
    copy = folder / f"{source.stem}{suffix}"
    if source.is_dir():
        shutil.copytree(source, copy)
        files = sorted(file for file in copy.rglob("*") if file.is_file())
        target = files[int(rng.integers(len(files)))]
    else:
        shutil.copy(source, copy)
        target = copy
    data = target.read_bytes()
    if kind == "cut":
        target.write_bytes(data[: int(rng.integers(len(data)))])
    elif kind == "flip":
        spoilt = bytearray(data)
        for place in rng.integers(len(data), size=int(rng.integers(1, 20))):
            spoilt[place] ^= 1 << int(rng.integers(8))
        target.write_bytes(bytes(spoilt))
    elif kind == "empty":
        target.write_bytes(b"")
    elif kind == "foreign":
        target.write_bytes(FOREIGN[int(rng.integers(len(FOREIGN)))] + rng.bytes(int(rng.integers(0, 400))))
    return copy


def _fuzz(layouts: dict[str, Path], folder: Path, numbers: range, monkeypatch: pytest.MonkeyPatch) -> list[LogResult]:
    results = []
    names = sorted(layouts)
    monkeypatch.setattr(c3d, "_PATIENCE_S", 5.0)
    for number in numbers:
        page = write_log_page if number % PAGE_EVERY == 0 else lambda path, _: path.write_text("page")
        monkeypatch.setattr(tasks.ingest, "write_log_page", page)
        place = folder / "logs" / str(number)
        place.mkdir(parents=True)
        path = mutated(layouts[names[number % len(names)]], place, np.random.default_rng(number))
        request = Request((path,), folder / "set", "fit", PROFILE, ActionSource(default="profile", scale=0.25))
        results += ingest_logs(request)
        shutil.rmtree(place)
    return results


def _check(results: list[LogResult], folder: Path) -> None:
    for result in results:
        assert result.outcome in ("added", "already there", "left out"), result
        if result.outcome == "left out":
            assert result.problem, result
    written = list((folder / "set").rglob("*")) if (folder / "set").exists() else []
    for path in written:
        if path.suffix == ".parquet":
            pq.read_table(path)
            if path.parent.name.startswith("split="):
                Rollout.load(path, PROFILE)
        elif path.suffix == ".json":
            json.loads(path.read_text())
        else:
            assert path.is_dir() or path.suffix == ".png", path


def test_damaged_logs_are_kept_in_part_or_left_out(
    layouts: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = _fuzz(layouts, tmp_path, range(len(layouts)), monkeypatch)
    _check(results, tmp_path)


def test_the_readable_part_of_a_cut_log_is_kept_and_said(twin: TwinRecord, tmp_path: Path) -> None:
    write_twin_log(tmp_path / "run.mcap", twin, 0)
    data = (tmp_path / "run.mcap").read_bytes()
    (tmp_path / "run.mcap").write_bytes(data[: int(0.6 * len(data))])
    request = Request(
        (tmp_path / "run.mcap",), tmp_path / "set", "fit", PROFILE, ActionSource(None, None, "profile", 0.25)
    )
    result = ingest_logs(request)[0]
    assert result.outcome == "added"
    assert result.ingested is not None
    assert result.ingested.quality is not None
    assert 9.0 < result.ingested.quality.usable_s < 13.0
    assert any("file cut" in finding.text for finding in result.ingested.findings)


@pytest.mark.slow
def test_a_thousand_damaged_logs(layouts: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = _fuzz(layouts, tmp_path, range(MUTATIONS), monkeypatch)
    assert len(results) >= MUTATIONS
    _check(results, tmp_path)
    outcomes = {result.outcome for result in results}
    assert {"added", "left out"} <= outcomes
