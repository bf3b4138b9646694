"""Evidence on the up axis: a humanoid's root stands upright most of the time."""

from __future__ import annotations

import numpy as np

from asap_core.evidence import Decision, given
from asap_core.motions.doctor.options import UP_AXES, Options
from asap_core.motions.doctor.reading import as_wxyz
from asap_core.motions.doctor.support import mean_tilt
from asap_core.motions.doctor.weigh import least
from asap_core.motions.formats.clip import RobotClip

_MOST_TILT = 50.0
"""Degrees; beyond this mean tilt the clip is no standing one and proves nothing."""
_APART = 30.0
"""Degrees by which the best axis must lead."""


def up_axis(clip: RobotClip, options: Options, quat_order: str) -> Decision:
    """The world axis that the root's own z axis keeps to."""
    if options.up_axis is not None:
        return given("up axis", options.up_axis, "the option says so", "--up-axis")
    wxyz = as_wxyz(clip.root_quat, quat_order)
    figures = {axis: float(np.degrees(mean_tilt(wxyz, axis))) for axis in UP_AXES}
    found = least("up axis", figures, "deg", "mean tilt of the root", "--up-axis", 1.0, _APART)
    if found.answer is not None and found.figure <= _MOST_TILT:
        return found
    declared = clip.declared.up_axis
    if declared in UP_AXES:
        return given("up axis", str(declared), "the format says so", "--up-axis")
    return Decision("up axis", None, found.figure, found.runner_up, found.margin, found.how, "--up-axis", "deg")
