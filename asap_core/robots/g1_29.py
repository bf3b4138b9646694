"""Unitree G1 with all 29 joints, waist of revision 1.0: `g1_23dof` plus three wrist joints a side.

Figures: Unitree's published model `g1_29dof_rev_1_0` as shipped with mjlab 1.6.0 (Apache-2.0), which also gives the
wrists' velocity and torque limits and the rule for their gains (10 Hz, damping ratio 2). Everything else is that of
`g1_23dof`; the hand points and collision shapes keep their places at zero wrist angles.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from asap_core.robots import g1
from asap_core.robots.profile import Float64, Link, RobotProfile, Shape, Vector, VirtualLink

_TO_WRIST_YAW: Vector = (0.184, 0.00188791, -0.01)
"""Left wrist yaw link in the elbow's frame at zero angles, m; y is mirrored on the right."""

# The parts in which revision 1.0 differs from the model of `g1_23dof`:
# position in the parent (m), mass (kg), centre of mass (m), principal frame (wxyz), principal moments (kg m²)
# fmt: off
_REVISION_1_0: dict[str, dict[str, object]] = {
    "waist_yaw_link": {
        "mass": 0.214, "com": (0.003494, 0.000233, 0.018034),
        "inertia_quat": (0.289697, 0.591001, -0.337795, 0.672821),
        "inertia": (0.000163531, 0.000107714, 0.000102205)},
    "waist_roll_link": {
        "pos": (-0.0039635, 0, 0.044), "mass": 0.086, "com": (0, 2.3e-05, 0),
        "inertia_quat": (0.5, 0.5, -0.5, 0.5), "inertia": (8.245e-06, 7.079e-06, 6.339e-06)},
    "torso_link": {
        "pos": (0, 0, 0), "mass": 7.818, "com": (0.00203158, 0.000339683, 0.184568),
        "inertia_quat": (0.999803, -6.03319e-05, 0.0198256, 0.00131986),
        "inertia": (0.121847, 0.109825, 0.0273735)},
    "left_shoulder_pitch_link": {"pos": (0.0039563, 0.10022, 0.24778)},
    "right_shoulder_pitch_link": {"pos": (0.0039563, -0.10021, 0.24778)},
}

# Per joint: axis, lower and upper limit (rad), velocity (rad/s) and torque limit (N m), kp (N m/rad), kd (N m s/rad).
_WRISTS: dict[str, tuple[Vector, float, float, float, float, float, float]] = {
    "wrist_roll":  (g1.X, -1.97222, 1.97222, 37, 25, 14.25, 0.907),
    "wrist_pitch": (g1.Y, -1.61443, 1.61443, 22,  5, 16.78, 1.068),
    "wrist_yaw":   (g1.Z, -1.61443, 1.61443, 22,  5, 16.78, 1.068),
}
# fmt: on


def build_profile() -> RobotProfile:
    """The `g1_29dof` profile; take it from `asap_core.robots.get_profile`."""
    base = g1.build_profile()
    links = _links(base)
    joints = [link.joint for link in links if link.joint is not None]
    upper = tuple(link.name for link in links if any(part in link.name for part in ("shoulder", "elbow", "wrist")))
    return replace(
        base,
        name="g1_29dof",
        links=links,
        fixed_links=(),
        virtual_links=tuple(_hand(point) for point in base.virtual_links),
        joint_lower=_per_joint(base, joints, base.joint_lower, 1),
        joint_upper=_per_joint(base, joints, base.joint_upper, 2),
        joint_velocity_limit=_per_joint(base, joints, base.joint_velocity_limit, 3),
        joint_torque_limit=_per_joint(base, joints, base.joint_torque_limit, 4),
        kp=_per_joint(base, joints, base.kp, 5),
        kd=_per_joint(base, joints, base.kd, 6),
        default_joint_pos=_per_joint(base, joints, base.default_joint_pos, None),
        upper_body_links=(*upper, *base.tracking_links),
        shapes=tuple(_shape(shape) for shape in base.shapes),
    )


def _links(base: RobotProfile) -> tuple[Link, ...]:
    """All links depth first: each wrist's three after their elbow, now with their joints."""
    links: list[Link] = []
    for link in base.links:
        links.append(replace(link, **_REVISION_1_0.get(link.name, {})))  # type: ignore[arg-type]
        if link.name.endswith("_elbow_link"):
            side = link.name.split("_")[0]
            links += [_with_joint(wrist) for wrist in base.fixed_links if wrist.name.startswith(side)]
    return tuple(links)


def _with_joint(link: Link) -> Link:
    kind = link.name.removesuffix("_link").split("_", 1)[1]
    return replace(link, joint=f"{link.name.removesuffix('_link')}_joint", axis=_WRISTS[kind][0])


def _per_joint(base: RobotProfile, joints: list[str], values: Float64, column: int | None) -> Float64:
    """`values` of `base` with the wrists' own from a column of the table, or 0 without one."""
    known = dict(zip(base.joint_names, values, strict=True))
    wrists = {joint: _WRISTS[joint.removesuffix("_joint").split("_", 1)[1]] for joint in joints if joint not in known}
    return np.array([known[j] if j in known else 0.0 if column is None else wrists[j][column] for j in joints], float)


def _to_wrist(link: str, pos: Vector) -> tuple[str, Vector]:
    """A point of the elbow link that lies beyond the wrist, on the wrist yaw link."""
    side = link.split("_")[0]
    x, y, z = _TO_WRIST_YAW
    return f"{side}_wrist_yaw_link", (pos[0] - x, pos[1] - (y if side == "left" else -y), pos[2] - z)


def _hand(point: VirtualLink) -> VirtualLink:
    if not point.parent.endswith("_elbow_link"):
        return point
    parent, offset = _to_wrist(point.parent, point.offset)
    return replace(point, parent=parent, offset=offset)


def _shape(shape: Shape) -> Shape:
    if not (shape.link.endswith("_elbow_link") and shape.kind == "sphere"):
        return shape
    link, pos = _to_wrist(shape.link, shape.pos)
    return replace(shape, link=link, pos=pos)
