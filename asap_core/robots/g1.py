"""Unitree G1 with 29-DoF body and locked wrists: 23 joints, 24 links, hands and head as virtual links.

Figures: Unitree's published model `g1_29dof_anneal_23dof` (frames, inertials, limits, foot contact points), and the
drive gains, velocity limits and default pose of ASAP (arXiv 2502.01143 and its released configuration).
Collision shapes other than the feet are our own primitives.
"""

from __future__ import annotations

import numpy as np

from asap_core.robots.profile import Link, Quat, RobotProfile, Shape, Vector, VirtualLink

_LEVEL: Quat = (1, 0, 0, 0)
X: Vector = (1, 0, 0)
Y: Vector = (0, 1, 0)
Z: Vector = (0, 0, 1)


def _link(
    name: str,
    parent: str | None,
    pos: Vector,
    quat: Quat,
    axis: Vector | None,
    mass: float,
    com: Vector,
    inertia_quat: Quat,
    inertia: Vector,
) -> Link:
    """A link whose joint, if it has an axis, bears its name, save the torso's, which is the waist pitch."""
    stem = "waist_pitch" if name == "torso_link" else name.removesuffix("_link")
    joint = None if axis is None else f"{stem}_joint"
    return Link(name, parent, pos, quat, joint, axis, mass, com, inertia_quat, inertia)


