"""The screen on motion files of any format the doctor understands, a person's or a robot's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from asap_core.errors import ConfigError, InputFileError
from asap_core.files import file_name
from asap_core.motions.doctor.examine import examine
from asap_core.motions.doctor.options import Options
from asap_core.motions.human import HumanMotion
from asap_core.motions.robot import RobotMotion
from asap_core.retargeting.retarget import retarget
from asap_core.retargeting.settings import RetargetSettings
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.screening.imitator.imitate import imitate
from asap_core.screening.imitator.reference import imitation_reference
from asap_core.screening.masked_mimic import run_masked_mimic
from asap_core.screening.robot import screen_robot
from asap_core.screening.screen import screen
from asap_core.screening.settings import ScreenSettings
from asap_core.screening.verdict import Verdict

Imitator = Literal["mujoco", "masked_mimic"]


@dataclass(frozen=True)
class Screener:
    """How files are judged."""

    profile: RobotProfile
    """The robot that a person's clip is retargeted to."""
    settings: ScreenSettings
    retargeting: RetargetSettings
    physics: PhysicsSettings
    robot_motion: bool = False
    """Retarget a person's clip and judge the robot's motion too."""
    imitator: Imitator | None = None
    """What has to imitate the clip, if anything."""
    folder: Path | None = None
    """Where MaskedMimic's files go."""


@dataclass(frozen=True)
class Judgement:
    """One screen's word on one clip."""

    clip: str
    screen: Literal["person", "robot", "imitator"]
    fps: float
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"clip": self.clip, "screen": self.screen, **self.verdict.to_header()}


def judge_file(path: Path, screener: Screener) -> list[Judgement]:
    """Judge every clip of a file.

    Raises:
        InputFileError: it cannot be read, or the doctor has an open question about it.
        ConfigError: MaskedMimic is asked to imitate a robot's motion, or is not configured.
        StageError: MaskedMimic failed.
    """
    judged: list[Judgement] = []
    for found in examine(path, Options()).clips:
        if found.motion is None:
            open_questions = "; ".join(decision.text for decision in found.open_questions) or "its frame is a camera's"
            raise InputFileError(path, f"cannot be understood: {open_questions}; see `asap doctor {path}`")
        if isinstance(found.motion, RobotMotion):
            judged += _judge_robot(found.motion, screener)
        else:
            judged += _judge_person(found.motion, screener)
    return judged


def _judge_person(motion: HumanMotion, screener: Screener) -> list[Judgement]:
    judged = [Judgement(motion.name, "person", motion.fps, screen(motion, screener.settings))]
    profile, retargeting = screener.profile, screener.retargeting
    if screener.robot_motion:
        result = retarget(motion, profile, retargeting)
        verdict = screen_robot(result, profile, screener.settings, screener.physics)
        judged.append(Judgement(motion.name, "robot", result.fps, verdict))
    if screener.imitator == "mujoco":
        reference = imitation_reference(motion, profile, retargeting, screener.settings)
        judged.append(_imitated(reference, profile, screener))
    elif screener.imitator == "masked_mimic":
        if screener.folder is None:
            raise ConfigError("masked_mimic: no folder for its files")
        result_of = run_masked_mimic(motion, screener.settings.masked_mimic, screener.folder / file_name(motion.name))
        judged.append(Judgement(motion.name, "imitator", motion.fps, result_of.verdict()))
    return judged


def _judge_robot(motion: RobotMotion, screener: Screener) -> list[Judgement]:
    profile = get_profile(motion.robot)
    verdict = screen_robot(motion, profile, screener.settings, screener.physics)
    judged = [Judgement(motion.name, "robot", motion.fps, verdict)]
    if screener.imitator == "masked_mimic":
        raise ConfigError(f"{motion.name}: MaskedMimic imitates a person's clip, this is a motion of {motion.robot}")
    if screener.imitator == "mujoco":
        judged.append(_imitated(motion, profile, screener))
    return judged


def _imitated(motion: RobotMotion, profile: RobotProfile, screener: Screener) -> Judgement:
    settings = screener.settings.imitator
    verdict = imitate(motion, profile, settings, screener.physics).verdict(settings)
    return Judgement(motion.name, "imitator", 1.0 / settings.control_dt, verdict)
