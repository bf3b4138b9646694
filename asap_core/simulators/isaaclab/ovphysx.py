"""PhysX without Kit under Isaac Lab on a CPU: the process's only engine, which runs on one thread."""

from __future__ import annotations

from typing import Any

from asap_core.simulators.physx_world import Holder, physx_engine


def set_up_ovphysx(simulation: Any, holder: Holder | None = None) -> None:
    """Let `simulation`, a SimulationContext on ovphysx and a CPU that was not reset yet, use the process's PhysX.

    Isaac Lab would make one of eight threads, on which small scenes are many times slower, and which cannot live beside
    another. It shares what is registered under an equal configuration.

    Args:
        holder: told to leave when somebody else needs the scene.
    """
    from isaaclab_ov.physics.ovphysx_manager import OvPhysxBackend
    from isaaclab_ov.physics.ovphysx_manager_cfg import OvPhysxBackendCfg
    from isaaclab_ov.sim.views.ovphysx_view import OvPhysxView
    from pxr import Sdf

    engine = physx_engine()
    engine.take(holder)

    class SharedBackend(OvPhysxBackend):
        def __init__(self, cfg: OvPhysxBackendCfg) -> None:
            self.physx = engine.physx
            self.stage: Any = None
            self.rigid_body_view: Any = None

        def close(self) -> None:
            """Leave the engine alive."""
            if self.rigid_body_view is not None:
                self.rigid_body_view.destroy()
            OvPhysxView._close_all_for(self.physx)
            self.physx.wait_op(self.physx.reset_stage())
            if self.stage is not None:
                self.stage.destroy()
            self.stage, self.rigid_body_view = None, None

    scene = simulation.stage.GetPrimAtPath(simulation.cfg.physics_prim_path)
    scene.CreateAttribute("physxScene:broadphaseType", Sdf.ValueTypeNames.Token).Set("MBP")
    cfg = OvPhysxBackendCfg(device="cpu", cooked_collider_cache_dir=simulation.cfg.physics.cooked_collider_cache_dir)
    default = cfg.class_type
    cfg.class_type = SharedBackend
    simulation.get_or_create_backend(cfg)
    cfg.class_type = default


def step_ovphysx(simulation: Any, count: int) -> None:
    """What `simulation.step(render=False)` does `count` times, in one call of the engine.

    Links' poses and Isaac Lab's clock, which it brings up to date after each step, are left: nothing here asks for
    them, and before it draws it does the poses anyway.
    """
    from isaaclab_ov.physics import OvPhysxManager

    physx_engine().physx.step_n_sync(count, simulation.cfg.dt)
    OvPhysxManager.kinematics_dirty = True