# name, parent, position and orientation in the parent (m, wxyz), joint axis,
# mass (kg), centre of mass (m), principal frame (wxyz), principal moments (kg m²)
# fmt: off
_LINKS = (
    _link("pelvis", None,
          (0, 0, 0), _LEVEL, None,
          3.813, (0, 0, -0.07605), (1, 0, -0.000399148, 0),
          (0.010549, 0.0093089, 0.0079184)),
    _link("left_hip_pitch_link", "pelvis",
          (0, 0.064452, -0.1027), _LEVEL, Y,
          1.35, (0.002741, 0.047791, -0.02606), (0.954862, 0.293964, 0.0302556, 0.030122),
          (0.00181517, 0.00153422, 0.00116212)),
    _link("left_hip_roll_link", "left_hip_pitch_link",
          (0, 0.052, -0.030465), (0.996179, 0, -0.0873386, 0), X,
          1.52, (0.029812, -0.001045, -0.087934), (0.977808, -1.97119e-05, 0.205576, -0.0403793),
          (0.00254986, 0.00241169, 0.00148755)),
    _link("left_hip_yaw_link", "left_hip_roll_link",
          (0.025001, 0, -0.12412), _LEVEL, Z,
          1.702, (-0.057709, -0.010981, -0.15078), (0.600598, 0.15832, 0.223482, 0.751181),
          (0.00776166, 0.00717575, 0.00160139)),
    _link("left_knee_link", "left_hip_yaw_link",
          (-0.078273, 0.0021489, -0.17734), (0.996179, 0, 0.0873386, 0), Y,
          1.932, (0.005457, 0.003964, -0.12074), (0.923418, -0.0327699, 0.0158246, 0.382067),
          (0.0113804, 0.0112778, 0.00146458)),
    _link("left_ankle_pitch_link", "left_knee_link",
          (0, -9.4445e-05, -0.30001), _LEVEL, Y,
          0.074, (-0.007269, 0, 0.011137), (0.603053, 0.369225, 0.369225, 0.603053),
          (1.89e-05, 1.40805e-05, 6.9195e-06)),
    _link("left_ankle_roll_link", "left_ankle_pitch_link",
          (0, 0, -0.017558), _LEVEL, X,
          0.608, (0.026505, 0, -0.016425), (-0.000481092, 0.728482, -0.000618967, 0.685065),
          (0.00167218, 0.0016161, 0.000217621)),
    _link("right_hip_pitch_link", "pelvis",
          (0, -0.064452, -0.1027), _LEVEL, Y,
          1.35, (0.002741, -0.047791, -0.02606), (0.954862, -0.293964, 0.0302556, -0.030122),
          (0.00181517, 0.00153422, 0.00116212)),
    _link("right_hip_roll_link", "right_hip_pitch_link",
          (0, -0.052, -0.030465), (0.996179, 0, -0.0873386, 0), X,
          1.52, (0.029812, 0.001045, -0.087934), (0.977808, 1.97119e-05, 0.205576, 0.0403793),
          (0.00254986, 0.00241169, 0.00148755)),
    _link("right_hip_yaw_link", "right_hip_roll_link",
          (0.025001, 0, -0.12412), _LEVEL, Z,
          1.702, (-0.057709, 0.010981, -0.15078), (0.751181, 0.223482, 0.15832, 0.600598),
          (0.00776166, 0.00717575, 0.00160139)),
    _link("right_knee_link", "right_hip_yaw_link",
          (-0.078273, -0.0021489, -0.17734), (0.996179, 0, 0.0873386, 0), Y,
          1.932, (0.005457, -0.003964, -0.12074), (0.923439, 0.0345276, 0.0116333, -0.382012),
          (0.011374, 0.0112843, 0.00146452)),
    _link("right_ankle_pitch_link", "right_knee_link",
          (0, 9.4445e-05, -0.30001), _LEVEL, Y,
          0.074, (-0.007269, 0, 0.011137), (0.603053, 0.369225, 0.369225, 0.603053),
          (1.89e-05, 1.40805e-05, 6.9195e-06)),
    _link("right_ankle_roll_link", "right_ankle_pitch_link",
          (0, 0, -0.017558), _LEVEL, X,
          0.608, (0.026505, 0, -0.016425), (0.000481092, 0.728482, 0.000618967, 0.685065),
          (0.00167218, 0.0016161, 0.000217621)),
    _link("waist_yaw_link", "pelvis",
          (0, 0, 0), _LEVEL, Z,
          0.244, (0.003964, 0, 0.018769), (-0.0178291, 0.628464, 0.0282471, 0.777121),
          (0.000158561, 0.000124229, 9.67669e-05)),
    _link("waist_roll_link", "waist_yaw_link",
          (-0.0039635, 0, 0.035), _LEVEL, X,
          0.047, (0, -0.000236, 0.010111), (0.99979, 0.020492, 0, 0),
          (7.515e-06, 6.40206e-06, 3.98394e-06)),
    _link("torso_link", "waist_roll_link",
          (0, 0, 0.019), _LEVEL, Y,
          9.598, (0.00331658, 0.000261533, 0.179856), (0.999831, 0.000376204, 0.0179895, -0.00377704),
          (0.12407, 0.111951, 0.0325382)),
    _link("left_shoulder_pitch_link", "torso_link",
          (0.0039563, 0.10022, 0.23778), (0.990264, 0.139201, 1.38722e-05, -9.86868e-05), Y,
          0.718, (0, 0.035892, -0.011628), (0.654152, 0.0130458, -0.326267, 0.68225),
          (0.000465864, 0.000432842, 0.000406394)),
    _link("left_shoulder_roll_link", "left_shoulder_pitch_link",
          (0, 0.038, -0.013831), (0.990268, -0.139172, 0, 0), X,
          0.643, (-0.000227, 0.00727, -0.063243), (0.701256, -0.0196223, -0.00710317, 0.712604),
          (0.000691311, 0.000618011, 0.000388977)),
    _link("left_shoulder_yaw_link", "left_shoulder_roll_link",
          (0, 0.00624, -0.1032), _LEVEL, Z,
          0.734, (0.010773, -0.002949, -0.072009), (0.716879, -0.0964829, -0.0679942, 0.687134),
          (0.00106187, 0.00103217, 0.000400661)),
    _link("left_elbow_link", "left_shoulder_yaw_link",
          (0.015783, 0, -0.080518), _LEVEL, Y,
          0.6, (0.064956, 0.004454, -0.010062), (0.541765, 0.636132, 0.388821, 0.388129),
          (0.000443035, 0.000421612, 0.000259353)),
    _link("right_shoulder_pitch_link", "torso_link",
          (0.0039563, -0.10021, 0.23778), (0.990264, -0.139201, 1.38722e-05, 9.86868e-05), Y,
          0.718, (0, -0.035892, -0.011628), (0.68225, -0.326267, 0.0130458, 0.654152),
          (0.000465864, 0.000432842, 0.000406394)),
    _link("right_shoulder_roll_link", "right_shoulder_pitch_link",
          (0, -0.038, -0.013831), (0.990268, 0.139172, 0, 0), X,
          0.643, (-0.000227, -0.00727, -0.063243), (0.712604, -0.00710317, -0.0196223, 0.701256),
          (0.000691311, 0.000618011, 0.000388977)),
    _link("right_shoulder_yaw_link", "right_shoulder_roll_link",
          (0, -0.00624, -0.1032), _LEVEL, Z,
          0.734, (0.010773, 0.002949, -0.072009), (0.687134, -0.0679942, -0.0964829, 0.716879),
          (0.00106187, 0.00103217, 0.000400661)),
    _link("right_elbow_link", "right_shoulder_yaw_link",
          (0.015783, 0, -0.080518), _LEVEL, Y,
          0.6, (0.064956, -0.004454, -0.010062), (0.388129, 0.388821, 0.636132, 0.541765),
          (0.000443035, 0.000421612, 0.000259353)),
)

