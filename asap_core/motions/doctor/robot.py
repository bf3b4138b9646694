"""A robot clip understood: every question decided or left open, every problem named, the motion if it is sure."""

from __future__ import annotations

from dataclasses import dataclass

from asap_core.errors import InputFileError
from asap_core.evidence import Decision, undecided
from asap_core.motions.doctor.body_match import BodyOrder, body_orders
from asap_core.motions.doctor.contact import contact_problems
from asap_core.motions.doctor.integrity import jumps, not_unit, repeated_frames
from asap_core.motions.doctor.limits import limit_problems
from asap_core.motions.doctor.options import Options
from asap_core.motions.doctor.orders import Orders, decide_orders
from asap_core.motions.doctor.problems import Problem
from asap_core.motions.doctor.rate import Rate, decide_rate
from asap_core.motions.doctor.reading import Reading
from asap_core.motions.doctor.sides import swap_problem
from asap_core.motions.doctor.units import angle_unit, length_unit
from asap_core.motions.doctor.upright import up_axis
from asap_core.motions.doctor.velocities import judge_velocities
from asap_core.motions.formats.clip import RobotClip
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import Source, check_size

_TOOL = "asap doctor 1"
_LEAST_FRAMES = 4
_MOST = {"root_pos": 1e7, "root_quat": 1e3, "joint_pos": 1e5, "joint_vel": 1e7} | {
    f"body_{name}": most for name, most in (("pos", 1e7), ("quat", 1e3), ("lin_vel", 1e7), ("ang_vel", 1e7))
}


@dataclass(frozen=True)
class RobotDiagnosis:
    """What the doctor found of one robot clip."""

    clip: RobotClip
    decisions: tuple[Decision, ...]
    problems: tuple[Problem, ...]
    reading: Reading | None
    """None if the clip cannot be read at all."""
    motion: RobotMotion | None
    """In the file's joints; None while a question is open or the arrays are damaged."""

    @property
    def open_questions(self) -> tuple[Decision, ...]:
        """Those that must be settled before the clip can be converted; velocities are derived anew and need not."""
        return undecided(d for d in self.decisions if d.option != "--recompute-velocities")

    @property
    def clean(self) -> bool:
        """Nothing open and nothing worse than a note."""
        return not self.open_questions and all(problem.severity == "note" for problem in self.problems)


def examine_robot(clip: RobotClip, options: Options) -> RobotDiagnosis:
    """Understand a clip by its physics.

    Raises:
        InputFileError: fewer than four frames, absurd numbers, or joints that no known robot has.
    """
    if len(clip.root_pos) < _LEAST_FRAMES:
        raise InputFileError(clip.path, f"frames: found {len(clip.root_pos)}, expected at least {_LEAST_FRAMES}")
    _check_sizes(clip)
    damage = not_unit(clip)
    notes = [Problem("note", "reader", note) for note in clip.notes]
    if any(problem.severity == "error" for problem in damage):
        return RobotDiagnosis(clip, (), (*damage, *notes), None, None)
    angle, length = angle_unit(clip), length_unit(clip)
    orders = decide_orders(clip, options, str(angle.answer), str(length.answer))
    up = up_axis(clip, options, orders.quat)
    reading = Reading(orders.quat, up.answer or "z", str(length.answer), str(angle.answer), orders.joint)  # type: ignore[arg-type]
    poses = reading.poses(clip)
    rate = decide_rate(clip, reading, poses, options)
    decisions = (*orders.decisions, up, length, angle, rate.decision)
    problems = [*damage, *_against_format(clip, decisions), *repeated_frames(clip)]
    problems += _rate_problems(clip, rate) + _other_model(orders)
    if rate.fps is not None:
        velocities = judge_velocities(clip, reading, _body_order(clip, orders), rate.suggested or rate.fps)
        decisions += velocities.decisions
        problems += [*velocities.problems, *jumps(clip, reading, rate.fps), *limit_problems(clip, reading, rate.fps)]
        problems += contact_problems(reading.profile, poses, rate.fps)
        problems += swap_problem(clip, reading, poses) if orders.body is None and clip.joint_names is None else []
    found = RobotDiagnosis(clip, decisions, (*problems, *notes), reading, None)
    if found.open_questions or rate.fps is None:
        return found
    return RobotDiagnosis(clip, decisions, found.problems, reading, _motion(clip, reading, rate.fps))


def _check_sizes(clip: RobotClip) -> None:
    """Refuse numbers that no unit explains; they would overflow in what follows."""
    for name, most in _MOST.items():
        values = getattr(clip, name)
        if values is not None:
            check_size(clip.path, name, values, most, "in any unit")


def _motion(clip: RobotClip, reading: Reading, fps: float) -> RobotMotion:
    columns = [reading.profile.joint_index(joint) for joint in reading.order.joints]
    names = sorted(reading.order.joints, key=reading.profile.joint_index)
    return RobotMotion(
        name=clip.name,
        robot=reading.order.robot,
        fps=fps,
        root_pos=reading.root_pos(clip),
        root_quat=reading.orientations(clip.root_quat),
        joint_names=tuple(names),
        joint_pos=reading.joint_pos(clip)[:, sorted(columns)],
        source=Source(clip.path.as_posix(), clip.sha256, f"{_TOOL} {clip.format}"),
    )


def _body_order(clip: RobotClip, orders: Orders) -> BodyOrder | None:
    return next((order for order in body_orders(clip, orders.joint) if order.name == orders.body), None)


def _against_format(clip: RobotClip, decisions: tuple[Decision, ...]) -> list[Problem]:
    """Where the evidence outweighs what the format says."""
    declared = {
        "joint order": clip.declared.joint_order,
        "quaternion order": clip.declared.quat_order,
        "up axis": clip.declared.up_axis,
        "length unit": clip.declared.length_unit,
        "angle unit": clip.declared.angle_unit,
    }
    problems = []
    for decision in decisions:
        said = declared.get(decision.question)
        if said is None or decision.answer in (None, said, "named") or decision.how.startswith("the option"):
            continue
        text = f"{decision.question} is {decision.answer}, {clip.format} says {said} ({decision.how})"
        code = decision.question.replace(" ", "_")
        problems.append(Problem("error", code, text, "", "asap convert SRC DST (reads it as found)"))
    return problems


def _rate_problems(clip: RobotClip, rate: Rate) -> list[Problem]:
    if rate.fps is None:
        return []
    problems = []
    if clip.fps is not None and abs(clip.fps - rate.fps) > 1e-6 * rate.fps:
        text = f"--fps {rate.fps:g} overrules the file, which says {clip.fps:g}"
        problems.append(Problem("warning", "fps_overruled", text))
    if rate.suggested is not None:
        text = f"the rate of {rate.fps:g} Hz is off by {rate.fps / rate.suggested:.2f}: {rate.decision.how}"
        mend = f"asap convert SRC DST --fps {rate.suggested:.4g}"
        problems.append(Problem("error", "wrong_fps", text, "", mend))
    return problems


def _other_model(orders: Orders) -> list[Problem]:
    if orders.body_mm is None or orders.body_mm <= 1.0:
        return []
    text = f"bodies lie {orders.body_mm:.1f} mm from {orders.joint.robot}'s links on average: another model revision"
    return [Problem("note", "other_model", text)]
