"""Limits, gains and a standing pose of imported joints: the file's where it says them, else chosen and said."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asap_core.robots.importing.roles import Roles
from asap_core.robots.importing.tree import TreeBody, TreeJoint, rest_poses
from asap_core.robots.profile import Float64
from asap_core.rotations import Array

_TURN = np.pi
"""Limit of a joint that has none, rad."""
_SPEED = 30.0
"""rad/s."""
_TORQUE_PER_KG = {"leg": 3.0, "ankle": 1.5, "arm": 0.75}
"""N m per kg of the robot, of a joint without a torque limit; hips, knees and waist as `leg`. The G1's are 2.6 to 4.2
in hips and knees, 1.5 in the ankles and 0.75 in the arms."""
_KP_PER_TORQUE = 1.0
"""1/rad: full torque at an error of 1 rad, near what the G1's published gains are."""
_KD_PER_KP = 1 / 40
"""s, as the G1's published legs."""
_KNEE = 0.3
"""Bend of the knees while standing, rad."""


@dataclass(frozen=True)
class Drives:
    """Per joint, (J,) each, in tree order."""

    lower: Float64
    upper: Float64
    speed: Float64
    torque: Float64
    kp: Float64
    kd: Float64
    default: Float64


def choose_drives(bodies: tuple[TreeBody, ...], roles: Roles, chosen: list[str]) -> Drives:
    """The drives of all joints; what the file leaves open is filled in and said once a kind in `chosen`."""
    joints = [body.joint for body in bodies if body.joint is not None]
    mass = sum(body.mass for body in bodies)
    lower = _filled(joints, "lower", [-_TURN] * len(joints), f"limit ±{_TURN:.2f} rad", chosen)
    upper = _filled(joints, "upper", [_TURN] * len(joints), None, chosen)
    speed = _filled(joints, "speed", [_SPEED] * len(joints), f"speed limit {_SPEED:g} rad/s", chosen)
    limits = {part: round(mass * per_kg, 1) for part, per_kg in _TORQUE_PER_KG.items()}
    weight = "torque limit {leg:.0f} N m, {ankle:.0f} below the knees, {arm:.0f} in the arms".format(**limits)
    said = f"{weight} (3, 1.5 and 0.75 N m per kg of the robot)"
    torque = _filled(joints, "torque", [limits[part] for part in _parts(bodies, roles)], said, chosen)
    kp = _filled(joints, "kp", list(_KP_PER_TORQUE * torque), "kp of torque limit / 1 rad", chosen)
    kd = _filled(joints, "kd", list(_KD_PER_KP * kp), "kd of kp / 40", chosen)
    bent = _standing(bodies, roles)
    if all(joint.default is None for joint in joints):
        chosen.append(f"default pose: zero with the knees bent by {_KNEE} rad and the feet level")
    pose = [bent.get(j.name, 0.0) if j.default is None else j.default for j in joints]
    default = np.array(pose, dtype=np.float64)
    return Drives(lower, upper, speed, torque, kp, kd, np.clip(default, lower, upper))


def _filled(joints: list[TreeJoint], name: str, values: list[float], said: str | None, chosen: list[str]) -> Float64:
    silent = [joint.name for joint in joints if getattr(joint, name) is None]
    if silent and said:
        which = "all joints" if len(silent) == len(joints) else ", ".join(silent)
        chosen.append(f"{said} for {which}: the file says none")
    found = [v if getattr(j, name) is None else getattr(j, name) for j, v in zip(joints, values, strict=True)]
    return np.array(found, dtype=np.float64)


def _parts(bodies: tuple[TreeBody, ...], roles: Roles) -> list[str]:
    """Which of `_TORQUE_PER_KG` each joint is, in tree order."""
    parents = {body.name: body.parent for body in bodies}
    arms = set()
    for side in ("left", "right"):
        start: str | None = roles.bodies[f"{side}_shoulder"]
        while start is not None and start != roles.bodies["torso"]:
            arms.add(start)
            start = parents[start]
    knees = {roles.bodies["left_knee"], roles.bodies["right_knee"]}
    parts: dict[str | None, str] = {}
    for body in bodies:
        above = parts.get(body.parent, "leg")
        parts[body.name] = "arm" if body.name in arms else "ankle" if body.parent in knees else above
    return [parts[body.name] for body in bodies if body.joint is not None]


def _standing(bodies: tuple[TreeBody, ...], roles: Roles) -> dict[str, float]:
    """Joint name -> rad for bent knees: the knee's own axis says which way, hip and ankle pitch share the rest."""
    by_name = {body.name: body for body in bodies}
    poses = rest_poses(bodies)
    pose = {}
    for side in ("left", "right"):
        knee = by_name[roles.bodies[f"{side}_knee"]]
        bend = _KNEE * _pitch(knee, poses)
        if knee.joint is None or bend == 0.0:
            continue
        pose[knee.joint.name] = bend
        above = _pitch_joints(by_name, poses, knee.parent, roles.bodies["torso"])
        below = _pitch_joints(by_name, poses, roles.bodies[f"{side}_foot"], knee.name)
        for chain, share in ((above, -_KNEE / 3), (below, -2 * _KNEE / 3)):
            if chain:
                body = chain[-1]
                pose[body.joint.name] = share * _pitch(body, poses)  # type: ignore[union-attr]
    return pose


def _pitch(body: TreeBody, poses: dict[str, tuple[Array, Array]]) -> float:
    """+1 or -1 if the joint turns about ±y at rest, else 0."""
    if body.joint is None:
        return 0.0
    along = float((poses[body.name][1] @ body.joint.axis)[1])
    return float(np.sign(along)) if abs(along) > 0.9 else 0.0


def _pitch_joints(
    bodies: dict[str, TreeBody], poses: dict[str, tuple[Array, Array]], start: str | None, stop: str
) -> list[TreeBody]:
    """Bodies with a pitch joint from `start` upwards, below `stop`."""
    chain = []
    while start is not None and start != stop:
        if _pitch(bodies[start], poses):
            chain.append(bodies[start])
        start = bodies[start].parent
    return chain
