"""Every fault that a recorder or robot makes is named; sound logs are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from asap_core.robots import get_profile
from asap_core.rollouts.ingest.fault_check import check_faults, twin_logs
from asap_core.rollouts.ingest.faults import DRIFT, FAULTS, LATENCY_S, inject, possible
from asap_core.rollouts.ingest.ingest import ingest
from asap_core.rollouts.ingest.standing_twin import Stand, stand
from asap_core.rollouts.ingest.streams import Log
from asap_core.rollouts.ingest.twin_log import TwinRecord

PROFILE = get_profile("g1_23dof")
NAMES = sorted(set(FAULTS) - {"drift", "latency"})
OF_PACKETS = ("drops", "duplicates", "reorder")
"""Faults that sequence numbers show, which only the 500 Hz log has."""
CASES = [("npz", name) for name in NAMES] + [
    pytest.param("mcap", name, marks=() if name in OF_PACKETS else pytest.mark.slow) for name in NAMES
]


@pytest.fixture(scope="module")
def logs(twin: TwinRecord, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Log]:
    return twin_logs(twin, tmp_path_factory.mktemp("logs"), seed=0)


def test_each_layout_can_have_what_it_can(logs: dict[str, Log]) -> None:
    assert set(possible(logs["mcap"])) == set(FAULTS) - {"drift"}
    assert set(possible(logs["npz"])) == set(FAULTS) - {"drift", "latency"}


@pytest.mark.parametrize(("layout", "fault"), CASES)
def test_a_fault_is_named(logs: dict[str, Log], layout: str, fault: str) -> None:
    found = {finding.code for finding in ingest(inject(logs[layout], fault, 0), PROFILE, None).findings}
    assert found & set(FAULTS[fault].codes), found


@pytest.mark.parametrize("layout", ["mcap", "npz"])
def test_a_sound_log_has_no_code_of_a_fault(logs: dict[str, Log], layout: str) -> None:
    assert check_faults(logs[layout], PROFILE, 0, ()).alarms == ()


def test_lateness_is_named_with_its_size(logs: dict[str, Log]) -> None:
    sound, late = ingest(logs["mcap"], PROFILE, None), ingest(inject(logs["mcap"], "latency", 0), PROFILE, None)
    assert "clock_offset" not in {finding.code for finding in sound.findings}
    assert "clock_offset" in {finding.code for finding in late.findings}
    assert late.sync is not None
    assert late.sync.clock.offset_s == pytest.approx(LATENCY_S, abs=5e-4)


@pytest.mark.slow
def test_drift_is_named_with_its_size(long_twin: TwinRecord, tmp_path: Path) -> None:
    log = twin_logs(long_twin, tmp_path, seed=0)["mcap"]
    sound, drifting = ingest(log, PROFILE, None), ingest(inject(log, "drift", 0), PROFILE, None)
    assert [finding for finding in sound.findings if finding.severity != "note"] == []
    assert "clock_drift" not in {finding.code for finding in sound.findings}
    assert "clock_drift" in {finding.code for finding in drifting.findings}
    assert drifting.sync is not None
    assert drifting.sync.clock.drift == pytest.approx(DRIFT, abs=3 * drifting.sync.drift_sigma)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_no_alarm_and_no_fault_missed_on_other_runs(seed: int, tmp_path: Path) -> None:
    record = stand(PROFILE, 20.0, movement=Stand(seed=seed))
    for log in twin_logs(record, tmp_path, seed).values():
        check = check_faults(log, PROFILE, seed)
        assert check.alarms == ()
        assert [name for name, named in check.named.items() if not named] == []
