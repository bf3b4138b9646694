from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from asap_core.motions.formats.amass import read_amass
from asap_core.motions.human import HumanMotion
from asap_core.motions.samples import SAMPLES, write_samples
from asap_core.motions.skeleton import INDEX, sole_points


def _soles(motion: HumanMotion) -> np.ndarray:
    rotations = motion.global_rotations()
    joints = motion.joint_positions(rotations)
    return np.stack([joints[:, j] + rotations[:, j] @ o for j, o in sole_points(motion.skeleton)], axis=1)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    write_samples(folder)
    return folder


@pytest.mark.parametrize("name", list(SAMPLES))
def test_committed_clip_is_what_the_script_writes(name: str, written: Path, repo_root: Path) -> None:
    fresh, committed = read_amass(written / f"{name}.npz"), read_amass(repo_root / f"data/human/{name}.npz")
    np.testing.assert_allclose(committed.joint_rotations, fresh.joint_rotations, atol=1e-6)
    np.testing.assert_allclose(committed.root_translation, fresh.root_translation, atol=1e-6)


@pytest.mark.parametrize("name", list(SAMPLES))
def test_soles_never_go_under_the_ground_and_one_always_stands(name: str, written: Path) -> None:
    height = _soles(read_amass(written / f"{name}.npz"))[..., 2]
    assert height.min() > -1e-6
    assert height.min(axis=1).max() < 1e-6


def test_squat_goes_down_with_planted_feet(written: Path) -> None:
    motion = read_amass(written / "squat.npz")
    assert np.ptp(motion.root_translation[:, 2]) == pytest.approx(0.12, abs=1e-3)
    assert motion.joint_rotations[:, INDEX["L_Knee"], 0].max() > 1.0
    assert np.ptp(_soles(motion), axis=0).max() < 1e-6


def test_side_step_moves_both_feet_by_its_width_one_after_the_other(written: Path) -> None:
    motion = read_amass(written / "side_step.npz")
    joints = motion.joint_positions()
    for side in ("L", "R"):
        ankle = joints[:, INDEX[f"{side}_Ankle"]]
        np.testing.assert_allclose(ankle[-1] - ankle[0], [0.0, 0.16, 0.0], atol=1e-6)
    heights = joints[:, [INDEX["L_Ankle"], INDEX["R_Ankle"]], 2]
    assert ((heights - heights.min()) > 1e-4).sum(axis=1).max() == 1


def test_kick_lifts_the_right_foot_only(written: Path) -> None:
    joints = read_amass(written / "kick.npz").joint_positions()
    assert np.ptp(joints[:, INDEX["L_Ankle"]], axis=0).max() < 1e-6
    assert np.ptp(joints[:, INDEX["R_Ankle"]], axis=0)[0] > 0.3
