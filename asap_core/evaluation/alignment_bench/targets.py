"""The targets of the yardstick: the nominal robot with known alterations. They are twins, not robots."""

from __future__ import annotations

from collections.abc import Mapping

from asap_core.errors import unknown_name
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.settings import Backend

_STRENGTH = {"strength": {"knee": 0.8, "ankle": 0.8}}
_ARMATURE = {"armature": 0.03}
_FRICTION = {"frictionloss": 0.5}
_MASS = {"added_mass": {"torso_link": 2.0}}
_DELAY = {"action_delay": 1}
_ALTERED = {**_STRENGTH, **_ARMATURE, **_FRICTION, **_MASS}
_ACTUATION = {**_STRENGTH, **_ARMATURE, **_FRICTION}

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

ENGINE_TARGETS: Mapping[str, Backend] = {"physx": "physx", "genesis": "genesis"}
"""Name → engine that stands in for the robot, with the altered strength, armature and friction."""

ALL_TARGETS = (*TARGETS, *ENGINE_TARGETS)


def target_physics(name: str) -> PhysicsSettings:
    """The physics of the target `name`.

    Raises:
        UnknownNameError: there is none.
    """
    if name not in ALL_TARGETS:
        raise unknown_name("target", name, ALL_TARGETS)
    return TARGETS[name] if name in TARGETS else PhysicsSettings.model_validate(_ACTUATION)


def target_engine(name: str) -> Backend:
    """What simulates the target `name`."""
    return ENGINE_TARGETS.get(name, "mujoco")
