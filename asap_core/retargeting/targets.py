"""What the robot shall follow: the person's joints on the ground, its rotations, and where its soles stand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import INDEX, REST_TO_WORLD, leg_length
from asap_core.retargeting.contacts import detect_contacts, ground_shift
from asap_core.retargeting.proportions import robot_skeleton
from asap_core.retargeting.settings import RetargetSettings
from asap_core.robots.profile import Index, RobotProfile
from asap_core.rotations import Array


@dataclass(frozen=True)
class Targets:
    """What the robot shall do in T frames."""

    fps: float
    pelvis: Array
    """(T, 3) the person's pelvis, m: where the solver starts."""
    links: Index
    """(n,) links that follow."""
    positions: Array
    """(T, n, 3) where they shall be, m."""
    turned: Index
    """(m,) links whose orientation counts."""
    orientations: Array
    """(T, m, 4) how they shall be turned, wxyz."""
    turned_weights: Array
    """(m,)"""
    sole_contact: Array
    """(T, F, S) how firmly each sole point stands, 0 to 1."""

    def part(self, frames: slice) -> Targets:
        """Those of some frames, whose step sets the frame rate."""
        return replace(
            self,
            fps=self.fps / (frames.step or 1),
            pelvis=self.pelvis[frames],
            positions=self.positions[frames],
            orientations=self.orientations[frames],
            sole_contact=self.sole_contact[frames],
        )


def followed_person(motion: HumanMotion, profile: RobotProfile, settings: RetargetSettings) -> HumanMotion:
    """The person with the bone lengths that the robot follows, its path starting where it started."""
    skeleton = robot_skeleton(profile) if settings.body == "robot" else motion.skeleton
    scale = settings.path_scale or leg_length(skeleton) / leg_length(motion.skeleton)
    origin = motion.root_translation[0] * (1.0, 1.0, 0.0)
    return replace(motion, skeleton=skeleton, root_translation=(motion.root_translation - origin) * scale + origin)


def make_targets(person: HumanMotion, profile: RobotProfile, settings: RetargetSettings) -> Targets:
    """Put the followed person on the ground by its standing feet, and read off what the robot shall do."""
    rotations = person.global_rotations()
    joints = person.joint_positions(rotations)
    contacts = detect_contacts(joints, person.fps, settings.contact_speed, settings.contact_height)
    joints[..., 2] += ground_shift(joints, contacts, -float(profile.sole_points[..., 2].min()))
    pairs = profile.correspondences if settings.correspondences == "released" else profile.paper_correspondences
    turned = (0, profile.link_index(profile.torso_link), *profile.foot_index)
    weights = (settings.pelvis_orientation, settings.torso_orientation, *2 * (settings.foot_orientation,))
    return Targets(
        fps=person.fps,
        pelvis=joints[:, INDEX["Pelvis"]].copy(),
        links=profile.link_indices(link for link, _ in pairs),
        positions=joints[:, [INDEX[joint] for _, joint in pairs]],
        turned=np.array(turned, dtype=np.intp),
        orientations=_level(rotations[:, [INDEX[name] for name in ("Pelvis", "Chest", "L_Ankle", "R_Ankle")]]),
        turned_weights=np.array(weights),
        sole_contact=_sole_contact(contacts, profile, person.fps),
    )


def _level(rotations: Array) -> Array:
    """Orientations (..., 4) of robot links (x forward, z up) that are turned as SMPL joints (..., 3, 3) are."""
    flat = (rotations @ REST_TO_WORLD.T).reshape(-1, 3, 3)
    quat = Rotation.from_matrix(flat).as_quat(scalar_first=True)
    return np.asarray(quat).reshape(*rotations.shape[:-2], 4)


def _sole_contact(contacts: NDArray[np.bool_], profile: RobotProfile, fps: float) -> Array:
    """(T, F, S): heel points follow the heel's contact, the others the toe's; it sets in and ends smoothly."""
    columns = []
    for foot, points in enumerate(profile.sole_points):
        columns += [2 * foot + int(point[0] > 0) for point in points]
    hard = contacts[:, columns].astype(float)
    soft = np.asarray(gaussian_filter1d(hard, fps / 30.0, axis=0, mode="nearest")) * hard
    return soft.reshape(len(soft), *profile.sole_points.shape[:2])
