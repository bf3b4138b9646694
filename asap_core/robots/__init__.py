"""Robots: profiles, physics settings, model building and kinematics."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

from asap_core.errors import unknown_name

if TYPE_CHECKING:
    from asap_core.robots.profile import RobotProfile

_MODULES = {"g1_23dof": "asap_core.robots.g1", "g1_29dof": "asap_core.robots.g1_29"}


@cache
def get_profile(name: str) -> RobotProfile:
    """The robot called `name`.

    Raises:
        UnknownNameError: no such robot; the text lists the valid ones.
    """
    if name not in _MODULES:
        raise unknown_name("robot", name, _MODULES)
    profile: RobotProfile = importlib.import_module(_MODULES[name]).build_profile()
    return profile
