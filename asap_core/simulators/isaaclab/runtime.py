"""What of Isaac Lab is present in this process: the package, Kit, a GPU; and what must be set before it is used."""

from __future__ import annotations

import atexit
import gc
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from asap_core.errors import StageError
from asap_core.progress import say

Engine = Literal["physx", "newton"]

_VERSION = "3.0."
_kit = ExitStack()
"""Kit, once started, lives until the process ends."""


def require_isaaclab() -> None:
    """Raises:
    StageError: Isaac Lab 3.0 is not installed.
    """
    if find_spec("isaaclab") is None:
        raise StageError(
            "simulation.backend isaaclab: Isaac Lab is not installed; it needs Python 3.12: `make isaaclab` makes an "
            "environment of its own, .venv-isaaclab"
        )
    found = version("isaaclab")
    if not found.startswith(_VERSION):
        raise StageError(
            f"Isaac Lab {found} is installed, expected {_VERSION}x: `pip install isaaclab[ovphysx]==3.0.0`"
        )


def device() -> str:
    """This process's GPU where PyTorch sees one, else `cpu`; torchrun numbers its processes in `LOCAL_RANK`."""
    import torch

    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"


def uses_kit(engine: Engine) -> bool:
    """Whether `engine` runs inside Isaac Sim: PhysX, where that is installed and a GPU is present."""
    return engine == "physx" and find_spec("isaacsim") is not None and device() != "cpu"


def shares_physx(engine: Engine) -> bool:
    """Whether `engine` is the PhysX that the backend `physx` uses too: without Kit, on a CPU."""
    return engine == "physx" and not uses_kit(engine) and device() == "cpu"


def physics_cfg(engine: Engine, implicit: bool) -> Any:
    """Isaac Lab's physics configuration for `engine` in this process.

    Args:
        implicit: whether drives are the engine's own. Newton then integrates as MuJoCo does for them.
    """
    if engine == "newton":
        from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCfg

        solver = MJWarpSolverCfg(integrator="implicitfast" if implicit else "euler", cone="pyramidal", nconmax=64)
        return NewtonCfg(solver_cfg=solver, use_cuda_graph=device() != "cpu")
    if uses_kit(engine):
        from isaaclab_physx.physics import PhysxCfg

        return PhysxCfg(enable_enhanced_determinism=True)
    from isaaclab_ov.physics import OvPhysxCfg

    return OvPhysxCfg(enable_enhanced_determinism=True)


def prepare(engine: Engine) -> None:
    """Set what must be set before the first simulation of this process; Kit is started where it is used."""
    require_isaaclab()
    warp = _warp()
    if not warp.is_cuda_available():
        # Isaac Lab asks for pinned memory on a CPU too, and without a driver there is none.
        cpu = warp.get_device("cpu")
        cpu.pinned_allocator = cpu.default_allocator
    if uses_kit(engine):
        _start_kit(engine)


def _start_kit(engine: Engine) -> None:
    from isaaclab.app import launch_simulation
    from isaaclab.sim import SimulationCfg
    from isaaclab.utils.version import has_kit

    if has_kit():
        return
    if os.environ.get("OMNI_KIT_ACCEPT_EULA", "").upper() not in {"YES", "Y", "1", "TRUE"}:
        raise StageError(
            "Isaac Sim asks for its licence to be accepted: read NVIDIA's licence and set OMNI_KIT_ACCEPT_EULA=YES"
        )
    cfg = SimulationCfg(device=device(), physics=physics_cfg(engine, True))
    _kit.enter_context(launch_simulation(cfg, {"headless": True, "device": device()}))
    atexit.register(_kit.close)


@contextmanager
def starting(engine: Engine) -> Iterator[None]:
    """Say so where starting compiles kernels, which is once for each version and engine, and how long it took."""
    mark = _mark(engine)
    if mark.exists():
        yield
        return
    say(f"Isaac Lab, {engine}: compiling kernels, half a minute to two, once on this machine")
    begin = time.perf_counter()
    yield
    with writing_cache(mark):
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    say(f"Isaac Lab, {engine}: started after {time.perf_counter() - begin:.0f} s")


@contextmanager
def collecting_later() -> Iterator[None]:
    """Without looking for garbage among the objects that imports and scenes make, which takes a sixth of a start."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _mark(engine: Engine) -> Path:
    """A file beside warp's compiled kernels, so that both go together."""
    where = "gpu" if device() != "cpu" else "cpu"
    return cache_folder() / f"asap-isaaclab-{version('isaaclab')}-{engine}-{where}"


def cache_folder() -> Path:
    """Where warp keeps compiled kernels."""
    return Path(_warp().config.kernel_cache_dir)


def _warp() -> Any:
    """Initialised. Untyped where it is installed, absent elsewhere."""
    warp = import_module("warp")
    warp.config.log_level = warp.LOG_WARNING
    with writing_cache():
        warp.init()
    return warp


@contextmanager
def writing_cache(path: Path | None = None) -> Iterator[None]:
    """What cannot be written there, `path` if given, is said as a StageError with the way out."""
    try:
        yield
    except OSError as error:
        raise StageError(
            f"{path or error.filename}: cannot be written: {error.strerror}; WARP_CACHE_PATH names another folder for "
            "compiled kernels and robot files"
        ) from error