# The locked wrists with the rubber hands: welded, they only carry mass.
_WRISTS = (
    _link("left_wrist_roll_link", "left_elbow_link",
          (0.1, 0.00188791, -0.01), _LEVEL, None,
          0.085445, (0.0171394, 0.000537591, 4.8864e-07), (0.575338, 0.411667, -0.574906, 0.411094),
          (5.48211e-05, 4.96646e-05, 3.57798e-05)),
    _link("left_wrist_pitch_link", "left_wrist_roll_link",
          (0.038, 0, 0), _LEVEL, None,
          0.48405, (0.0229999, -0.00111685, -0.00111658), (0.249998, 0.661363, 0.293036, 0.643608),
          (0.000430353, 0.000429873, 0.000164648)),
    _link("left_wrist_yaw_link", "left_wrist_pitch_link",
          (0.046, 0, 0), _LEVEL, None,
          0.254576, (0.0708244, 0.000191745, 0.00161742), (0.510571, 0.526295, 0.468078, 0.493188),
          (0.000646113, 0.000559993, 0.000147566)),
    _link("right_wrist_roll_link", "right_elbow_link",
          (0.1, -0.00188791, -0.01), _LEVEL, None,
          0.085445, (0.0171394, -0.000537591, 4.8864e-07), (0.411667, 0.575338, -0.411094, 0.574906),
          (5.48211e-05, 4.96646e-05, 3.57798e-05)),
    _link("right_wrist_pitch_link", "right_wrist_roll_link",
          (0.038, 0, 0), _LEVEL, None,
          0.48405, (0.0229999, 0.00111685, -0.00111658), (0.643608, 0.293036, 0.661363, 0.249998),
          (0.000430353, 0.000429873, 0.000164648)),
    _link("right_wrist_yaw_link", "right_wrist_pitch_link",
          (0.046, 0, 0), _LEVEL, None,
          0.254576, (0.0708244, -0.000191745, 0.00161742), (0.493188, 0.468078, 0.526295, 0.510571),
          (0.000646113, 0.000559993, 0.000147566)),
)

# Per joint: velocity limit (rad/s), torque limit (N m), kp (N m/rad), kd (N m s/rad), default (rad); both sides alike.
_DRIVES = {
    "hip_pitch":      (32,  88, 100, 2.5, -0.1),
    "hip_roll":       (32,  88, 100, 2.5,  0.0),
    "hip_yaw":        (32,  88, 100, 2.5,  0.0),
    "knee":           (20, 139, 200, 5.0,  0.3),
    "ankle_pitch":    (37,  50,  20, 0.2, -0.2),
    "ankle_roll":     (37,  50,  20, 0.1,  0.0),
    "waist_yaw":      (32,  88, 400, 5.0,  0.0),
    "waist_roll":     (37,  50, 400, 5.0,  0.0),
    "waist_pitch":    (37,  50, 400, 5.0,  0.0),
    "shoulder_pitch": (37,  25,  90, 2.0,  0.0),
    "shoulder_roll":  (37,  25,  60, 1.0,  0.0),
    "shoulder_yaw":   (37,  25,  20, 0.4,  0.0),
    "elbow":          (37,  25,  60, 1.0,  0.0),
}

# Per joint: lower and upper limit (rad); those that mirror are given for the left side.
_LIMITS = {
    "hip_pitch":      (-2.5307,   2.8798),
    "hip_roll":       (-0.5236,   2.9671),
    "hip_yaw":        (-2.7576,   2.7576),
    "knee":           (-0.087267, 2.8798),
    "ankle_pitch":    (-0.87267,  0.5236),
    "ankle_roll":     (-0.2618,   0.2618),
    "waist_yaw":      (-2.618,    2.618),
    "waist_roll":     (-0.52,     0.52),
    "waist_pitch":    (-0.52,     0.52),
    "shoulder_pitch": (-3.0892,   2.6704),
    "shoulder_roll":  (-1.5882,   2.2515),
    "shoulder_yaw":   (-2.618,    2.618),
    "elbow":          (-1.0472,   2.0944),
}
# fmt: on
_MIRRORED = ("hip_roll", "shoulder_roll")

_VIRTUAL_LINKS = (
    VirtualLink("left_hand_link", "left_elbow_link", (0.25, 0, 0)),
    VirtualLink("right_hand_link", "right_elbow_link", (0.25, 0, 0)),
    VirtualLink("head_link", "torso_link", (0, 0, 0.42)),
)

_FOOT_LINKS = ("left_ankle_roll_link", "right_ankle_roll_link")
# Published contact spheres of one foot: centres in its frame and radius, m.
_FOOT_SPHERES: tuple[Vector, ...] = (
    (-0.05, 0.025, -0.03),
    (-0.05, -0.025, -0.03),
    (0.12, 0.03, -0.03),
    (0.12, -0.03, -0.03),
)
_FOOT_RADIUS = 0.005

