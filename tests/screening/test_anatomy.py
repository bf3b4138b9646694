from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap_core.motions.formats.amass import read_amass
from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import INDEX
from asap_core.screening.anatomy import backward_bend, elbow_flexion, knee_flexion
from asap_core.screening.faults import asymmetry, standing_level, swaps


@pytest.fixture
def still(repo_root: Path) -> HumanMotion:
    """In the T-pose."""
    motion = read_amass(repo_root / "data/human/squat.npz")
    return replace(motion, joint_rotations=np.zeros_like(motion.joint_rotations))


def _bent(motion: HumanMotion, joint: str, rotation: list[float]) -> HumanMotion:
    rotations = motion.joint_rotations.copy()
    rotations[:, INDEX[joint]] = rotation
    return replace(motion, joint_rotations=rotations)


@pytest.mark.parametrize(("joint", "column", "sign"), [("L_Elbow", 0, -1.0), ("R_Elbow", 1, 1.0)])
def test_elbow_flexion_is_positive_where_the_hand_comes_to_the_front(
    joint: str, column: int, sign: float, still: HumanMotion
) -> None:
    bent = _bent(still, joint, [0.0, sign * 0.7, 0.0])
    hand = bent.joint_positions()[0, INDEX[joint[0] + "_Hand"]] - still.joint_positions()[0, INDEX[joint[0] + "_Hand"]]
    assert hand[2] > 0.1  # z is in front in the rest frame
    np.testing.assert_allclose(elbow_flexion(bent)[:, column], 0.7)
    np.testing.assert_allclose(elbow_flexion(bent)[:, 1 - column], 0.0, atol=1e-12)


def test_twist_of_the_forearm_does_not_count_as_bending(still: HumanMotion) -> None:
    np.testing.assert_allclose(elbow_flexion(_bent(still, "L_Elbow", [1.2, 0.0, 0.0])), 0.0, atol=1e-12)


def test_knee_flexion_is_positive_where_the_foot_goes_back(still: HumanMotion) -> None:
    bent = _bent(still, "R_Knee", [0.9, 0.0, 0.0])
    foot = bent.joint_positions()[0, INDEX["R_Ankle"]] - still.joint_positions()[0, INDEX["R_Ankle"]]
    assert foot[2] < -0.1
    np.testing.assert_allclose(knee_flexion(bent)[:, 1], 0.9)


def test_backward_bend_is_the_worst_of_the_four(still: HumanMotion) -> None:
    bent = _bent(_bent(still, "R_Knee", [-0.2, 0.0, 0.0]), "L_Elbow", [0.0, 0.5, 0.0])
    np.testing.assert_allclose(backward_bend(bent), 0.5)


def test_columns_mixed_up_bend_elbows_backward(still: HumanMotion) -> None:
    bent = _bent(_bent(still, "L_Elbow", [0.0, -0.8, 0.0]), "R_Elbow", [0.0, 0.6, 0.0])
    assert backward_bend(bent).max() <= 0.0
    np.testing.assert_allclose(backward_bend(swaps(bent)), 0.8)
    np.testing.assert_array_equal(swaps(swaps(bent)).joint_rotations, bent.joint_rotations)


def test_asymmetry_is_what_the_mix_up_changes(still: HumanMotion) -> None:
    assert asymmetry(still) == 0.0
    flexed = _bent(_bent(still, "L_Knee", [0.5, 0.0, 0.0]), "R_Knee", [0.5, 0.0, 0.0])
    assert asymmetry(flexed) == pytest.approx(0.0, abs=1e-12)
    assert asymmetry(_bent(still, "L_Knee", [0.5, 0.0, 0.0])) > 0.02


def test_lean_keeps_the_standing_level(repo_root: Path) -> None:
    from asap_core.screening.faults import leans

    motion = read_amass(repo_root / "data/human/kick.npz")
    assert standing_level(leans(motion)) == pytest.approx(standing_level(motion), abs=1e-9)
