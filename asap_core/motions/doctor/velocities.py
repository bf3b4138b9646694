"""Evidence on stored body velocities: of which point, and in which frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asap_core.evidence import Decision
from asap_core.motions.derived import angular_velocity, centres_of_mass
from asap_core.motions.doctor.body_match import BodyOrder
from asap_core.motions.doctor.problems import Problem, Severity
from asap_core.motions.doctor.reading import Reading, as_wxyz
from asap_core.motions.doctor.weigh import least
from asap_core.motions.formats.clip import RobotClip
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array, rotate, rotate_inverse

_SHARE = 0.5
_APART = 0.01
"""m/s or rad/s, rms."""
_AGREES = 0.25
"""Of the rms of the velocities themselves: a larger residue agrees with nothing."""
_MEND = "asap convert SRC DST --recompute-velocities"


@dataclass(frozen=True)
class Velocities:
    """What the stored velocities are."""

    decisions: tuple[Decision, ...]
    problems: tuple[Problem, ...]


def judge_velocities(clip: RobotClip, reading: Reading, bodies: BodyOrder | None, fps: float) -> Velocities:
    """Compare stored body velocities with finite differences of the stored body poses at `fps`."""
    decisions: list[Decision] = []
    problems: list[Problem] = []
    if clip.body_pos is None or clip.body_quat is None:
        return Velocities((), ())
    quat = as_wxyz(clip.body_quat, reading.quat_order)
    if clip.body_lin_vel is not None:
        _judge_linear(clip, reading.profile, bodies, quat, fps, decisions, problems)
    if clip.body_ang_vel is not None:
        _judge_angular(clip, quat, fps, decisions, problems)
    return Velocities(tuple(decisions), tuple(problems))


def _judge_linear(
    clip: RobotClip,
    profile: RobotProfile,
    bodies: BodyOrder | None,
    quat: Array,
    fps: float,
    decisions: list[Decision],
    problems: list[Problem],
) -> None:
    assert clip.body_pos is not None
    assert clip.body_lin_vel is not None
    link = np.gradient(clip.body_pos, 1 / fps, axis=0)
    expected = {
        "link": link,
        "link in body frame": rotate_inverse(quat, link),
        "link rotated twice": rotate(quat, link),
    }
    if bodies is not None:
        com = np.gradient(clip.body_pos + rotate(quat, _com_offsets(profile, bodies)), 1 / fps, axis=0)
        expected["com"] = com
    decision = _match("velocity point", clip.body_lin_vel, expected, "m/s")
    decisions.append(decision)
    expected_point = usual_point(clip, None if bodies is None else bodies.name)
    if decision.answer in (None, expected_point):
        return
    said = f", expected {expected_point}"
    severity: Severity = "warning" if decision.answer in ("link", "com") else "error"
    text = f"body_lin_vel is that of {decision.answer} ({decision.figure:.3f} m/s off{said})"
    problems.append(Problem(severity, "velocity_point", text, "", _MEND))


def _judge_angular(
    clip: RobotClip, quat: Array, fps: float, decisions: list[Decision], problems: list[Problem]
) -> None:
    assert clip.body_ang_vel is not None
    world = angular_velocity(quat, fps)
    expected = {"world": world, "body": rotate_inverse(quat, world), "rotated twice": rotate(quat, world)}
    decision = _match("angular velocity frame", clip.body_ang_vel, expected, "rad/s")
    decisions.append(decision)
    if decision.answer in (None, "world"):
        return
    what = {"body": "is in the body's frame", "rotated twice": "is R·w, the world's velocity turned once more by R"}
    text = f"body_ang_vel {what[str(decision.answer)]} ({decision.figure:.3f} rad/s off), expected the world's frame"
    problems.append(Problem("error", "angular_velocity_frame", text, "", _MEND))


def _match(question: str, stored: Array, expected: dict[str, Array], unit: str) -> Decision:
    figures = {name: _rms(stored - values) for name, values in expected.items()}
    found = least(question, figures, unit, "rms from finite differences", "--recompute-velocities", _SHARE, _APART)
    size = max(_rms(stored), *(_rms(values) for values in expected.values()))
    if found.figure <= _AGREES * size and found.answer is not None:
        return found
    how = "too slow to tell" if size < 2 * _APART else f"{found.how}; the velocities are {size:.3g} {unit} rms"
    return Decision(question, None, found.figure, found.runner_up, found.margin, how, "--recompute-velocities", unit)


def usual_point(clip: RobotClip, body_order: str | None) -> str:
    """Whose velocity a file should hold: the format's word, or the centre of mass where bodies are in Isaac's order."""
    if clip.declared.velocity_point is not None:
        return clip.declared.velocity_point
    return "com" if body_order == "isaac" and clip.body_names is None else "link"


def _rms(values: Array) -> float:
    """Of the frames but the first and last two, whose differences are one-sided."""
    return float(np.sqrt((values[2:-2] ** 2).sum(axis=-1).mean())) if len(values) > 4 else 0.0


def _com_offsets(profile: RobotProfile, bodies: BodyOrder) -> Array:
    """(B, 3) centre of mass in each body's frame, 0 for bodies that are no link."""
    com = centres_of_mass(profile)
    none = np.zeros(3)
    return np.array([none if link is None else com[profile.link_index(link)] for link in bodies.links])
