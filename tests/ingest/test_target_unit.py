"""Joint targets may lie beyond any joint's limit; the positions that follow them tell their unit."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.rollouts.ingest.understanding.units import target_unit


@pytest.mark.parametrize("stretch", [0.6, 1.0, 4.0])
def test_unit_by_the_positions(stretch: float) -> None:
    joint_pos = 0.6 * np.sin(np.linspace(0, 20, 500))[:, None] * np.linspace(0.2, 1.5, 23)
    target = stretch * joint_pos
    assert target_unit("unit", "--angle-unit", target, joint_pos).answer == "rad"
    assert target_unit("unit", "--angle-unit", np.degrees(target), joint_pos).answer == "deg"


def test_between_the_two_it_stays_open() -> None:
    joint_pos = np.sin(np.linspace(0, 20, 500))[:, None] * np.ones(23)
    assert target_unit("unit", "--angle-unit", 7.6 * joint_pos, joint_pos).answer is None
