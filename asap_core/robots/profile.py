"""What the product knows of a robot: link tree, joint limits and gains, tracked links, collision shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import unknown_name

Float64 = NDArray[np.float64]
Index = NDArray[np.intp]
Vector = tuple[float, float, float]
Quat = tuple[float, float, float, float]


@dataclass(frozen=True)
class Link:
    """A rigid body. Its joint, if any, turns about an axis through its own origin.

    Attributes:
        parent: name of the parent link, None for the root.
        pos, quat: frame at zero joint angle in the parent's frame, m and wxyz.
        joint, axis: hinge name and its unit axis in the link's frame; None for the root and for fixed bodies.
        mass: kg. com: centre of mass in the link's frame, m.
        inertia_quat, inertia: principal frame wxyz and principal moments about the centre of mass, kg m².
    """

    name: str
    parent: str | None
    pos: Vector
    quat: Quat
    joint: str | None
    axis: Vector | None
    mass: float
    com: Vector
    inertia_quat: Quat
    inertia: Vector


@dataclass(frozen=True)
class VirtualLink:
    """A massless tracked point, level with its parent's frame at `offset` (m) in that frame."""

    name: str
    parent: str
    offset: Vector


@dataclass(frozen=True)
class Shape:
    """A collision primitive in its link's frame, m: a sphere or box at `pos`, a capsule from `pos` to `end`.

    `size` is (radius,) for spheres and capsules and the three half edges for boxes.
    """

    link: str
    kind: Literal["sphere", "capsule", "box"]
    pos: Vector
    size: tuple[float, ...]
    end: Vector | None = None


@dataclass(frozen=True, eq=False)
class RobotProfile:
    """A robot. Joints and links are addressed by name; arrays over joints follow `joint_names`.

    Attributes:
        links: bodies that have their own pose, root first, each after its parent.
        fixed_links: bodies welded to a link; they only carry mass.
        virtual_links: massless tracked points; they follow the links in `link_names`.
        joint_lower, joint_upper, default_joint_pos: (J,) rad.
        joint_velocity_limit: (J,) rad/s. joint_torque_limit: (J,) N m.
        kp, kd: (J,) drive gains, N m/rad and N m s/rad.
        torso_link: link that bears the shoulders.
        foot_links: links that stand, and sole_points (F, S, 3) their ground contact points in their frames, m.
        lower_body_links, upper_body_links, tracking_links: groups used by rewards and metrics.
        correspondences: (link, SMPL joint) pairs of the released code; paper_correspondences: those of the paper.
        shapes: collision primitives. collision_excludes: link pairs that never collide with each other.
    """

    name: str
    links: tuple[Link, ...]
    fixed_links: tuple[Link, ...]
    virtual_links: tuple[VirtualLink, ...]
    joint_lower: Float64
    joint_upper: Float64
    joint_velocity_limit: Float64
    joint_torque_limit: Float64
    kp: Float64
    kd: Float64
    default_joint_pos: Float64
    torso_link: str
    foot_links: tuple[str, ...]
    sole_points: Float64
    lower_body_links: tuple[str, ...]
    upper_body_links: tuple[str, ...]
    tracking_links: tuple[str, ...]
    correspondences: tuple[tuple[str, str], ...]
    paper_correspondences: tuple[tuple[str, str], ...]
    shapes: tuple[Shape, ...]
    collision_excludes: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        per_joint = (
            "joint_lower",
            "joint_upper",
            "joint_velocity_limit",
            "joint_torque_limit",
            "kp",
            "kd",
            "default_joint_pos",
        )
        for field in per_joint:
            if getattr(self, field).shape != (self.num_joints,):
                found = getattr(self, field).shape
                raise ValueError(f"robot {self.name}: {field} has shape {found}, expected ({self.num_joints},)")
        for field in (*per_joint, "sole_points"):
            getattr(self, field).setflags(write=False)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """The J joints in tree order."""
        return tuple(link.joint for link in self.links if link.joint is not None)

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """The L links: bodies first, virtual ones last."""
        return tuple(link.name for link in self.links) + tuple(point.name for point in self.virtual_links)

    @property
    def num_joints(self) -> int:
        """J."""
        return len(self.joint_names)

    @property
    def num_links(self) -> int:
        """L, virtual links included."""
        return len(self.link_names)

    def joint_index(self, name: str) -> int:
        """Place of a joint in `joint_names`.

        Raises:
            UnknownNameError: no such joint; the text lists the valid ones.
        """
        if name not in self.joint_names:
            raise unknown_name("joint", name, self.joint_names)
        return self.joint_names.index(name)

    def link_index(self, name: str) -> int:
        """Place of a link in `link_names`.

        Raises:
            UnknownNameError: no such link; the text lists the valid ones.
        """
        if name not in self.link_names:
            raise unknown_name("link", name, self.link_names)
        return self.link_names.index(name)

    def link_indices(self, names: Iterable[str]) -> Index:
        """Places of several links in `link_names`, (n,)."""
        return np.array([self.link_index(name) for name in names], dtype=np.intp)

    @cached_property
    def foot_index(self) -> Index:
        """(F,) places of `foot_links`."""
        return self.link_indices(self.foot_links)

    @cached_property
    def lower_body_index(self) -> Index:
        """Places of `lower_body_links`."""
        return self.link_indices(self.lower_body_links)

    @cached_property
    def upper_body_index(self) -> Index:
        """Places of `upper_body_links`."""
        return self.link_indices(self.upper_body_links)

    @cached_property
    def tracking_index(self) -> Index:
        """Places of `tracking_links` (hands and head, the "VR three points")."""
        return self.link_indices(self.tracking_links)

    def action_scale_from_torque(self) -> Float64:
        """(J,) rad per unit action such that one unit asks for a quarter of the torque limit: 0.25 torque / kp."""
        return 0.25 * self.joint_torque_limit / self.kp


def breadth_first(robot: RobotProfile) -> tuple[str, ...]:
    """The robot's links level by level, as PhysX and Isaac Lab number them."""
    level = [robot.links[0].name]
    out: list[str] = []
    while level:
        out += level
        level = [link.name for parent in level for link in robot.links if link.parent == parent]
    return tuple(out)
