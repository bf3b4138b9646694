"""The Isaac Lab simulation of this process: one scene at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asap_core.errors import StageError
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.isaaclab.deferred_newton import defer_newton
from asap_core.simulators.isaaclab.ovphysx import set_up_ovphysx, step_ovphysx
from asap_core.simulators.isaaclab.ovphysx_robot import OvphysxRobot
from asap_core.simulators.isaaclab.runtime import Engine, device, physics_cfg, prepare, shares_physx, starting
from asap_core.simulators.isaaclab.scene import scene_cfg
from asap_core.simulators.isaaclab.scene_robot import SceneRobot
from asap_core.simulators.physx_world import physx_engine
from asap_core.simulators.protocol import Array

_attached: list[IsaacLabWorld] = []
"""The one whose scene the process holds."""


class IsaacLabWorld:
    """A scene of `num_envs` robots, attached whenever it is used.

    Args:
        physics: of the scene: time step, drives, self collision.
        on_attach: called with every new attachment, to write what the scene does not hold.
        on_leave: called before the scene goes, to remember the state.
    """

    def __init__(
        self,
        profile: RobotProfile,
        physics: PhysicsSettings,
        engine: Engine,
        num_envs: int,
        on_attach: Callable[[], None],
        on_leave: Callable[[], None],
    ) -> None:
        self._profile, self._physics, self._engine, self._num_envs = profile, physics, engine, num_envs
        self._on_attach, self._on_leave = on_attach, on_leave
        self._on_ovphysx = shares_physx(engine)
        self._simulation: Any = None
        self._scene: Any = None
        self._robot: SceneRobot | None = None

    @property
    def robot(self) -> SceneRobot:
        """The robots, in the scene that the process now holds."""
        self.attach()
        assert self._robot is not None
        return self._robot

    @property
    def manager(self) -> Any:
        """Isaac Lab's `PhysicsManager` of the engine."""
        self.attach()
        return self._simulation.physics_manager

    def step(self, count: int) -> None:
        """Advance all robots by `count` physics steps under the commands that they were given."""
        robot, seconds = self.robot, count * self._physics.physics_dt
        robot.submit()
        if isinstance(robot, OvphysxRobot):
            step_ovphysx(self._simulation, count)
            robot.stepped(seconds)
            return
        for _ in range(count):
            self._simulation.step(render=False)
        self._scene.update(seconds)

    def foot_forces(self) -> Array:
        """See `SceneRobot.foot_forces`."""
        return self.robot.foot_forces()

    def attach(self) -> None:
        """Make this the scene that the process holds."""
        if _attached and _attached[0] is self:
            return
        if _attached:
            _attached[0].leave()
        prepare(self._engine)
        with starting(self._engine):
            self._build()
            _attached[:] = [self]
            self._on_attach()

    def leave(self) -> None:
        """Give the process's simulation up; the state is remembered first."""
        self._on_leave()
        _attached.clear()
        self._drop()

    def _build(self) -> None:
        from isaaclab.scene import InteractiveScene
        from isaaclab.sim import SimulationCfg, SimulationContext

        if SimulationContext.instance() is not None:
            raise StageError(
                "Isaac Lab has one simulation a process, and another part of this one holds it; "
                "close that environment first, or use a process of its own"
            )
        cfg = SimulationCfg(
            device=device(),
            dt=self._physics.physics_dt,
            render_interval=self._physics.substeps,
            physics=physics_cfg(self._engine, self._physics.drive == "implicit"),
        )
        self._simulation = SimulationContext(cfg)
        try:
            if self._on_ovphysx:
                defer_newton()
            self._scene = InteractiveScene(scene_cfg(self._profile, self._physics, self._num_envs))
            if self._on_ovphysx:
                set_up_ovphysx(self._simulation, self)
            self._simulation.reset()
            kind = OvphysxRobot if self._on_ovphysx else SceneRobot
            self._robot = kind(self._scene, self._profile)
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        self._scene, self._robot = None, None
        self._simulation.clear_instance()
        self._simulation = None
        if self._on_ovphysx:
            physx_engine().release(self)