# SMPL joints that each side's links follow (spec of the released configuration; the paper counts twelve links).
_SIDE_CORRESPONDENCES = (
    ("hip_pitch_link", "Hip"),
    ("knee_link", "Knee"),
    ("ankle_roll_link", "Ankle"),
    ("shoulder_roll_link", "Shoulder"),
    ("elbow_link", "Elbow"),
    ("hand_link", "Hand"),
)


def _kind(joint: str) -> str:
    """A joint's name without side and suffix, the key of the tables above."""
    return joint.removesuffix("_joint").removeprefix("left_").removeprefix("right_")


def _limits(joint: str) -> tuple[float, float]:
    lower, upper = _LIMITS[_kind(joint)]
    return (-upper, -lower) if joint.startswith("right_") and _kind(joint) in _MIRRORED else (lower, upper)


def _shapes() -> tuple[Shape, ...]:
    shapes = [
        Shape("pelvis", "capsule", (0, -0.05, -0.07), (0.07,), end=(0, 0.05, -0.07)),
        Shape("torso_link", "box", (0, 0, 0.16), (0.07, 0.09, 0.14)),
        Shape("torso_link", "sphere", (0.01, 0, 0.39), (0.08,)),
    ]
    for side in ("left", "right"):
        shapes += [
            Shape(f"{side}_hip_yaw_link", "capsule", (-0.02, 0, -0.02), (0.05,), end=(-0.07, 0, -0.15)),
            Shape(f"{side}_knee_link", "capsule", (0, 0, -0.02), (0.045,), end=(0, 0, -0.25)),
            Shape(f"{side}_shoulder_yaw_link", "capsule", (0, 0, 0), (0.035,), end=(0.005, 0, -0.06)),
            Shape(f"{side}_elbow_link", "capsule", (0.02, 0, -0.01), (0.03,), end=(0.18, 0, -0.01)),
            Shape(f"{side}_elbow_link", "sphere", (0.25, 0, -0.01), (0.04,)),
        ]
        shapes += [Shape(f"{side}_ankle_roll_link", "sphere", centre, (_FOOT_RADIUS,)) for centre in _FOOT_SPHERES]
    return tuple(shapes)


def _collision_excludes() -> tuple[tuple[str, str], ...]:
    """Neighbours whose primitives come close at joint limits; links and their direct parents never collide anyway."""
    pairs = [("pelvis", "torso_link")]
    for side in ("left", "right"):
        pairs += [
            ("pelvis", f"{side}_hip_yaw_link"),
            (f"{side}_knee_link", f"{side}_ankle_roll_link"),
            ("torso_link", f"{side}_shoulder_yaw_link"),
        ]
    return tuple(pairs)


def _paper_correspondences() -> tuple[tuple[str, str], ...]:
    return tuple(
        (f"{side}_{link}", f"{letter}_{joint}")
        for side, letter in (("left", "L"), ("right", "R"))
        for link, joint in _SIDE_CORRESPONDENCES
    )


def build_profile() -> RobotProfile:
    """The `g1_23dof` profile; take it from `asap_core.robots.get_profile`."""
    joints = [link.joint for link in _LINKS if link.joint is not None]
    drives = np.array([_DRIVES[_kind(joint)] for joint in joints], dtype=np.float64)
    limits = np.array([_limits(joint) for joint in joints], dtype=np.float64)
    names = [link.name for link in _LINKS]
    upper = [name for name in names if "shoulder" in name or "elbow" in name]
    tracking = tuple(link.name for link in _VIRTUAL_LINKS)
    sole = np.array(_FOOT_SPHERES) - (0.0, 0.0, _FOOT_RADIUS)
    paper = _paper_correspondences()
    return RobotProfile(
        name="g1_23dof",
        links=_LINKS,
        fixed_links=_WRISTS,
        virtual_links=_VIRTUAL_LINKS,
        joint_lower=limits[:, 0].copy(),
        joint_upper=limits[:, 1].copy(),
        joint_velocity_limit=drives[:, 0].copy(),
        joint_torque_limit=drives[:, 1].copy(),
        kp=drives[:, 2].copy(),
        kd=drives[:, 3].copy(),
        default_joint_pos=drives[:, 4].copy(),
        torso_link="torso_link",
        foot_links=_FOOT_LINKS,
        sole_points=np.stack([sole, sole]),
        lower_body_links=tuple(name for name in names if name not in upper),
        upper_body_links=(*upper, *tracking),
        tracking_links=tracking,
        correspondences=(("pelvis", "Pelvis"), *paper, ("head_link", "Head")),
        paper_correspondences=paper,
        shapes=_shapes(),
        collision_excludes=_collision_excludes(),
    )
