"""Joint, body and quaternion order, weighed together: each is judged with the others at their best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from asap_core.errors import InputFileError
from asap_core.evidence import Decision, given
from asap_core.motions.doctor.body_match import OTHER_MODEL_MM, SAME_MM, body_distances, local_distances
from asap_core.motions.doctor.joint_orders import JointOrder, get_order, orders_of_width
from asap_core.motions.doctor.options import QUAT_ORDERS, Options
from asap_core.motions.doctor.support import support_scores
from asap_core.motions.doctor.weigh import least
from asap_core.motions.formats.clip import RobotClip
from asap_core.robots import get_profile

_JOINT, _QUAT, _BODY = "joint order", "quaternion order", "body order"
_BODY_SHARE, _BODY_APART = 0.2, 5.0
"""Stored bodies: the best must be below this share of the next, and by so many mm."""
_SUPPORT_SHARE, _SUPPORT_APART = 0.7, 0.02
"""Standing test: the same, in m/s."""
_CONTRADICTS = 0.65
"""A format's word on an order is doubted only if another fits with less than this share of its figure."""
_AMBIGUOUS_WIDTH = 23
_SUPPORT_HOW = "speed of the stiller foot with limits and tilt"


@dataclass(frozen=True)
class Orders:
    """What was decided; `joint` and `quat` are also set to the best guess where the decision abstains."""

    joint: JointOrder
    quat: str
    body: str | None
    """`mjcf`, `isaac`, `named` or `nearest`; None for a file without bodies."""
    body_mm: float | None
    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class _Weights:
    """Figures per (joint order, quaternion order), less is better, and how far the best must lead."""

    figures: Mapping[tuple[str, str], float]
    unit: str
    how: str
    share: float
    apart: float

    def best(self) -> tuple[str, str]:
        return min(self.figures, key=lambda key: self.figures[key])

    def of_joints(self, quat: str) -> dict[str, float]:
        return {joint: value for (joint, q), value in self.figures.items() if q == quat}

    def of_quats(self, joint: str) -> dict[str, float]:
        return {quat: value for (j, quat), value in self.figures.items() if j == joint}


def decide_orders(clip: RobotClip, options: Options, angle_unit: str, length_unit: str) -> Orders:
    """Decide the three orders of a clip.

    Raises:
        InputFileError: no known order has the clip's number of joints, or it names joints that the robot lacks.
    """
    candidates = _by_local_bodies(clip, _candidates(clip, options), angle_unit)
    by_body = body_distances(clip, candidates, angle_unit)
    quats = QUAT_ORDERS if options.quat_order is None else (options.quat_order,)
    if by_body and min(by_body.values()) <= OTHER_MODEL_MM:
        weights = _Weights(_without_body(by_body, quats), "mm", "links from bodies", _BODY_SHARE, _BODY_APART)
    else:
        figures = support_scores(clip, candidates, angle_unit, length_unit, quats)
        weights = _Weights(figures, "m/s", _SUPPORT_HOW, _SUPPORT_SHARE, _SUPPORT_APART)
    joint_name, quat = weights.best()
    quat_decision = _decide_quat(clip, options, weights, joint_name)
    quat = quat_decision.answer or quat
    joint_decision = _decide_joint(clip, options, weights, candidates, quat)
    joint = next(order for order in candidates if order.name == (joint_decision.answer or joint_name))
    body_decision, body, millimetres = _decide_body(by_body, joint.name, quat)
    decisions = (joint_decision, *body_decision, quat_decision)
    return Orders(joint, quat, body, millimetres, decisions)


def _candidates(clip: RobotClip, options: Options) -> tuple[JointOrder, ...]:
    width = clip.joint_pos.shape[1]
    if clip.joint_names is not None:
        return (_named(clip, options),)
    if options.joint_order is not None:
        order = get_order(options.joint_order, options.robot)
        if len(order.joints) != width:
            found_joints = f"joints: found {width}, expected {len(order.joints)}"
            raise InputFileError(clip.path, f"{found_joints} for {options.joint_order}")
        return (order,)
    found = orders_of_width(width, options.robot)
    if options.dof_set is not None and width == _AMBIGUOUS_WIDTH:
        return tuple(order for order in found if order.name.startswith(options.dof_set))
    if not found:
        raise InputFileError(
            clip.path,
            f"joints: found {width} without names, expected 23, 27 or 29 (G1); name another robot with --robot",
        )
    return found


def _by_local_bodies(clip: RobotClip, candidates: tuple[JointOrder, ...], angle_unit: str) -> tuple[JointOrder, ...]:
    """The one order that puts the links where the file's bodies are as seen from the root, where it stores those."""
    figures = local_distances(clip, candidates, angle_unit)
    fitting = [order for order in candidates if figures.get(order.name, float("inf")) <= SAME_MM]
    return (fitting[0],) if len(fitting) == 1 else candidates


