"""Suspicion that left and right columns are exchanged: the mirrored reading stands better than the one at hand."""

from __future__ import annotations

from dataclasses import replace

from asap_core.motions.doctor.joint_orders import swapped_sides
from asap_core.motions.doctor.problems import Problem
from asap_core.motions.doctor.reading import Reading
from asap_core.motions.doctor.support import support_scores
from asap_core.motions.formats.clip import RobotClip

_BETTER = 0.9
"""Clean clips stand at most 6 % better when their columns are swapped."""
_APART = 0.01
"""m/s."""


def swap_problem(clip: RobotClip, reading: Reading) -> list[Problem]:
    """A warning if the clip stands clearly better with its sides exchanged; a symmetric clip cannot tell."""
    swapped = replace(reading.order, name="swapped", joints=swapped_sides(reading.order.joints))
    figures = support_scores(
        clip, (reading.order, swapped), reading.angle_unit, reading.length_unit, (reading.quat_order,)
    )
    as_is = figures[reading.order.name, reading.quat_order]
    other = figures["swapped", reading.quat_order]
    if other > _BETTER * as_is or as_is - other < _APART:
        return []
    text = (
        f"left and right columns may be swapped: the stiller foot goes {as_is:.3f} m/s, {other:.3f} with them exchanged"
    )
    return [Problem("warning", "sides_swapped", text, "", "swap the columns where the file was made")]
