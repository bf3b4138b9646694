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
_TOO_SLOW = "too slow to tell"
_TWICE = "rotated twice"
_WORDS = {
    "link": "that of the link's origin",
    "com": "that of the centre of mass (com)",
    "world": "in the world's frame",
    "body": "in the body's frame",
    _TWICE: "R·w, the world's velocity turned once more by the body's rotation R",
}
_MEND = "asap convert SRC DST --recompute-velocities"


@dataclass(frozen=True)
class Velocities:
    """What the stored velocities are."""

    decisions: tuple[Decision, ...]
    problems: tuple[Problem, ...]


def judge_velocities(clip: RobotClip, reading: Reading, bodies: BodyOrder | None, fps: float) -> Velocities:
    """Compare stored body velocities with finite differences of the stored body poses at `fps`."""
    if clip.body_pos is None or clip.body_quat is None:
        return Velocities((), ())
    quat = as_wxyz(clip.body_quat, reading.quat_order)
    findings = []
    if clip.body_lin_vel is not None:
        expected = _linear(clip.body_pos, quat, reading.profile, bodies, fps)
        point = usual_point(clip, None if bodies is None else bodies.name)
        findings.append(_judge("velocity point", "body_lin_vel", clip.body_lin_vel, expected, "m/s", point))
    if clip.body_ang_vel is not None:
        world = angular_velocity(quat, fps)
        expected = {"world": world, "body": rotate_inverse(quat, world), _TWICE: rotate(quat, world)}
        stored = clip.body_ang_vel
        findings.append(_judge("angular velocity frame", "body_ang_vel", stored, expected, "rad/s", "world"))
    return Velocities(tuple(d for d, _ in findings), tuple(p for _, p in findings if p is not None))


def _linear(
    body_pos: Array, quat: Array, profile: RobotProfile, bodies: BodyOrder | None, fps: float
) -> dict[str, Array]:
    """What the bodies' velocities would be of each point and in each frame; the centre of mass needs known bodies."""
    link = np.gradient(body_pos, 1 / fps, axis=0)
    expected = {"link": link, "body": rotate_inverse(quat, link), _TWICE: rotate(quat, link)}
    if bodies is not None:
        expected["com"] = np.gradient(body_pos + rotate(quat, _com_offsets(profile, bodies)), 1 / fps, axis=0)
    return expected


def _judge(
    question: str, field: str, stored: Array, expected: dict[str, Array], unit: str, usual: str
) -> tuple[Decision, Problem | None]:
    """The decision on one field, and a problem if it is not what it usually is, or nothing that is known."""
    decision = _match(question, stored, expected, unit)
    code = question.replace(" ", "_")
    off = f"{decision.figure:.3f} {unit} off"
    if decision.answer == usual or decision.how == _TOO_SLOW:
        return decision, None
    if decision.answer is None:
        text = f"{field} does not fit the bodies' own motion in any frame ({decision.runner_up} is next; {off})"
        return decision, Problem("error", code, text, "", _MEND)
    severity: Severity = "warning" if decision.answer in ("link", "com") else "error"
    text = f"{field} is {_WORDS[decision.answer]} ({off}), expected {_WORDS[usual]}"
    return decision, Problem(severity, code, text, "", _MEND)


def _match(question: str, stored: Array, expected: dict[str, Array], unit: str) -> Decision:
    figures = {name: _rms(stored - values) for name, values in expected.items()}
    found = least(question, figures, unit, "rms from finite differences", "--recompute-velocities", _SHARE, _APART)
    size = max(_rms(stored), *(_rms(values) for values in expected.values()))
    if found.figure <= _AGREES * size and found.answer is not None:
        return found
    how = _TOO_SLOW if size < 2 * _APART else f"{found.how}; the velocities are {size:.3g} {unit} rms"
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