def _named(clip: RobotClip, options: Options) -> JointOrder:
    names = clip.joint_names or ()
    robots = (options.robot,) if options.robot else ("g1_23dof", "g1_29dof")
    for robot in robots:
        if set(names) <= set(get_profile(robot).joint_names):
            return JointOrder("named", tuple(names), robot)
    profile = get_profile(robots[-1])
    unknown = [name for name in names if name not in profile.joint_names]
    raise InputFileError(
        clip.path,
        f"joint_names: found {', '.join(unknown)}, expected joints of {profile.name} "
        f"({', '.join(profile.joint_names)}); name another robot with --robot",
    )


def _without_body(
    by_body: Mapping[tuple[str, str, str], float], quats: tuple[str, ...]
) -> dict[tuple[str, str], float]:
    """The best body order's figure for each (joint order, quaternion order)."""
    out: dict[tuple[str, str], float] = {}
    for (joint, _, quat), value in by_body.items():
        if quat in quats:
            out[joint, quat] = min(value, out.get((joint, quat), float("inf")))
    return out or {(joint, quat): value for (joint, _, quat), value in by_body.items()}


def _decide_quat(clip: RobotClip, options: Options, weights: _Weights, joint: str) -> Decision:
    if options.quat_order is not None:
        return given(_QUAT, options.quat_order, "the option says so", "--quat-order")
    figures = weights.of_quats(joint)
    found = least(_QUAT, figures, weights.unit, weights.how, "--quat-order", weights.share, weights.apart)
    return _with_format_word(found, clip.declared.quat_order, figures, "--quat-order")


def _decide_joint(
    clip: RobotClip, options: Options, weights: _Weights, candidates: tuple[JointOrder, ...], quat: str
) -> Decision:
    if clip.joint_names is not None:
        return given(_JOINT, "named", "the file names its joints", "--joint-order")
    if len(candidates) == 1:
        how = "the option says so" if options.joint_order else "the only one that fits"
        return given(_JOINT, candidates[0].name, how, "--joint-order")
    figures = weights.of_joints(quat)
    option = "--dof-set asap23|unitree23" if clip.joint_pos.shape[1] == _AMBIGUOUS_WIDTH else "--joint-order"
    found = least(_JOINT, figures, weights.unit, weights.how, option, weights.share, weights.apart)
    if found.answer is None and options.dof_set is not None:
        return given(_JOINT, options.dof_set, "the option says so", option)
    several_sets = len({order.robot for order in candidates}) > 1
    if several_sets and weights.unit != "mm" and clip.declared.joint_order is None:
        how = "23 nameless joints: asap23 (whole waist) or unitree23 (waist yaw, wrist roll); nothing proves which"
        return replace(found, answer=None, how=how)
    return _with_format_word(found, clip.declared.joint_order, figures, option)


def _with_format_word(found: Decision, declared: str | None, figures: Mapping[str, float], option: str) -> Decision:
    """The format's word, unless the evidence is against it by far."""
    if declared is None or declared not in figures:
        return found
    if found.answer not in (None, declared) and found.figure <= _CONTRADICTS * figures[declared]:
        return replace(found, how=f"{found.how}, against the format, which says {declared}")
    if found.answer == declared:
        return replace(found, how=f"the format says so; {found.how}")
    return replace(
        given(found.question, declared, "the format says so", option), figure=figures[declared], unit=found.unit
    )


def _decide_body(
    by_body: Mapping[tuple[str, str, str], float], joint: str, quat: str
) -> tuple[tuple[Decision, ...], str | None, float | None]:
    figures = {body: value for (j, body, q), value in by_body.items() if (j, q) == (joint, quat)}
    if not figures:
        return (), None, None
    best = min(figures, key=lambda name: figures[name])
    if figures[best] <= SAME_MM:
        found = least(_BODY, figures, "mm", "links from bodies", "--joint-order", _BODY_SHARE, 0.0)
        return (replace(found, answer=best),), best, figures[best]
    if figures[best] <= OTHER_MODEL_MM:
        found = least(_BODY, figures, "mm", "links from bodies of another model", "--joint-order", _BODY_SHARE, 0.0)
        return (replace(found, answer=best),), best, figures[best]
    closest = min(by_body, key=lambda key: by_body[key])
    how = f"best match {closest[0]} {by_body[closest]:.0f} mm, expected at most {SAME_MM:.0f} mm"
    return (Decision(_BODY, None, by_body[closest], None, float("inf"), how, "--joint-order", "mm"),), None, None
