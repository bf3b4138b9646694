"""The targets of the yardstick: the nominal robot with known alterations. They are twins, not robots."""

from __future__ import annotations

from collections.abc import Mapping

from asap_core.errors import unknown_name
from asap_core.robots.physics import PhysicsSettings

_STRENGTH = {"strength": {"knee": 0.8, "ankle": 0.8}}
_ARMATURE = {"armature": 0.03}
_FRICTION = {"frictionloss": 0.5}
_MASS = {"added_mass": {"torso_link": 2.0}}
_DELAY = {"action_delay": 1}
_ALTERED = {**_STRENGTH, **_ARMATURE, **_FRICTION, **_MASS}

TARGETS: Mapping[str, PhysicsSettings] = {
    name: PhysicsSettings.model_validate(fields)
    for name, fields in {
        "altered": _ALTERED,
        "altered_delay": {**_ALTERED, **_DELAY},
        "strength": _STRENGTH,
        "frictionloss": _FRICTION,
        "mass": _MASS,
        "armature": _ARMATURE,
        "delay": _DELAY,
        "numerics": {"physics_dt": 0.002},
        "backlash": {"backlash": {"ankle": 0.1}},
        "torque_speed": {"no_load_speed": {"knee": 12.0, "ankle": 12.0, "hip": 12.0}},
    }.items()
}
"""Name → physics. `altered` is strength, armature, friction and mass together; `numerics` is only a finer time step;
`backlash` and `torque_speed` lie outside what SysID fits."""


def target_physics(name: str) -> PhysicsSettings:
    """The physics of the target `name`.

    Raises:
        UnknownNameError: there is none.
    """
    if name not in TARGETS:
        raise unknown_name("target", name, TARGETS)
    return TARGETS[name]
