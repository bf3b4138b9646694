"""Evidence on units: angles against what joints can turn, heights against the length of the robot's legs."""

from __future__ import annotations

import numpy as np

from asap_core.evidence import Decision, given
from asap_core.motions.doctor.reading import LENGTH_UNITS
from asap_core.motions.formats.clip import RobotClip

_MOST_RADIANS = 3.2
"""No joint of a humanoid turns farther; Unitree's end at 3.09."""
_USUAL_HEIGHT = 0.75
"""m, of a humanoid's root."""
_WITHIN = 5.0
"""A root height within this factor of the usual one is believed: from lying to a high jump."""


def angle_unit(clip: RobotClip) -> Decision:
    """Radians unless the joints go where only degrees can."""
    largest = float(np.quantile(np.abs(clip.joint_pos), 0.999))
    answer = "deg" if largest > _MOST_RADIANS else "rad"
    how = f"the joints reach {largest:.3g}, radians end at {_MOST_RADIANS}"
    if answer == "rad" and clip.declared.angle_unit == "deg":
        return given("angle unit", "deg", "the format says so", "")
    return Decision("angle unit", answer, largest, None, float("inf"), how, "")


def length_unit(clip: RobotClip) -> Decision:
    """Metres, centimetres or millimetres by the root's median height, whichever axis that is."""
    axes = {"z": 2, "y": 1}
    order = [clip.declared.up_axis or "z", "z", "y"]
    height = 0.0
    for axis in order:
        height = float(np.median(np.abs(clip.root_pos[:, axes.get(axis, 2)])))
        ratios = {unit: max(height * scale / _USUAL_HEIGHT, 1e-9) for unit, scale in LENGTH_UNITS.items()}
        unit = min(ratios, key=lambda name: abs(np.log(ratios[name])))
        if abs(np.log(ratios[unit])) < np.log(_WITHIN):
            how = f"median root height {height:.3g} along {axis}; {height * LENGTH_UNITS[unit]:.2f} m"
            return Decision("length unit", unit, height, None, float("inf"), how, "")
    if clip.declared.length_unit is not None:
        return given("length unit", clip.declared.length_unit, "the format says so", "")
    return Decision("length unit", "m", height, None, float("inf"), f"median root height {height:.3g}", "")
