"""Evidence from stored bodies: do the joints, read in some order, put the links where the file says the bodies are?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.motions.doctor.joint_orders import JointOrder
from asap_core.motions.doctor.options import QUAT_ORDERS
from asap_core.motions.doctor.reading import ANGLE_UNITS, LENGTH_UNITS, as_wxyz, poses_in_root_frame
from asap_core.motions.formats.clip import RobotClip
from asap_core.robots import get_profile
from asap_core.robots.profile import RobotProfile, breadth_first
from asap_core.rotations import Array, rotate_inverse

_FRAMES = 24
SAME_MM = 1.0
"""Mean distance under which bodies and links are the same."""
OTHER_MODEL_MM = 15.0
"""Mean distance that another revision of the robot's model can make (the G1's waist moved by 10 mm)."""


@dataclass(frozen=True)
class BodyOrder:
    """Which link each body of a file is; None for bodies that are no link (`world`, extra frames)."""

    name: str
    links: tuple[str | None, ...]


def body_orders(clip: RobotClip, order: JointOrder) -> tuple[BodyOrder, ...]:
    """The body orders that fit the clip: by its names if it has them, else depth first and breadth first."""
    profile = get_profile(order.robot)
    if clip.body_names is not None:
        known = set(profile.link_names)
        return (BodyOrder("named", tuple(name if name in known else None for name in clip.body_names)),)
    stored = clip.body_pos if clip.body_pos is not None else clip.local_body_pos
    count = 0 if stored is None else stored.shape[1]
    kept = _moved_links(profile, order)
    found = []
    for name, links in (("mjcf", [link.name for link in profile.links]), ("isaac", breadth_first(profile))):
        chosen = tuple(link for link in links if link in kept)
        if len(chosen) == count:
            found.append(BodyOrder(name, chosen))
    return tuple(found)


def _moved_links(profile: RobotProfile, order: JointOrder) -> set[str]:
    """The root and the links whose joint is in the order."""
    return {link.name for link in profile.links if link.joint is None or link.joint in order.joints}


def body_distances(
    clip: RobotClip, orders: tuple[JointOrder, ...], angle_unit: str
) -> dict[tuple[str, str, str], float]:
    """Mean distance in mm between bodies and links for each (joint order, body order, quaternion order).

    Everything is compared in the root's frame, so the world's axes do not matter. Without a fitting body order the
    body that is nearest stands in for each link, under the body order `nearest`.
    """
    if clip.body_pos is None:
        return {}
    chosen = _spread(len(clip.root_pos))
    scale = LENGTH_UNITS[clip.declared.length_unit or "m"]
    relative = (clip.body_pos[chosen] - clip.root_pos[chosen, None]) * scale
    seen = {quat: rotate_inverse(as_wxyz(clip.root_quat[chosen], quat)[:, None], relative) for quat in QUAT_ORDERS}
    scores: dict[tuple[str, str, str], float] = {}
    for order in orders:
        profile = get_profile(order.robot)
        links = poses_in_root_frame(clip.joint_pos[chosen] * ANGLE_UNITS[angle_unit], order).pos
        fitting = body_orders(clip, order) or (None,)
        for quat, bodies in seen.items():
            for body in fitting:
                name, figure = (
                    ("nearest", _nearest(links, bodies))
                    if body is None
                    else (body.name, _distance(profile, links, bodies, body))
                )
                scores[order.name, name, quat] = figure
    return scores


def local_distances(clip: RobotClip, orders: tuple[JointOrder, ...], angle_unit: str) -> dict[str, float]:
    """Mean distance in mm between links and bodies stored as seen from the root, for each joint order."""
    if clip.local_body_pos is None:
        return {}
    chosen = _spread(len(clip.root_pos))
    scores: dict[str, float] = {}
    for order in orders:
        profile = get_profile(order.robot)
        links = poses_in_root_frame(clip.joint_pos[chosen] * ANGLE_UNITS[angle_unit], order).pos
        for body in body_orders(clip, order):
            figure = _distance(profile, links, clip.local_body_pos[chosen], body)
            scores[order.name] = min(figure, scores.get(order.name, float("inf")))
    return scores


def _spread(count: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, count - 1, _FRAMES).round().astype(np.intp))


def _distance(profile: RobotProfile, links: Array, bodies: Array, order: BodyOrder) -> float:
    pairs = [(i, profile.link_index(link)) for i, link in enumerate(order.links) if link is not None]
    if not pairs:
        return float("inf")
    i, j = np.array(pairs).T
    return float(np.linalg.norm(bodies[:, i] - links[:, j], axis=-1).mean() * 1e3)


def _nearest(links: Array, bodies: Array) -> float:
    """Mean over links of the distance to the body that stays nearest to it."""
    apart = np.linalg.norm(links[:, :, None] - bodies[:, None], axis=-1).mean(axis=0)
    return float(apart.min(axis=1).mean() * 1e3)
