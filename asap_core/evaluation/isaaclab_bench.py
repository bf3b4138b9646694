"""What the environment over Isaac Lab costs: its speed beside that of PhysX alone, and the first and second start."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from asap_core.environments.reference import ReferenceMotion
from asap_core.environments.settings import TrackingSettings
from asap_core.environments.tracking import TrackingEnv
from asap_core.errors import StageError
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import Source
from asap_core.progress import track
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.isaaclab.runtime import require_isaaclab, shares_physx
from asap_core.simulators.isaaclab.scene import standing_height
from asap_core.simulators.isaaclab.simulator import IsaacLabSimulator
from asap_core.simulators.physx_world import physx_engine

_ROBOTS = 16
_ROUNDS = 31
_STEPS = 10
"""Control steps that are timed in a round: few, so that each way meets the same load."""
_STEADY = PhysicsSettings(kp_factor={"ankle": 40.0}, kd_factor={"ankle": 30.0})
"""Robots that stand without a policy, so that all do the same."""
_START = """
import numpy
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.isaaclab.simulator import IsaacLabSimulator
profile = get_profile("g1_23dof")
simulator = IsaacLabSimulator(profile, PhysicsSettings(), 16)
simulator.step(numpy.tile(profile.default_joint_pos, (16, 1)))
print("stepped", flush=True)
"""


def bench(tracking: TrackingSettings) -> dict[str, float]:
    """Control steps of 16 standing robots per second, and seconds of starts.

    `physx`: PhysX alone, targets written and four physics steps taken. `simulator`: `IsaacLabSimulator.step`.
    `environment`: `TrackingEnv.step` over it. All three in turn on the same robots; the medians of 31 rounds by the
    clock, and, as the machine may have other work, by the process's CPU time; `share` is the median of
    environment / physx of a round. A start is a process from its beginning to the end of its first control step,
    imports and all; the first has no compiled kernels.

    Args:
        tracking: the environment's terms.

    Raises:
        StageError: Isaac Lab is not installed, it runs in Kit or on a GPU, or a start failed.
    """
    require_isaaclab()
    if not shares_physx("physx"):
        raise StageError("asap bench isaaclab compares with PhysX on a CPU; Isaac Lab runs in Kit or on a GPU here")
    seconds = _seconds(tracking)
    figures: dict[str, float] = {}
    for column, kind in enumerate(("", "_cpu")):
        spent = {name: np.array(found)[:, column] for name, found in seconds.items()}
        for name, found in spent.items():
            figures[f"{name}_steps_per{kind}_s"] = float(_ROBOTS * _STEPS / np.median(found))
        figures[f"share{kind}"] = float(np.median(spent["physx"] / spent["environment"]))
    with tempfile.TemporaryDirectory(prefix="asap-kernels-") as cache:
        figures["first_start_s"], figures["second_start_s"] = _start(cache), _start(cache)
    return figures


def _seconds(tracking: TrackingSettings) -> dict[str, list[tuple[float, float]]]:
    """By the clock and of CPU time, that each way takes in each round."""
    profile = get_profile("g1_23dof")
    reference = standing_reference(profile, seconds=60.0)
    simulator = IsaacLabSimulator(profile, _STEADY, _ROBOTS)
    environment = TrackingEnv(simulator, profile, reference, tracking, seed=0)
    target = np.tile(profile.default_joint_pos, (_ROBOTS, 1))
    action = np.zeros((_ROBOTS, profile.num_joints), np.float32)
    view, physx = simulator.world.robot.articulation.root_view, physx_engine().physx
    drive_target = view.get_attribute("articulation_dof_position_target")

    def raw_step() -> None:
        view.set_attribute("articulation_dof_position_target", drive_target)
        physx.step_n_sync(_STEADY.substeps, _STEADY.physics_dt)

    rivals: dict[str, Callable[[], object]] = {
        "physx": raw_step,
        "simulator": lambda: simulator.step(target),
        "environment": lambda: environment.step(action),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in rivals}
    with track("rounds", _ROUNDS) as progress:
        for _ in range(_ROUNDS):
            for name, step in rivals.items():
                step()
                clock, cpu = time.perf_counter(), time.process_time()
                for _ in range(_STEPS):
                    step()
                found[name].append((time.perf_counter() - clock, time.process_time() - cpu))
            progress.advance()
    return found


def standing_reference(profile: RobotProfile, seconds: float) -> ReferenceMotion:
    """The default pose, held."""
    count = round(seconds / _STEADY.control_dt) + 1
    motion = RobotMotion(
        "stand",
        profile.name,
        1 / _STEADY.control_dt,
        np.tile([0.0, 0.0, standing_height(profile)], (count, 1)),
        np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)),
        profile.joint_names,
        np.tile(profile.default_joint_pos, (count, 1)),
        Source(path="bench", sha256="0" * 64, tool="bench"),
    )
    return ReferenceMotion.from_motion(motion, profile, _STEADY.control_dt)


def _start(cache: str) -> float:
    """Seconds until a process that starts Isaac Lab, with kernels in `cache`, has stepped."""
    begin, end, said = time.perf_counter(), None, ""
    child = subprocess.Popen(
        [sys.executable, "-c", _START],
        env=os.environ | {"WARP_CACHE_PATH": cache},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert child.stdout is not None
    for line in child.stdout:
        said += line
        if line == "stepped\n":
            end = time.perf_counter()
    if child.wait() != 0 or end is None:
        raise StageError(f"a process that starts Isaac Lab failed: {said.strip()[-500:]}")
    return end - begin
