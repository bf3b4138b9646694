"""Suspicion that left and right columns are exchanged: the mirrored reading stands better than the one at hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from asap_core.motions.doctor.joint_orders import swapped_sides
from asap_core.motions.doctor.problems import Problem
from asap_core.motions.doctor.reading import Reading
from asap_core.motions.doctor.support import support_scores
from asap_core.motions.formats.clip import RobotClip
from asap_core.robots.kinematics import LinkPoses
from asap_core.robots.profile import RobotProfile

_BETTER, _APART = 0.9, 0.01
"""Share of the speed, and m/s, below which the exchanged reading stands clearly better: clean clips reach 0.94."""
_NO_WORSE, _NARROW = 1.07, 0.65
"""With elbows this much closer than in the exchanged reading it need only stand about as well: clean clips have elbows
1.8 times as far apart as with their columns exchanged."""


def swap_problem(clip: RobotClip, reading: Reading, poses: LinkPoses) -> list[Problem]:
    """A warning if the clip stands better, or holds its elbows outside as it should, with its sides exchanged."""
    swapped = replace(reading.order, name="swapped", joints=swapped_sides(reading.order.joints))
    if set(swapped.joints) != set(reading.order.joints) or swapped.joints == reading.order.joints:
        return []
    figures = support_scores(
        clip, (reading.order, swapped), reading.angle_unit, reading.length_unit, (reading.quat_order,)
    )
    as_is = figures[reading.order.name, reading.quat_order]
    other = figures["swapped", reading.quat_order]
    elbows = elbow_distance(reading.profile, poses)
    elbows_other = elbow_distance(reading.profile, reading.with_order(swapped).poses(clip))
    stands = other <= _BETTER * as_is and as_is - other >= _APART
    narrow = elbows is not None and elbows_other is not None and elbows < _NARROW * elbows_other
    if not stands and not (narrow and other <= _NO_WORSE * as_is):
        return []
    text = "left and right columns may be swapped: "
    text += f"the stiller foot goes {as_is:.3f} m/s, {other:.3f} with them exchanged"
    if elbows is not None and elbows_other is not None:
        text += f"; the elbows are {elbows:.2f} m apart, {elbows_other:.2f} then"
    return [Problem("warning", "sides_swapped", text, "", "swap the columns where the file was made")]


def elbow_distance(profile: RobotProfile, poses: LinkPoses) -> float | None:
    """Median distance in m of the left elbow to the left of the right one, seen from the root; None without elbows."""
    links = {joint: link for link, joint in profile.correspondences}
    if not {"L_Elbow", "R_Elbow"} <= set(links):
        return None
    left, right = profile.link_index(links["L_Elbow"]), profile.link_index(links["R_Elbow"])
    apart = poses.pos[:, left] - poses.pos[:, right]
    return float(np.median((poses.rot[:, 0, :, 1] * apart).sum(axis=-1)))
