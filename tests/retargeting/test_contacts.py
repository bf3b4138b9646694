from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from asap_core.motions.formats.amass import read_amass
from asap_core.motions.skeleton import INDEX
from asap_core.retargeting.contacts import detect_contacts, ground_shift


@pytest.fixture(scope="module")
def kick(repo_root: Path) -> np.ndarray:
    return read_amass(repo_root / "data/human/kick.npz").joint_positions()


def test_the_kicking_foot_leaves_and_the_other_stands(kick: np.ndarray) -> None:
    contacts = detect_contacts(kick, 30.0, 0.3, 0.05)
    in_air = kick[:, INDEX["R_Ankle"], 2] > kick[0, INDEX["R_Ankle"], 2] + 0.06
    assert contacts[:, :2].all()
    assert not contacts[in_air, 2:].any()
    assert contacts[:30, 2:].all()
    assert contacts[-20:, 2:].all()


def test_contact_does_not_depend_on_where_the_floor_is(kick: np.ndarray) -> None:
    raised = kick + np.array([0.0, 0.0, 3.0])
    np.testing.assert_array_equal(detect_contacts(raised, 30.0, 0.3, 0.05), detect_contacts(kick, 30.0, 0.3, 0.05))


def test_ground_shift_brings_standing_ankles_to_the_robots_height(kick: np.ndarray) -> None:
    raised = kick + np.array([0.0, 0.0, 0.123])
    shift = ground_shift(raised, detect_contacts(raised, 30.0, 0.3, 0.05), 0.035)
    assert raised[0, INDEX["L_Ankle"], 2] + shift == pytest.approx(0.035, abs=1e-3)
