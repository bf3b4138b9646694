"""`asap bench doctor` without shared data: the made clips alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from asap_core.motions.doctor.bench import bench


@pytest.mark.slow
def test_made_clips_raise_no_alarm_and_every_fault_is_named(tmp_path: Path) -> None:
    figures = bench(tmp_path)
    assert figures["made_clips"] == 22
    assert figures["made_clips_false_alarms"] == 0
    assert figures["faults"] == figures["faults_named"] >= 30
    assert figures["published_robot_clips"] == 0
