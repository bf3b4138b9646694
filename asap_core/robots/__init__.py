"""Robots: profiles, physics settings, model building and kinematics."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from asap_core.errors import unknown_name

if TYPE_CHECKING:
    from asap_core.robots.profile import RobotProfile

_MODULES = {
    "g1_23dof": "asap_core.robots.g1",
    "g1_23dof_compliant": "asap_core.robots.g1_compliant",
    "g1_29dof": "asap_core.robots.g1_29",
}


_SUFFIX = ".json"


@cache
def get_profile(name: str) -> RobotProfile:
    """The robot called `name`, or the one of a file that `asap profile add` wrote.

    Args:
        name: of a robot that the product knows, or the path of a profile (`.json`).

    Raises:
        UnknownNameError: no such robot; the text lists the valid ones.
        InputFileError: the file is missing or no profile.
    """
    if name.endswith(_SUFFIX):
        from asap_core.robots.profile_file import read_profile

        return read_profile(Path(name))
    if name not in _MODULES:
        raise unknown_name("robot", name, (*_MODULES, "a file of asap profile add (.json)"))
    profile: RobotProfile = importlib.import_module(_MODULES[name]).build_profile()
    return profile
