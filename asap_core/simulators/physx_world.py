"""The PhysX engine of this process: one scene at a time, and what is read from and written to it by name.

PhysX keeps one scene a process. Whoever uses its world next attaches its own scene, and the world that was attached
is told to remember its state before it goes.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import StageError
from asap_core.robots.usd import ENVS, ROBOT

Float32 = NDArray[np.float32]


class Holder(Protocol):
    """Who holds the engine's scene."""

    def leave(self) -> None:
        """Take the scene away; whoever asks is about to attach another."""


class PhysxEngine:
    """The process's only engine: the library, and who holds its scene."""

    def __init__(self) -> None:
        try:
            import ovphysx
            import ovstage
            from ovphysx.schemas import find_newton_schema_root
        except ImportError:
            raise StageError(
                "simulation.backend physx: ovphysx is not installed; `make install EXTRAS=dev,robot,physx`"
            ) from None
        ovphysx.PhysX.set_cpu_mode(True)
        ovphysx.enable_default_log_output(False)
        ovphysx.enable_python_logging("ovphysx", min_severity=ovphysx.LogLevel.ERROR)
        # Not a pool: with threads, small scenes are many times slower. The scene uses nothing of Newton's schema.
        config = {"num_threads": 0, "carbonite_overrides": {"/ovphysx/schemas/warnMissingNewtonSchema": False}}
        self.physx = ovphysx.PhysX(config=ovphysx.PhysXConfig(**config))
        self.population, self.new_stage = ovstage.population, ovstage.Stage
        self.domains = ovstage.PopulationDomain.ALL
        # Newton's, for whom Isaac Lab, later in the same process, could not register them any more.
        roots = [ovphysx.codeless_schema_root(), find_newton_schema_root()]
        self.population.register_usd_schemas([str(root) for root in roots if root is not None])
        self._holder: Holder | None = None

    def holds(self, holder: Holder) -> bool:
        """Whether the scene is that of `holder`."""
        return self._holder is holder

    def release(self, holder: Holder) -> None:
        """`holder` took its scene away unasked."""
        if self._holder is holder:
            self._holder = None

    def take(self, holder: Holder | None) -> None:
        """Send away who holds the scene; the next to attach one is `holder`, or somebody who is never sent away."""
        if self._holder is not None and self._holder is not holder:
            self._holder.leave()
        self._holder = holder


_engines: list[PhysxEngine] = []


def physx_engine() -> PhysxEngine:
    """The engine, made when first asked for.

    Raises:
        StageError: ovphysx is not installed.
    """
    if not _engines:
        _engines.append(PhysxEngine())
    return _engines[0]


class PhysxWorld:
    """A scene of `num_envs` copies of one robot, attached whenever it is used.

    Args:
        scene: USD text, of `asap_core.robots.usd.scene_usda`.
        root: prim name of the robot's root link. feet: prim names of the links whose contact forces are wanted.
        spacing: m between neighbours.
        on_attach: called with every new attachment, to write what the scene does not hold.
        on_leave: called before the scene goes, to remember the state.
    """

    def __init__(
        self,
        scene: str,
        root: str,
        feet: Sequence[str],
        num_envs: int,
        spacing: float,
        on_attach: Callable[[], None],
        on_leave: Callable[[], None],
    ) -> None:
        self._scene, self._root, self._feet = scene, root, tuple(feet)
        self._on_attach, self._on_leave = on_attach, on_leave
        side = int(np.ceil(np.sqrt(num_envs)))
        places = np.arange(num_envs)
        self.origins = np.stack([places % side, places // side, 0 * places], axis=1) * spacing
        """(N, 3) m, where each robot's own world lies in the scene."""
        self._engine = physx_engine()
        self._stage: Any = None
        self._bindings: dict[str, Any] = {}
        self._contacts: list[Any] = []

    def read(self, name: str) -> Float32:
        """What PhysX calls ARTICULATION_`name`, (N, ...), a new array."""
        binding = self._binding(name)
        values = np.zeros(binding.shape, np.float32)
        binding.read(values)
        return values

    def write(self, name: str, values: NDArray[np.floating], ids: NDArray[np.intp] | None = None) -> None:
        """Set ARTICULATION_`name` to `values` (N, ...), of robots `ids` only if given."""
        rows = None if ids is None else np.ascontiguousarray(ids, np.int32)
        self._binding(name).write(np.ascontiguousarray(values, np.float32), indices=rows)

    def shape(self, name: str) -> tuple[int, ...]:
        """Of ARTICULATION_`name`."""
        return tuple(self._binding(name).shape)

    def joint_names(self) -> list[str]:
        """In PhysX's order, breadth first."""
        return list(self._binding("DOF_POSITION").dof_names)

    def link_names(self) -> list[str]:
        """In PhysX's order, breadth first."""
        return list(self._binding("BODY_MASS").body_names)

    def step(self, physics_dt: float, count: int) -> None:
        """Advance all robots by `count` physics steps."""
        self._attach()
        self._engine.physx.step_n_sync(count, physics_dt)

    def foot_forces(self) -> Float32:
        """(N, F, 3) N, world frame, normal contact forces on the feet in the last physics step."""
        self._attach()
        forces = np.zeros((len(self._feet), len(self.origins), 3), np.float32)
        for sensor, out in zip(self._contacts, forces, strict=True):
            sensor.read_net_normal_forces(out)
        return forces.transpose(1, 0, 2)

    def _binding(self, name: str) -> Any:
        self._attach()
        if name not in self._bindings:
            self._bindings[name] = self._bind(name)
        return self._bindings[name]

    def _bind(self, name: str) -> Any:
        from ovphysx.types import TensorType

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            binding = self._engine.physx.create_tensor_binding(
                pattern=f"{ENVS}/env*/{self._root}", tensor_type=TensorType[f"ARTICULATION_{name}"]
            )
        found = [path.split("/")[-2] for path in binding.prim_paths]
        if found != [f"env{i}" for i in range(len(self.origins))]:
            raise StageError(f"PhysX lists the robots as {found}, expected env0, env1, … in order")
        return binding

    def _attach(self) -> None:
        engine = self._engine
        if engine.holds(self):
            return
        engine.take(self)
        self._stage = engine.new_stage("asap")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scene.usda"
            path.write_text(self._scene, encoding="utf-8")
            engine.population.open_usd(self._stage, str(path), ordinal=1, domains=engine.domains)
        self._stage.advance_write_floor(ordinal=1).wait()
        engine.physx.attach_ovstage(self._stage, read_ordinal=1)
        engine.physx.wait_all()
        if len(self.origins) > 1:
            copies = [f"{ENVS}/env{i}" for i in range(1, len(self.origins))]
            at = [(*map(float, origin), 0.0, 0.0, 0.0, 1.0) for origin in self.origins[1:]]
            engine.physx.clone(ROBOT, copies, anchor_transforms=at)
            engine.physx.wait_all()
        engine.physx.warmup()
        engine.physx.wait_all()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._contacts = [engine.physx.create_contact_binding([f"{ENVS}/env*/{foot}"]) for foot in self._feet]
        self._on_attach()

    def leave(self) -> None:
        """Give the scene up; see `Holder.leave`."""
        self._on_leave()
        for binding in (*self._bindings.values(), *self._contacts):
            binding.destroy()
        self._bindings, self._contacts = {}, []
        self._engine.physx.detach_ovstage()
        self._engine.physx.wait_all()
        self._stage.destroy()
