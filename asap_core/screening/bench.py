"""Score of the screen and of the imitator on the 19 clips of ASAP that no threshold was set on."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from asap_core.motions.human import HumanMotion
from asap_core.motions.robot import RobotMotion
from asap_core.progress import track
from asap_core.retargeting.retarget import retarget
from asap_core.retargeting.settings import RetargetSettings
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.screening.calibration import SCORED, is_walk_or_jump, read_clips
from asap_core.screening.faults import FAULTS, asymmetry, spoil_robot
from asap_core.screening.imitator.imitate import Imitation, imitate
from asap_core.screening.imitator.reference import imitation_reference
from asap_core.screening.robot import screen_robot
from asap_core.screening.screen import screen
from asap_core.screening.settings import ScreenSettings

ASYMMETRIC = 0.2
"""m that a swap of the columns moves the limbs of an asymmetric clip in the mean."""
_ROBOT_FAULTS = ("float", "penetration", "slide", "skate", "teleport", "speed_up")


def bench(
    shared: Path,
    profile: RobotProfile,
    settings: ScreenSettings,
    retargeting: RetargetSettings,
    physics: PhysicsSettings,
    names: tuple[str, ...] = SCORED,
) -> dict[str, float]:
    """Figures of the clips `names` of `<shared>/data/asap`; shares from 0 to 1.

    Returns:
        clean_rejected (a count) and, for each fault, <fault>_rejected and <fault>_right_reason of a person's clips;
        the same with the prefix robot_ after retargeting; imitator_clean_passed and imitator_<fault>_passed with
        imitator_faulted_passed over all of them and imitator_gap_points between; frames_per_second of both screens and
        seconds_per_clip of the imitator.

    Raises:
        InputFileError: a clip is missing.
    """
    clips = read_clips(shared, names)
    figures = {"clips": float(len(clips)), "asymmetric_clips": float(sum(map(_is_asymmetric, clips.values())))}
    figures |= _human(clips, settings)
    figures |= _robot(clips, profile, settings, retargeting, physics)
    return figures | _imitator(clips, profile, settings, retargeting, physics)


def suffers(fault: str, name: str, motion: HumanMotion) -> bool:
    """Whether a clip is one that a fault is scored on."""
    if fault == "speed_up":
        return is_walk_or_jump(name)
    return fault != "swap" or _is_asymmetric(motion)


def _is_asymmetric(motion: HumanMotion) -> bool:
    return asymmetry(motion) > ASYMMETRIC


def _human(clips: dict[str, HumanMotion], settings: ScreenSettings) -> dict[str, float]:
    begin = time.perf_counter()
    clean = [screen(motion, settings) for motion in clips.values()]
    frames = sum(motion.num_frames for motion in clips.values())
    figures = {"frames_per_second": frames / (time.perf_counter() - begin)}
    figures["clean_rejected"] = float(sum(not verdict.accepted for verdict in clean))
    for name, fault in FAULTS.items():
        spoilt = [fault.make(motion) for clip, motion in clips.items() if suffers(name, clip, motion)]
        verdicts = [screen(motion, settings) for motion in spoilt]
        figures[f"{name}_rejected"] = _share(not verdict.accepted for verdict in verdicts)
        figures[f"{name}_right_reason"] = _share(bool(verdict.rules & fault.rules) for verdict in verdicts)
    return figures


def _robot(
    clips: dict[str, HumanMotion],
    profile: RobotProfile,
    settings: ScreenSettings,
    retargeting: RetargetSettings,
    physics: PhysicsSettings,
) -> dict[str, float]:
    motions = {name: retarget(motion, profile, retargeting) for name, motion in clips.items()}
    begin = time.perf_counter()
    clean = [screen_robot(motion, profile, settings, physics) for motion in motions.values()]
    frames = sum(motion.num_frames for motion in motions.values())
    figures = {"robot_frames_per_second": frames / (time.perf_counter() - begin)}
    figures["robot_clean_rejected"] = float(sum(not verdict.accepted for verdict in clean))
    for fault in _ROBOT_FAULTS:
        spoilt = [spoil_robot(motion, fault) for name, motion in motions.items() if suffers(fault, name, clips[name])]
        verdicts = [screen_robot(motion, profile, settings, physics) for motion in spoilt]
        figures[f"robot_{fault}_rejected"] = _share(not verdict.accepted for verdict in verdicts)
        right = FAULTS[fault].rules | ({"torque"} if fault == "speed_up" else frozenset())
        figures[f"robot_{fault}_right_reason"] = _share(bool(verdict.rules & right) for verdict in verdicts)
    return figures


def _imitator(
    clips: dict[str, HumanMotion],
    profile: RobotProfile,
    settings: ScreenSettings,
    retargeting: RetargetSettings,
    physics: PhysicsSettings,
) -> dict[str, float]:
    def follow(motion: HumanMotion) -> Imitation:
        reference: RobotMotion = imitation_reference(motion, profile, retargeting, settings)
        return imitate(reference, profile, settings.imitator, physics)

    passed: dict[str, list[bool]] = {name: [] for name in ("clean", *FAULTS)}
    begin = time.perf_counter()
    with track("imitate", len(clips)) as tracker:
        for clip, motion in clips.items():
            passed["clean"].append(follow(motion).passed)
            for name, fault in FAULTS.items():
                if suffers(name, clip, motion):
                    passed[name].append(follow(fault.make(motion)).passed)
            tracker.advance(note=clip)
    seconds, runs = time.perf_counter() - begin, sum(len(values) for values in passed.values())
    figures = {f"imitator_{name}_passed": _share(values) for name, values in passed.items()}
    faulted = _share(value for name, values in passed.items() if name != "clean" for value in values)
    figures["imitator_faulted_passed"] = faulted
    figures["imitator_gap_points"] = 100.0 * (figures["imitator_clean_passed"] - faulted)
    return figures | {"imitator_seconds_per_clip": seconds / runs}


def _share(values: Iterable[bool]) -> float:
    listed = list(values)
    return float(np.mean(listed)) if listed else 0.0
