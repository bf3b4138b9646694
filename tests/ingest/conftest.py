"""Runs of a twin that stands and moves, simulated once a session."""

from __future__ import annotations

from pathlib import Path

import pytest

import tasks.ingest
from asap_core.robots import get_profile
from asap_core.rollouts.ingest.standing_twin import Stand, fell, stand
from asap_core.rollouts.ingest.twin_log import TwinRecord, first_seconds, write_twin_log, write_twin_npz

CLIP = 0.6
"""rad about the default pose: arms reach it."""


@pytest.fixture(scope="session")
def twin() -> TwinRecord:
    """20 s, nominal physics, targets clipped."""
    record = stand(get_profile("g1_23dof"), 20.0, movement=Stand(clip=CLIP, arms=0.7))
    assert not fell(record)
    return record


@pytest.fixture(scope="session")
def long_twin() -> TwinRecord:
    """80 s, so that a drift can be seen."""
    record = stand(get_profile("g1_23dof"), 80.0, movement=Stand(clip=CLIP, arms=0.7))
    assert not fell(record)
    return record


@pytest.fixture(scope="session")
def short_twin(twin: TwinRecord) -> TwinRecord:
    """The first 6 s of `twin`, where its truth does not matter."""
    return first_seconds(twin, 6.0)


@pytest.fixture(scope="session")
def twin_mcap(twin: TwinRecord, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`twin` at 500 Hz with mocap whose clock is 0.4 s ahead."""
    path = tmp_path_factory.mktemp("twin") / "run.mcap"
    write_twin_log(path, twin, seed=0)
    return path


@pytest.fixture(scope="session")
def twin_npz(twin: TwinRecord, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`twin` at 50 Hz in the layout of ASAP's listener."""
    path = tmp_path_factory.mktemp("twin") / "motion_0.npz"
    write_twin_npz(path, twin, seed=0)
    return path


@pytest.fixture
def plain_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plots: what `tasks.ingest` writes as a log's page is one word."""
    monkeypatch.setattr(tasks.ingest, "write_log_page", lambda path, ingested: path.write_text("page"))
