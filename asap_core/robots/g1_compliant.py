"""`g1_23dof` with gains derived from the inertia of each joint's motor, softer than the paper's.

Kp = I ω², Kd = 2 ζ I ω with ω = 2π · 10 Hz and ζ = 2: every drive answers alike and yields to contact (BeyondMimic,
arXiv 2508.08241). The reflected inertias are those of the G1's motors, from the rotors and gears that mjlab 1.6.0
(Apache-2.0) gives. With `tracking.action_scale: torque` a unit action asks for a quarter of the torque limit of each
joint. The gains mean what they say only where the simulated armature is that of the motors:
`simulation.physics.armature_of` as in `ARMATURE`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from asap_core.robots import g1
from asap_core.robots.profile import Float64, RobotProfile

NATURAL_FREQUENCY = 2.0 * np.pi * 10.0
"""rad/s."""
DAMPING_RATIO = 2.0
_MOTOR_5020 = 0.003610
_MOTOR_7520_14 = 0.010178
_MOTOR_7520_22 = 0.025102
ARMATURE = {
    "hip_pitch": _MOTOR_7520_14,
    "hip_roll": _MOTOR_7520_22,
    "hip_yaw": _MOTOR_7520_14,
    "knee": _MOTOR_7520_22,
    "ankle": 2 * _MOTOR_5020,
    "waist_yaw": _MOTOR_7520_14,
    "waist_roll": 2 * _MOTOR_5020,
    "waist_pitch": 2 * _MOTOR_5020,
    "shoulder": _MOTOR_5020,
    "elbow": _MOTOR_5020,
}
"""Part of a joint's name → reflected inertia, kg m²; two motors move ankles and waist through a linkage."""


def gains_of(armature: Float64) -> tuple[Float64, Float64]:
    """kp (N m/rad) and kd (N m s/rad) of joints whose motors have these reflected inertias (J,) kg m²."""
    return armature * NATURAL_FREQUENCY**2, 2.0 * DAMPING_RATIO * armature * NATURAL_FREQUENCY


def joint_armature(joint_names: tuple[str, ...]) -> Float64:
    """(J,) kg m², by name."""
    return np.array([next(value for part, value in ARMATURE.items() if part in name) for name in joint_names])


def build_profile() -> RobotProfile:
    """The `g1_23dof_compliant` profile; take it from `asap_core.robots.get_profile`."""
    base = g1.build_profile()
    kp, kd = gains_of(joint_armature(base.joint_names))
    return replace(base, name="g1_23dof_compliant", kp=kp, kd=kd)
