"""How fast and how right the doctor is: made clips in every layout, and the published files where they are present."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from asap_core.motions.doctor.examine import Diagnosis, examine
from asap_core.motions.doctor.faults import human_faults, rate_faults, robot_faults, velocity_faults
from asap_core.motions.doctor.human import examine_human
from asap_core.motions.doctor.made_clips import as_clip, walk_and_hop
from asap_core.motions.doctor.options import Options
from asap_core.motions.doctor.robot import examine_robot
from asap_core.motions.formats.clip import Declared, HumanClip, RobotClip
from asap_core.motions.formats.table import FORMATS, read_any
from asap_core.motions.robot import RobotMotion
from asap_core.robots import get_profile
from asap_core.robots.profile import breadth_first

_RATELESS = {"lafan_csv": 30.0}
"""Formats that are written here but store no rate."""
_OF_THE_CLIP = {"floating", "penetration", "foot_slide"}
"""What the doctor says of published retargets is so: their standing feet hang in the air, and some slide."""
_REPEATS = 3


def bench(shared: Path) -> dict[str, float]:
    """Seconds per clip, false alarms on clean clips, and constructed faults named, each in all and by kind."""
    figures: dict[str, float] = {}
    times = _measure_made(figures)
    figures["ten_second_clip_s_median"] = float(np.median(times))
    figures["ten_second_clip_s_max"] = max(times)
    robots = sorted((shared / "data" / "asap" / "g1").glob("*.pkl"))
    people = sorted((shared / "data" / "asap" / "smpl").glob("*.npz"))
    clips = [clip for path in robots for clip in read_any(path) if isinstance(clip, RobotClip)]
    humans = [clip for path in people for clip in read_any(path) if isinstance(clip, HumanClip)]
    _measure_published(clips, humans, figures)
    _measure_faults(clips, humans, figures)
    return figures


def _measure_made(figures: dict[str, float]) -> list[float]:
    """Made clips as files of every format that can be written, and in every order without names; seconds each took."""
    times, wrong, count = [], 0, 0
    for robot in ("g1_29dof", "g1_23dof"):
        motion = walk_and_hop(robot)
        with tempfile.TemporaryDirectory() as folder:
            for name, path in _written(motion, Path(folder)):
                options = Options(fps=_RATELESS.get(name), dof_set="asap23" if robot == "g1_23dof" else None)
                took = [_timed(path, options) for _ in range(_REPEATS)]
                times.append(min(seconds for seconds, _ in took))
                wrong += not took[0][1]
                count += 1
        for clip in _in_every_order(motion):
            found = examine_robot(clip, Options())
            wrong += not (found.clean and found.motion is not None and _same(found.motion, motion))
            count += 1
    figures["made_clips"] = count
    figures["made_clips_false_alarms"] = wrong
    return times


def _written(motion: RobotMotion, folder: Path) -> Iterator[tuple[str, Path]]:
    for name, form in FORMATS.items():
        if form.write is not None:
            path = folder / f"{name}{form.suffixes[0]}"
            rate = _RATELESS.get(name)
            form.write(path, motion if rate is None else motion.resample(rate), get_profile(motion.robot))
            yield name, path


def _timed(path: Path, options: Options) -> tuple[float, bool]:
    start = time.perf_counter()
    report = examine(path, options)
    return time.perf_counter() - start, report.clean


def _in_every_order(motion: RobotMotion) -> Iterator[RobotClip]:
    for order in ("mjcf", "isaac"):
        for quat in ("wxyz", "xyzw"):
            clip = as_clip(motion, order, quat)
            yield replace(clip, declared=replace(clip.declared, velocity_point="link"))


def _same(found: RobotMotion, made: RobotMotion) -> bool:
    """Whether the doctor read every number as it was meant; quaternions may have the other sign."""
    turned = np.abs((found.root_quat * made.root_quat).sum(axis=1)).min()
    near = np.allclose(found.joint_pos, made.joint_pos) and np.allclose(found.root_pos, made.root_pos)
    return found.joint_names == made.joint_names and bool(near and turned > 1 - 1e-9)


def _measure_published(clips: list[RobotClip], humans: list[HumanClip], figures: dict[str, float]) -> None:
    robots = [examine_robot(clip, Options()) for clip in clips]
    people = [examine_human(clip, Options()) for clip in humans]
    figures["published_robot_clips"] = len(robots)
    figures["published_robot_false_alarms"] = sum(bool(_codes(found) - _OF_THE_CLIP) for found in robots)
    for code in sorted(_OF_THE_CLIP):
        figures[f"published_robot_{code}"] = sum(code in _codes(found) for found in robots)
    figures["published_human_clips"] = len(people)
    figures["published_human_false_alarms"] = sum(not found.clean for found in people)


def _codes(found: Diagnosis) -> set[str]:
    open_questions = {decision.question.replace(" ", "_") for decision in found.open_questions}
    return open_questions | {problem.code for problem in found.problems if problem.severity != "note"}


def _measure_faults(clips: list[RobotClip], humans: list[HumanClip], figures: dict[str, float]) -> None:
    named: Counter[str] = Counter()
    total: Counter[str] = Counter()

    def note(fault: str, hit: bool) -> None:
        total[fault] += 1
        named[fault] += hit

    for clip in [*_said(), *clips]:
        clean = _codes(examine_robot(clip, Options()))
        for fault, (code, make) in robot_faults(clip).items():
            if code not in clean:
                note(fault, code in _codes(examine_robot(make(), Options())))
        if "gravity" in _how(examine_robot(clip, Options()), "fps"):
            for fault, wrong in rate_faults(clip).items():
                note(f"{fault}_of_flights", "wrong_fps" in _codes(examine_robot(wrong, Options())))
    for fault, hit in _with_velocities():
        note(fault, hit)
    for human in humans:
        for fault, (code, make_human) in human_faults(human).items():
            note(f"human_{fault}", code in _codes(examine_human(make_human(), Options())))
        if "gravity" in _how(examine_human(human, Options()), "fps"):
            for fault, mislabelled in rate_faults(human).items():
                note(f"human_{fault}_of_flights", "wrong_fps" in _codes(examine_human(mislabelled, Options())))
    _count(named, total, figures)


def _count(named: Mapping[str, int], total: Mapping[str, int], figures: dict[str, float]) -> None:
    for fault in total:
        figures[f"fault_{fault}"] = total[fault]
        figures[f"fault_{fault}_named"] = named[fault]
    figures["faults"] = sum(total.values())
    figures["faults_named"] = sum(named.values())


def _how(found: Diagnosis, question: str) -> str:
    return next((decision.how for decision in found.decisions if decision.question == question), "")


def _said() -> Iterator[RobotClip]:
    """Made clips without bodies whose orders a format would declare."""
    for robot, order in (("g1_29dof", "unitree29"), ("g1_23dof", "asap23")):
        clip = as_clip(walk_and_hop(robot), bodies=False)
        yield replace(clip, declared=Declared("wxyz", order, None, "z", "m", "rad", frame="world"))


def _with_velocities() -> Iterator[tuple[str, bool]]:
    """Wrong rates and wrong velocities of a made clip that stores bodies."""
    robot = "g1_29dof"
    clip = as_clip(walk_and_hop(robot))
    for fault, wrong in rate_faults(clip).items():
        yield f"{fault}_of_velocities", "wrong_fps" in _codes(examine_robot(wrong, Options()))
    links = tuple(link.name for link in get_profile(robot).links)
    for fault, (code, wrong) in velocity_faults(clip, links, robot).items():
        yield fault, code in _codes(examine_robot(wrong, Options()))
    isaac = as_clip(walk_and_hop(robot), "isaac")
    assert isaac.body_pos is not None
    shuffled = np.random.default_rng(0).permutation(len(breadth_first(get_profile(robot))))
    yield (
        "bodies_shuffled",
        "body_order" in _codes(examine_robot(replace(isaac, body_pos=isaac.body_pos[:, shuffled]), Options())),
    )
