"""An SMPL-24 skeleton with the robot's own bone lengths, so that human poses reach what the robot can reach."""

from __future__ import annotations

import numpy as np

from asap_core.motions.skeleton import INDEX, PARENTS, REST_TO_WORLD, body_offsets, leg_length
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array

_QUARTER = np.pi / 2
# The SMPL pose that looks like the robot at zero angles: arms down, forearms forward (asap_method 2.2).
_POSE = {
    "L_Shoulder": (0.0, 0.0, -_QUARTER),
    "R_Shoulder": (0.0, 0.0, _QUARTER),
    "L_Elbow": (0.0, -_QUARTER, 0.0),
    "R_Elbow": (0.0, _QUARTER, 0.0),
}
_SPINE = ("Torso", "Spine", "Chest")


def robot_skeleton(profile: RobotProfile) -> Array:
    """Offsets (24, 3) of the SMPL joints at rest, m, such that they meet the corresponding links of the robot at zero.

    A limb that hangs otherwise at zero angles than in the pose that the G1 has there (arms down, forearms forward) only
    gives its length, to the direction of the free body's. Joints without a counterpart (spine, neck, thorax, wrist,
    toe) share the way between their neighbours in the proportions of the free body.
    """
    robot = _rest_positions(profile)
    world = _pose_rotations()
    body = body_offsets()

    def between(start: str, end: str) -> Array:
        return world[start].T @ (robot[end] - robot[start])

    offsets = body.copy()
    for side in ("L", "R"):
        offsets[INDEX[f"{side}_Hip"]] = between("Pelvis", f"{side}_Hip")
        for start, end in (("Hip", "Knee"), ("Knee", "Ankle"), ("Shoulder", "Elbow")):
            joint = INDEX[f"{side}_{end}"]
            offsets[joint] = _limb(between(f"{side}_{start}", f"{side}_{end}"), body[joint])
        forearm = _limb(between(f"{side}_Elbow", f"{side}_Hand"), body[INDEX[f"{side}_Wrist"]])
        wrist, hand = INDEX[f"{side}_Wrist"], INDEX[f"{side}_Hand"]
        share = _share(body, wrist, hand)
        offsets[wrist], offsets[hand] = share * forearm, (1 - share) * forearm
    for side in ("L", "R"):
        offsets[INDEX[f"{side}_Toe"]] *= leg_length(offsets) / leg_length(body)
    _fit_trunk(offsets, body, {name: between("Pelvis", name) for name in ("L_Shoulder", "R_Shoulder", "Head")})
    return offsets


def _rest_positions(profile: RobotProfile) -> dict[str, Array]:
    """SMPL joint name -> world position of its robot link at zero angles, m."""
    zero = np.zeros((1, profile.num_joints))
    poses = Kinematics(profile).forward(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0, 0.0]]), zero)
    return {joint: poses.pos[0, profile.link_index(link)] for link, joint in profile.correspondences}


def _pose_rotations() -> dict[str, Array]:
    """World rotation of each SMPL joint in `_POSE`, facing x."""
    from scipy.spatial.transform import Rotation

    world: dict[str, Array] = {}
    for name, joint in INDEX.items():
        parent = next((n for n, j in INDEX.items() if j == PARENTS[joint]), None)
        local = Rotation.from_rotvec(_POSE.get(name, (0.0, 0.0, 0.0))).as_matrix()
        world[name] = (REST_TO_WORLD if parent is None else world[parent]) @ local
    return world


def _limb(robot: Array, body: Array) -> Array:
    """The robot's limb, turned along the body's if they are more than 45 degrees apart."""
    length, along = np.linalg.norm(robot), body / np.linalg.norm(body)
    return robot if robot @ along > length * np.cos(_QUARTER / 2) else np.asarray(length * along)


def _share(body: Array, first: int, second: int) -> float:
    lengths = np.linalg.norm(body[[first, second]], axis=1)
    return float(lengths[0] / lengths.sum())


def _fit_trunk(offsets: Array, body: Array, target: dict[str, Array]) -> None:
    """Scale the spine to the robot's shoulder height and lead its chest to the shoulders and the head."""
    spine = [INDEX[name] for name in _SPINE]
    thorax = [INDEX[f"{side}_{name}"] for side in ("L", "R") for name in ("Thorax", "Shoulder")]
    human = body[spine].sum(axis=0) + body[thorax].sum(axis=0) / 2
    middle = (target["L_Shoulder"] + target["R_Shoulder"]) / 2
    offsets[spine] = body[spine] * (np.linalg.norm(middle) / np.linalg.norm(human))
    chest = offsets[spine].sum(axis=0)
    for inner, outer in (("L_Thorax", "L_Shoulder"), ("R_Thorax", "R_Shoulder"), ("Neck", "Head")):
        share = _share(body, INDEX[inner], INDEX[outer])
        way = target[outer] - chest
        offsets[INDEX[inner]], offsets[INDEX[outer]] = share * way, (1 - share) * way
