"""`retarget`: a `HumanMotion` becomes a `RobotMotion` that stands on the ground (paper section III-A, rebuilt)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

from asap_core.motions.human import HumanMotion
from asap_core.motions.robot import RobotMotion
from asap_core.motions.skeleton import INDEX, REST_TO_WORLD, leg_length
from asap_core.retargeting.contacts import detect_contacts, ground_shift
from asap_core.retargeting.figures import retarget_figures
from asap_core.retargeting.proportions import robot_skeleton
from asap_core.retargeting.settings import RetargetSettings
from asap_core.retargeting.solver import Targets, Trajectory, solve
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array


def retarget(
    motion: HumanMotion, profile: RobotProfile, settings: RetargetSettings
) -> tuple[RobotMotion, dict[str, float]]:
    """Retarget a clip at its own frame rate.

    The person gets the robot's bone lengths and a root path scaled by the legs, is put on the ground by its standing
    feet, and all frames are then solved at once.

    Returns:
        The robot's motion, and its figures (see `retarget_figures`).
    """
    kinematics = Kinematics(profile)
    rotations = motion.global_rotations()
    joints = proportioned_joints(motion, rotations, robot_skeleton(profile))
    contacts = detect_contacts(joints, motion.fps, settings.contact_speed, settings.contact_height)
    joints[..., 2] += ground_shift(joints, contacts, -float(profile.sole_points[..., 2].min()))
    targets = _targets(motion.fps, joints, rotations, contacts, profile, settings)
    start = _start(joints[:, INDEX["Pelvis"]], rotations[:, INDEX["Pelvis"]], profile)
    solved = solve(kinematics, targets, start, settings)
    root_pos, root_quat, joint_pos = solved.root_pos, solved.root_quat, solved.joint_pos
    figures = retarget_figures(
        kinematics, root_pos, root_quat, joint_pos, joints, targets.links, targets.positions, motion.fps
    )
    robot_motion = RobotMotion(
        name=motion.name,
        robot=profile.name,
        fps=motion.fps,
        root_pos=root_pos,
        root_quat=root_quat,
        joint_names=profile.joint_names,
        joint_pos=joint_pos,
        source=motion.source,
        screening=motion.screening,
    )
    return robot_motion, figures


def proportioned_joints(motion: HumanMotion, rotations: Array, skeleton: Array) -> Array:
    """Joint positions (T, 24, 3) of the person with the robot's proportions, its path starting where it started."""
    scale = leg_length(skeleton) / leg_length(motion.skeleton)
    origin = motion.root_translation[0] * (1.0, 1.0, 0.0)
    scaled = HumanMotion(
        motion.name,
        motion.fps,
        motion.joint_rotations,
        (motion.root_translation - origin) * scale + origin,
        skeleton,
        motion.source,
    )
    return scaled.joint_positions(rotations)


def _level(rotations: Array, joint: str) -> Array:
    """World rotations (T, 3, 3) of a robot link (x forward, z up) that is turned as this SMPL joint is."""
    return rotations[:, INDEX[joint]] @ REST_TO_WORLD.T


def _targets(
    fps: float,
    joints: Array,
    rotations: Array,
    contacts: NDArray[np.bool_],
    profile: RobotProfile,
    settings: RetargetSettings,
) -> Targets:
    pairs = profile.correspondences if settings.correspondences == "released" else profile.paper_correspondences
    feet = zip(profile.foot_index, ("L_Ankle", "R_Ankle"), strict=True)
    orientations = (
        (0, _level(rotations, "Pelvis"), settings.pelvis_orientation),
        (profile.link_index(profile.torso_link), _level(rotations, "Chest"), settings.torso_orientation),
        *((int(foot), _level(rotations, ankle), settings.foot_orientation) for foot, ankle in feet),
    )
    return Targets(
        fps=fps,
        links=profile.link_indices(link for link, _ in pairs),
        positions=joints[:, [INDEX[joint] for _, joint in pairs]],
        orientations=orientations,
        sole_contact=_sole_contact(contacts, profile, fps),
    )


def _sole_contact(contacts: NDArray[np.bool_], profile: RobotProfile, fps: float) -> Array:
    """(T, F * S): heel points follow the heel's contact, the others the toe's; it sets in and ends smoothly."""
    columns = []
    for foot, points in enumerate(profile.sole_points):
        columns += [2 * foot + int(point[0] > 0) for point in points]
    hard = contacts[:, columns].astype(float)
    return np.asarray(gaussian_filter1d(hard, fps / 30.0, axis=0, mode="nearest")) * hard


def _start(pelvis: Array, rotations: Array, profile: RobotProfile) -> Trajectory:
    """The default pose carried along the person's pelvis."""
    quat = Rotation.from_matrix(rotations @ REST_TO_WORLD.T).as_quat(scalar_first=True)
    joints = np.tile(np.asarray(profile.default_joint_pos, dtype=float), (len(pelvis), 1))
    return Trajectory(pelvis.copy(), quat, joints)
