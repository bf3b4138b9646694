"""Named orders of a robot's joints, as files of one width may hold them.

`unitree29` is the order of the Unitree SDK, of the MJCF and URDF (depth first) and of the LAFAN1 CSV; `isaac29` is the
breadth-first one of Isaac Lab. Two reductions to 23 joints share their width and differ from the 14th joint on: ASAP
keeps the whole waist, Unitree's 23-joint robot keeps the waist yaw and one wrist joint a side.
"""

from __future__ import annotations

from dataclasses import dataclass

from asap_core.errors import unknown_name
from asap_core.robots import get_profile
from asap_core.robots.profile import breadth_first

_UNITREE_29 = get_profile("g1_29dof").joint_names
_ISAAC_29 = (
    0, 6, 12, 1, 7, 13, 2, 8, 14, 3, 9, 15, 22, 4, 10, 16, 23, 5, 11, 17, 24, 18, 25, 19, 26, 20, 27, 21, 28,
)  # fmt: skip
"""Place in the SDK order of each joint of the Isaac order (unitree_rl_lab #145)."""
_ASAP_23 = (*range(19), 22, 23, 24, 25)
_UNITREE_23 = (*range(13), *range(15, 20), *range(22, 27))
_UNITREE_27 = (*range(13), *range(15, 29))
"""The waist locked but for its yaw."""


@dataclass(frozen=True)
class JointOrder:
    """Which joint each column of a file is."""

    name: str
    joints: tuple[str, ...]
    robot: str
    """The profile whose kinematics has all of them, as `get_profile` takes it."""


def _subset(name: str, places: tuple[int, ...], robot: str) -> tuple[JointOrder, JointOrder]:
    """A reduction in SDK order, and the same joints in Isaac order."""
    isaac = [i for i in _ISAAC_29 if i in places]
    return (
        JointOrder(name, tuple(_UNITREE_29[i] for i in places), robot),
        JointOrder(f"{name}_isaac", tuple(_UNITREE_29[i] for i in isaac), robot),
    )


_G1_ORDERS = (
    JointOrder("unitree29", _UNITREE_29, "g1_29dof"),
    JointOrder("isaac29", tuple(_UNITREE_29[i] for i in _ISAAC_29), "g1_29dof"),
    *_subset("asap23", _ASAP_23, "g1_23dof"),
    *_subset("unitree23", _UNITREE_23, "g1_29dof"),
    *_subset("unitree27", _UNITREE_27, "g1_29dof"),
)
G1_ORDERS: dict[str, JointOrder] = {order.name: order for order in _G1_ORDERS}
DOF_SETS = ("asap23", "unitree23")
"""Values of `--dof-set`: which 23 joints a file without names has."""


def orders_of_width(width: int, robot: str | None = None) -> tuple[JointOrder, ...]:
    """The orders that fit a file of `width` joints: those of `robot`, or of the G1 if none is named.

    `g1_23dof` is ASAP's 23; `g1_29dof` has all orders of the G1, as each holds some of its joints.
    """
    if robot not in (None, "g1_23dof", "g1_29dof"):
        return tuple(order for order in profile_orders(str(robot)) if len(order.joints) == width)
    fitting = tuple(order for order in G1_ORDERS.values() if len(order.joints) == width)
    own = tuple(order for order in fitting if order.robot == robot == "g1_23dof")
    return own or fitting


def profile_orders(robot: str) -> tuple[JointOrder, ...]:
    """The depth-first and breadth-first orders of any robot, called after it.

    Args:
        robot: as `get_profile` takes it.
    """
    profile = get_profile(robot)
    joints = {link.name: link.joint for link in profile.links}
    second = tuple(str(joints[name]) for name in breadth_first(profile) if joints[name] is not None)
    first = JointOrder(profile.name, profile.joint_names, robot)
    return (first,) if second == first.joints else (first, JointOrder(f"{profile.name}_isaac", second, robot))


def get_order(name: str, robot: str | None = None) -> JointOrder:
    """The order called `name`.

    Raises:
        UnknownNameError: there is none; the text lists the valid ones.
    """
    own = {} if robot is None else {order.name: order for order in profile_orders(robot)}
    known = G1_ORDERS | own
    if name not in known:
        raise unknown_name("joint order", name, known)
    return known[name]


def swapped_sides(joints: tuple[str, ...]) -> tuple[str, ...]:
    """The same columns with left and right exchanged."""
    return tuple(_other_side(joint) for joint in joints)


def _other_side(joint: str) -> str:
    if joint.startswith("left_"):
        return "right_" + joint.removeprefix("left_")
    return "left_" + joint.removeprefix("right_") if joint.startswith("right_") else joint
