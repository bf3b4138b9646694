from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap_core.motions.formats.amass import read_amass
from asap_core.motions.human import HumanMotion
from asap_core.rotations import quat_mul, quat_to_rotvec, rotate, rotvec_to_quat
from asap_core.screening.screen import screen
from asap_core.screening.settings import ScreenSettings

SETTINGS = ScreenSettings()
NAMES = ("squat", "side_step", "kick")


def _floats(motion: HumanMotion) -> HumanMotion:
    return replace(motion, root_translation=motion.root_translation + np.array([0.0, 0.0, 0.5]))


def _sinks(motion: HumanMotion) -> HumanMotion:
    return replace(motion, root_translation=motion.root_translation - [0.0, 0.0, 0.4])


def _slides(motion: HumanMotion) -> HumanMotion:
    drift = np.arange(motion.num_frames)[:, None] / motion.fps * [1.0, 0.0, 0.0]
    return replace(motion, root_translation=motion.root_translation + drift)


def _teleports(motion: HumanMotion) -> HumanMotion:
    later = np.arange(motion.num_frames)[:, None] >= motion.num_frames // 2
    return replace(motion, root_translation=motion.root_translation + later * [0.7, 0.0, 0.0])


def _leans(motion: HumanMotion) -> HumanMotion:
    tilt = rotvec_to_quat(np.array([np.radians(25), 0.0, 0.0]))
    rotations = motion.joint_rotations.copy()
    rotations[:, 0] = quat_to_rotvec(quat_mul(tilt, rotvec_to_quat(rotations[:, 0])))
    start = motion.root_translation[0]
    return replace(
        motion, joint_rotations=rotations, root_translation=rotate(tilt, motion.root_translation - start) + start
    )


FAULTS: list[tuple[Callable[[HumanMotion], HumanMotion], str]] = [
    (_floats, "float"),
    (_sinks, "penetration"),
    (_slides, "slide"),
    (_teleports, "speed"),
    (_leans, "balance"),
]


@pytest.mark.parametrize("name", NAMES)
def test_own_motions_are_accepted(name: str, repo_root: Path) -> None:
    verdict = screen(read_amass(repo_root / f"data/human/{name}.npz"), SETTINGS)
    assert verdict.accepted, [reason.text() for reason in verdict.reasons]
    assert verdict.figures["infeasible_fraction"] == 0.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("fault", "rule"), FAULTS, ids=[rule for _, rule in FAULTS])
def test_fault_is_rejected_for_its_own_reason(name: str, fault: Callable, rule: str, repo_root: Path) -> None:
    verdict = screen(fault(read_amass(repo_root / f"data/human/{name}.npz")), SETTINGS)
    assert not verdict.accepted
    assert rule in [reason.rule for reason in verdict.reasons]


def test_teleport_names_its_frame(repo_root: Path) -> None:
    motion = read_amass(repo_root / "data/human/squat.npz")
    reason = next(r for r in screen(_teleports(motion), SETTINGS).reasons if r.rule == "speed")
    assert reason.frames == [[motion.num_frames // 2 - 1] * 2]
    assert reason.found == pytest.approx(21.0, rel=0.01)
    assert reason.text().startswith("speed: found 21.0")


def test_small_ground_error_is_no_fault(repo_root: Path) -> None:
    motion = read_amass(repo_root / "data/human/kick.npz")
    verdict = screen(replace(motion, root_translation=motion.root_translation + np.array([0.0, 0.0, 0.1])), SETTINGS)
    assert verdict.accepted
    assert verdict.figures["ground_level"] == pytest.approx(0.1, abs=1e-6)


def test_short_clip_is_rejected(repo_root: Path) -> None:
    motion = read_amass(repo_root / "data/human/kick.npz")
    few = replace(motion, joint_rotations=motion.joint_rotations[:5], root_translation=motion.root_translation[:5])
    assert [reason.rule for reason in screen(few, SETTINGS).reasons] == ["short"]


def test_verdict_is_plain_json(repo_root: Path) -> None:
    import json

    header = screen(_floats(read_amass(repo_root / "data/human/squat.npz")), SETTINGS).to_header()
    assert json.loads(json.dumps(header, allow_nan=False)) == header


def test_published_clips_are_accepted_and_their_faults_found(shared_dir: Path) -> None:
    paths = sorted((shared_dir / "data/asap/smpl").glob("*.npz"))
    assert len(paths) == 39
    for path in paths:
        motion = read_amass(path)
        verdict = screen(motion, SETTINGS)
        assert verdict.accepted, (path.name, [reason.text() for reason in verdict.reasons])
    for path in paths[::5]:
        motion = read_amass(path)
        for fault, rule in FAULTS[:4]:
            assert rule in [reason.rule for reason in screen(fault(motion), SETTINGS).reasons], (path.name, rule)
