"""Are faults named, and sound logs left alone? What tests and `asap bench ingest` ask of ingest as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.ingest.faults import FAULTS, inject, possible
from asap_core.rollouts.ingest.findings import Finding
from asap_core.rollouts.ingest.ingest import ingest
from asap_core.rollouts.ingest.readers import read_log
from asap_core.rollouts.ingest.streams import Log
from asap_core.rollouts.ingest.twin_log import SensorSettings, TwinRecord, write_twin_log, write_twin_npz

ONE_CLOCK = SensorSettings(mocap_offset_s=0.0)
"""Mocap stamped by the robot's own computer, so that lateness and drift are faults and no other clock."""
FAULT_CODES = frozenset(code for fault in FAULTS.values() for code in fault.codes)


@dataclass(frozen=True)
class FaultCheck:
    """What ingest said of one log, sound and spoilt."""

    alarms: tuple[Finding, ...]
    """Warnings and errors on the sound log; there should be none."""
    named: dict[str, bool]
    """Fault → a finding with one of its codes appeared that the sound log does not have."""


def twin_logs(record: TwinRecord, folder: Path, seed: int) -> dict[str, Log]:
    """The record as a MCAP at 500 Hz and as an npz at 50 Hz, with noise of this seed, read back."""
    write_twin_log(folder / "twin.mcap", record, seed, ONE_CLOCK)
    write_twin_npz(folder / "twin.npz", record, seed)
    return {name: read_log(folder / f"twin.{name}") for name in ("mcap", "npz")}


def check_faults(log: Log, profile: RobotProfile, seed: int, faults: Iterable[str] | None = None) -> FaultCheck:
    """Ingest a sound log as it is and with each fault.

    Args:
        log: without faults.
        profile: its robot.
        seed: of the faults' random numbers.
        faults: which ones; all that this log can have if left out.
    """
    sound = ingest(log, profile, None).findings
    before = {finding.code for finding in sound} & FAULT_CODES
    named = {}
    for name in possible(log) if faults is None else faults:
        found = {finding.code for finding in ingest(inject(log, name, seed), profile, None).findings}
        named[name] = bool((found - before) & set(FAULTS[name].codes))
    return FaultCheck(tuple(f for f in sound if f.severity != "note"), named)
