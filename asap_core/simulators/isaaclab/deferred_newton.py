"""Newton, whose import takes three seconds, is left until something of it is used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

_USER = "isaaclab_ov.assets.articulation.actuator_control"
"""Imports Newton for a kind of actuator that the scenes here do not have."""
_USED = "isaaclab.actuators.newton"
_PARTS = (_USED, f"{_USED}.adapter", f"{_USED}.physx_runtime")


class _Deferred(ModuleType):
    """Stands in for a module of which only calls are made, and those later or never."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: getattr(import_module(self.__name__), name)(*args, **kwargs)


def defer_newton() -> None:
    """Import Isaac Lab's actuators on ovphysx without Newton, if neither is imported yet.

    They make objects of three of its classes where a configuration has explicit actuators; the import happens then.
    """
    if "newton" in sys.modules or any(name in sys.modules for name in (*_PARTS, _USER)):
        return
    sys.modules.update({name: _Deferred(name) for name in _PARTS})
    try:
        import_module(_USER)
    finally:
        for name in _PARTS:
            del sys.modules[name]
